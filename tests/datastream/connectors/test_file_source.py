from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_pipelines.datastream.common.time import Duration
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.datastream.connectors.file_formats import StreamFormat
from airflow_pipelines.datastream.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSplitAssignerProvider,
)
from airflow_pipelines.streams.sources import SourceReader

LINES = StreamFormat.text_line_format()


def _rest(reader: SourceReader, limit: int = 2) -> list[str]:
    values: list[str] = []
    for _ in range(100):
        polled = reader.poll(limit)
        assert len(polled.values) <= limit
        values += polled.values
        if polled.finished:
            reader.close()
            return values
    raise AssertionError("the reader does not end")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "b.txt": "b1\nb2\n",
        "a.txt": "a1\r\na2\n\na4",
        "in/c[1].txt": "c1\n",
        "_hidden": "no\n",
        ".in/d.txt": "no\n",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode())
    return tmp_path


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_reads_the_lines_of_all_files_in_order_of_names(folder: Path, limit: int) -> None:
    source = FileSource.for_record_stream_format(LINES, str(folder)).process_static_file_set().build()
    assert source.is_bounded
    assert source.get_produced_type() == Types.STRING()
    assert _rest(source.open((0, 1), None), limit) == ["a1", "a2", "", "a4", "b1", "b2", "c1"]


def test_goes_on_from_every_position(folder: Path) -> None:
    source = FileSource.for_record_stream_format(LINES, f"file://{folder}").build()
    for before in range(8):
        reader = source.open((0, 1), None)
        read = [value for _ in range(before) for value in reader.poll(1).values]
        reader.close()
        (folder / "new.txt").write_text("not among the files that were there")
        assert read + _rest(source.open((0, 1), reader.position())) == ["a1", "a2", "", "a4", "b1", "b2", "c1"]
        (folder / "new.txt").unlink()


def test_each_file_is_read_by_one_task(folder: Path) -> None:
    source = FileSource.for_record_stream_format(LINES, str(folder)).build()
    parts = [_rest(source.open(split, None)) for split in source.splits(3)]
    assert sorted(line for part in parts for line in part) == ["", "a1", "a2", "a4", "b1", "b2", "c1"]
    assert all({"a1", "a2", "a4"} <= set(part) or not {"a1", "a2", "a4"} & set(part) for part in parts)


def test_decompresses_by_the_end_of_the_name(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    packed = {
        "a.gz": gzip.compress(text.encode()),
        "b.gzip": gzip.compress(text.encode()),
        "c.bz2": bz2.compress(text.encode()),
        "d.xz": lzma.compress(text.encode()),
        "e.deflate": zlib.compress(text.encode()),
        "f.zst": pa.Codec("zstd").compress(text.encode(), asbytes=True),
    }
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
        source = FileSource.for_record_stream_format(LINES, str(tmp_path / name)).build()
        assert _rest(source.open((0, 1), None), 5_000) == text.splitlines()
    (tmp_path / "cut.deflate").write_bytes(packed["e.deflate"][:100])
    with pytest.raises(ValueError, match=r"cut.deflate' cannot be decompressed as its name says: .*ends before its data do"):
        _rest(FileSource.for_record_stream_format(LINES, str(tmp_path / "cut.deflate")).build().open((0, 1), None), 50_000)


def test_reads_character_sets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("é\n".encode("ISO-8859-1"))
    path = str(tmp_path / "a.txt")
    latin = FileSource.for_record_stream_format(StreamFormat.text_line_format("ISO-8859-1"), path).build()
    assert _rest(latin.open((0, 1), None)) == ["é"]
    with pytest.raises(ValueError, match=r"a.txt' is no text in UTF-8 .*0xe9.*name its character set"):
        _rest(FileSource.for_record_stream_format(LINES, path).build().open((0, 1), None))


def test_a_watched_folder_gives_each_file_once(folder: Path) -> None:
    builder = FileSource.for_record_stream_format(LINES, str(folder)).monitor_continuously(Duration.of_millis(1))
    source = builder.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator()).build()
    assert not source.is_bounded
    reader = source.open((0, 1), None)
    assert reader.poll(100).values == ["a1", "a2", "", "a4", "b1", "b2", "c1"]
    (folder / "new.txt").write_text("n1\nn2\n")
    found: list[str] = []
    while not found:
        found = reader.poll(1).values
    assert found == ["n1"]
    again = source.open((0, 1), reader.position())
    assert again.poll(100).values == ["n2"]
    polled = again.poll(100)
    assert (polled.values, polled.finished) == ([], False)


def test_a_part_of_a_folder_has_no_input_before_its_first_file(tmp_path: Path) -> None:
    source = FileSource.for_record_stream_format(LINES, str(tmp_path)).monitor_continuously(Duration.of_millis(1)).build()
    reader = source.open((0, 1), None)
    reader.poll(10)
    assert not reader.has_input
    (tmp_path / "a.txt").write_text("a\n")
    while not reader.poll(10).values:
        assert not reader.has_input
    assert reader.has_input
    assert source.open((0, 1), reader.position()).has_input


def test_says_what_is_wrong(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"/nowhere', and there is neither a file nor a folder"):
        FileSource.for_record_stream_format(LINES, str(folder / "nowhere")).build().open((0, 1), None)
    source = FileSource.for_record_stream_format(LINES, str(folder / "a.txt")).build()
    reader = source.open((0, 1), None)
    reader.poll(3)
    (folder / "a.txt").write_text("short\n")
    with pytest.raises(ValueError, match=r"a.txt' has 1 records, and 3 were read before"):
        source.open((0, 1), reader.position()).poll(1)
    (folder / "a.txt").write_text("a1\na2\n\na4\nadded\n")
    assert _rest(source.open((0, 1), reader.position())) == ["a4", "added"]
    for rewritten in ("a1\nother\n\na4\n", "b1\nb2\nb3\nb4\n", "new first\na1\na2\n\na4\n", "a1\n\na2\na4\n"):
        (folder / "a.txt").write_text(rewritten)
        with pytest.raises(ValueError, match=r"The first 3 records of the file .*a.txt' are others .* Put back the file as it was"):
            source.open((0, 1), reader.position()).poll(1)
    # A position that a release before this one kept says nothing of what the records were.
    assert _rest(source.open((0, 1), reader.position()[:3])) == ["a4"]
    with pytest.raises(ValueError, match="at least one path"):
        FileSource.for_record_stream_format(LINES)
    builder = FileSource.for_record_stream_format(LINES, "/x")
    with pytest.raises(ValueError, match="at least 1"):
        builder.monitor_continuously(Duration.of_nanos(1))
    with pytest.raises(TypeError, match="takes a FileSplitAssignerProvider"):
        builder.set_split_assigner("local")  # type: ignore[arg-type]
    assert builder.set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner()) is builder
