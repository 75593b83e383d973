"""Compressed files: recognising their compression, and reading their contents."""

from __future__ import annotations

import io
import lzma
import zlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Protocol

import pyarrow as pa

_AT_ONCE: Final = 64 << 10
"""The number of bytes that are decompressed at a time.

Where a file is cut off, the contents before are lost from the last multiple of this on.
"""


class Compression(StrEnum):
    """The compression of a file; ``AUTO`` looks at the end of its name."""

    AUTO = "auto"
    NONE = "none"
    GZIP = "gzip"
    BZ2 = "bz2"
    ZSTD = "zstd"
    LZ4 = "lz4"
    XZ = "xz"
    DEFLATE = "deflate"


ENDINGS: Final[Mapping[str, Compression]] = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".bz2": Compression.BZ2,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
    ".lz4": Compression.LZ4,
    ".xz": Compression.XZ,
    ".deflate": Compression.DEFLATE,
}
"""The compression by the end of a name. The first end of each compression is the one of files that are written."""


def compression_of(name: str, chosen: Compression = Compression.AUTO) -> Compression:
    """Return the compression of a file.

    :param name: the name of the file
    :param chosen: the compression that was chosen for it

    >>> compression_of("sales.csv.ZST")
    <Compression.ZSTD: 'zstd'>
    """
    if chosen is not Compression.AUTO:
        return chosen
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    return ENDINGS.get(ending, Compression.NONE)


class DamagedFileError(Exception):
    """The error for a compressed file that is not one, or is cut off."""


class Decompressed(io.RawIOBase):
    """The contents of a compressed file. Files of several parts, one compressed after the other, are read as one.

    :param handle: the file, at its beginning
    :param compression: the compression of the file
    """

    def __init__(self, handle: Any, compression: Compression) -> None:
        super().__init__()
        self._handle = handle
        self._contents = _open_contents(handle, compression)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Skip to an offset of the contents. Called once, at the beginning; all before the offset is decompressed again.

        :raises DamagedFileError: when the contents end before it
        """
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("the contents of a compressed file are read from the beginning on")
        left = offset
        while left:
            passed = len(self.read(left) or b"")
            if not passed:
                raise DamagedFileError(f"its text has {offset - left} bytes, but {offset} were read before")
            left -= passed
        return offset

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes of the contents into a buffer, and return their number; 0 at the end.

        :raises DamagedFileError: when the data is not compressed as it should be, or is cut off
        """
        view = memoryview(buffer).cast("B")
        try:
            data = bytes(self._contents.read(min(len(view), _AT_ONCE)))
        except (EOFError, lzma.LZMAError, zlib.error) as error:
            raise DamagedFileError(str(error)) from error
        except OSError as error:
            if error.errno is not None:
                # The file cannot be read, which does not mean that its contents are damaged.
                raise
            raise DamagedFileError(str(error)) from error
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._handle.close()


class _Contents(Protocol):
    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; none at the end."""


def _open_contents(handle: Any, compression: Compression) -> _Contents:
    if compression is Compression.XZ:
        return lzma.LZMAFile(handle)
    if compression is Compression.DEFLATE:
        return _Inflated(handle)
    return pa.CompressedInputStream(pa.PythonFile(handle, mode="r"), compression.value)  # type: ignore[no-any-return]


class _Inflated:
    """The contents of a file in the zlib format (RFC 1950)."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._inflate = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        data = b"" if self._inflate.eof else self._inflate.decompress(self._inflate.unconsumed_tail, size)
        while not data:
            compressed = self._inflate.unused_data or self._handle.read(_AT_ONCE)
            if self._inflate.eof:
                if not compressed:
                    break
                # Another part begins.
                self._inflate = zlib.decompressobj()
            elif not compressed:
                raise EOFError("the compressed file ends before its data do")
            data = self._inflate.decompress(compressed, size)
        return data
