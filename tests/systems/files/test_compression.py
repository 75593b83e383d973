"""Contents of compressed files, as all readers see them."""

from __future__ import annotations

import io
import lzma
import zlib

import pyarrow as pa
import pytest

from airflow_pipelines.systems.files.compression import ENDINGS, Compression, DamagedFileError, Decompressed, compression_of

TEXT = b"".join(b"line %d\n" % number for number in range(50_000))


def _pack(kind: Compression, data: bytes) -> bytes:
    if kind is Compression.XZ:
        return lzma.compress(data)
    if kind is Compression.DEFLATE:
        return zlib.compress(data)
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, kind.value) as stream:
        stream.write(data)
    return bytes(target.getvalue())


KINDS = [kind for kind in Compression if kind not in (Compression.AUTO, Compression.NONE)]


@pytest.mark.parametrize("kind", KINDS)
def test_contents_come_back_whole_in_parts_of_any_size(kind: Compression) -> None:
    packed = _pack(kind, TEXT[:300_000]) + _pack(kind, TEXT[300_000:])
    assert io.BufferedReader(Decompressed(io.BytesIO(packed), kind)).read() == TEXT
    file = Decompressed(io.BytesIO(packed), kind)
    assert file.seek(100_001) == 100_001
    assert (file.read(7) or b"") == TEXT[100_001:100_008]
    assert b"".join(iter(lambda: file.read(1 << 20) or b"", b"")) == TEXT[100_008:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_cut_off_or_is_none_is_damaged(kind: Compression) -> None:
    packed = _pack(kind, TEXT)
    for damaged in (packed[: len(packed) // 2], packed[:-3], b"not compressed at all, and long enough to see it"):
        file = Decompressed(io.BytesIO(damaged), kind)
        with pytest.raises(DamagedFileError):
            list(iter(lambda file=file: file.read(1 << 20), b""))


@pytest.mark.parametrize("kind", KINDS)
def test_contents_that_are_shorter_than_what_was_read_are_damaged(kind: Compression) -> None:
    with pytest.raises(DamagedFileError, match="its text has 4 bytes, but 5 were read before"):
        Decompressed(io.BytesIO(_pack(kind, b"four")), kind).seek(5)


def test_an_error_of_the_file_is_no_damage() -> None:
    class Away(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError(5, "Input/output error")

    for kind in KINDS:
        with pytest.raises(OSError, match="Input/output error"):
            Decompressed(Away(), kind).read(10)


def test_the_end_of_a_name_tells_the_compression() -> None:
    assert {compression_of(f"a.b{ending.upper()}") for ending in ENDINGS} == set(KINDS)
    assert compression_of("gz") is Compression.NONE
    assert compression_of("a.gz", Compression.NONE) is Compression.NONE
    assert compression_of("a", Compression.GZIP) is Compression.GZIP
