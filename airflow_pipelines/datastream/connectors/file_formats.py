"""Formats that convert the bytes of a file to records."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.systems.files.compression import Compression, DamagedFileError, Decompressed, compression_of

_BUFFER_BYTES = 1 << 16


@dataclass(frozen=True)
class StreamFormat:
    """The format of a file that is read as lines of text. Use :meth:`text_line_format` to make one.

    Files are decompressed by the end of their names, such as ``.gz``, ``.bz2``, ``.zst``, ``.lz4``, ``.xz`` and ``.deflate``.

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
        :raises ValueError: if a line is not text in the character set, or the file is not compressed as its name says
        """
        compression = compression_of(path)
        if compression is not Compression.NONE:
            stream = cast(IO[bytes], io.BufferedReader(Decompressed(stream, compression), _BUFFER_BYTES))
        try:
            for line in io.TextIOWrapper(stream, encoding=self.charset_name):
                yield line.removesuffix("\n")
        except DamagedFileError as error:
            raise ValueError(f"The file {path!r} cannot be decompressed as its name says: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(
                f"The file {path!r} is no text in {self.charset_name} ({error.reason} at byte {error.object[error.start]:#04x}): "
                "name its character set in StreamFormat.text_line_format(...)"
            ) from None
