"""Formats that convert the bytes of a file to records."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types

_READ_SIZE = 1 << 16


@dataclass(frozen=True)
class StreamFormat:
    """The format of a file that is read as lines of text. Use :meth:`text_line_format` to make one.

    Files that end in ``.gz``, ``.gzip``, ``.bz2``, ``.xz`` and ``.deflate`` are decompressed.

    :param charset_name: the character set
    """

    charset_name: str = "UTF-8"

    def __post_init__(self) -> None:
        checks.charset("charset_name", self.charset_name)

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Return the format for lines of text.

        :param charset_name: the character set
        :returns: the format
        """
        return StreamFormat(charset_name)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of text.

        :returns: the type
        """
        return Types.STRING()

    def records(self, path: str, stream: IO[bytes]) -> Iterator[str]:
        """Yield the lines of a file, without their ends.

        :param path: the path of the file
        :param stream: the bytes of the file
        :returns: the lines
        :raises ValueError: if a line is not text in the character set
        """
        suffix = PurePosixPath(path).suffix.lower()
        plain = _DECOMPRESSORS[suffix](stream) if suffix in _DECOMPRESSORS else stream
        try:
            for line in io.TextIOWrapper(cast(IO[bytes], plain), encoding=self.charset_name):
                yield line.removesuffix("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"The file {path!r} is no text in {self.charset_name} ({error.reason} at byte {error.object[error.start]:#04x}): "
                "name its character set in StreamFormat.text_line_format(...)"
            ) from None


class _Inflated(io.RawIOBase):
    """A stream of bytes in the zlib format, decompressed while they are read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._inflate = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inflate.decompress(self._inflate.unconsumed_tail, len(buffer))
        while not data and not self._inflate.eof:
            compressed = self._stream.read(_READ_SIZE)
            if not compressed:
                raise EOFError("the compressed file ends before its data do")
            data = self._inflate.decompress(compressed, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _gzip(stream: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], gzip.GzipFile(fileobj=stream))


_DECOMPRESSORS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": _gzip,
    ".gzip": _gzip,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".deflate": lambda stream: io.BufferedReader(_Inflated(stream)),
}
