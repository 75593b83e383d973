"""Compressed text files: recognising their compression, and reading them from a byte offset of the text."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

_AT_ONCE: Final = 64 << 10
"""The number of bytes that are decompressed at a time.

Where a file is cut off, the text before is lost from the last multiple of this on.
"""


class Compression(StrEnum):
    """The compression of a file; ``AUTO`` looks at the end of its name."""

    AUTO = "auto"
    NONE = "none"
    GZIP = "gzip"
    BZ2 = "bz2"
    ZSTD = "zstd"
    LZ4 = "lz4"


_ENDINGS: Final[Mapping[str, Compression]] = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".bz2": Compression.BZ2,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
    ".lz4": Compression.LZ4,
}


def compression_of(name: str, chosen: Compression) -> Compression:
    """Return the compression of a file.

    :param name: the name of the file
    :param chosen: the value of the connector's option
    """
    if chosen is not Compression.AUTO:
        return chosen
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    return _ENDINGS.get(ending, Compression.NONE)


class DamagedFileError(Exception):
    """The error for a compressed file that is not one, or is cut off."""


class Decompressed:
    """The text of a compressed file. Files of several parts, one compressed after the other, are read as one."""

    def __init__(self, handle: Any, compression: Compression) -> None:
        """Make a reader at the beginning of the text.

        :param handle: the file, at its beginning
        :param compression: the compression of the file
        """
        self._handle = handle
        self._stream = pa.CompressedInputStream(pa.PythonFile(handle, mode="r"), compression.value)

    def seek(self, offset: int) -> None:
        """Skip to a byte offset of the text. Called once, at the beginning; all text before the offset is decompressed again.

        :raises DamagedFileError: when the text ends before it
        """
        left = offset
        while left:
            passed = len(self.read(left))
            if not passed:
                raise DamagedFileError(f"its text has {offset - left} bytes, but {offset} were read before")
            left -= passed

    def read(self, size: int) -> bytes:
        """Return the next bytes of the text, at most ``size``; none at the end.

        :raises DamagedFileError: when the data is not compressed as it should be, or is cut off
        """
        try:
            return bytes(self._stream.read(min(size, _AT_ONCE)))
        except OSError as error:
            if error.errno is not None:
                # The file cannot be read, which does not mean that its contents are damaged.
                raise
            raise DamagedFileError(str(error)) from error

    def close(self) -> None:
        """Close the file."""
        self._handle.close()
