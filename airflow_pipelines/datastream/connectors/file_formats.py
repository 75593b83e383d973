"""Formats of files: how a source makes records of their bytes, and how a sink makes their bytes of elements."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any, cast

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.serialization import Encoder
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.systems.files.compression import Compression, DamagedFileError, Decompressed, compression_of

_BUFFER_BYTES = 1 << 16


class FileFormat(ABC):
    """The format of the files of a source."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records.

        :returns: the type
        """

    @abstractmethod
    def records(self, path: str, stream: IO[bytes]) -> Iterator[Any]:
        """Yield the records of a file.

        :param path: the path of the file
        :param stream: the bytes of the file
        :returns: the records in order, the same ones whenever the file is read
        :raises ValueError: if the file does not have this format
        """


@dataclass(frozen=True)
class StreamFormat(FileFormat):
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

    def records(self, path: str, stream: IO[bytes]) -> Iterator[Any]:
        """Yield the lines of a file, without their ends.

        :param path: the path of the file
        :param stream: the bytes of the file
        :returns: the lines
        :raises ValueError: if a line is not text in the character set, or the file is not compressed as its name says
        """
        for line in self.lines(path, stream):
            yield line.removesuffix("\n")

    def lines(self, path: str, stream: IO[bytes], newline: str | None = None) -> Iterator[str]:
        """Yield the lines of a file, with their ends.

        :param path: the path of the file
        :param stream: the bytes of the file
        :param newline: the ends of lines as for :func:`open`: None to replace all kinds by a newline, empty to leave them
        :returns: the lines
        :raises ValueError: if a line is not text in the character set, or the file is not compressed as its name says
        """
        compression = compression_of(path)
        if compression is not Compression.NONE:
            stream = cast(IO[bytes], io.BufferedReader(Decompressed(stream, compression), _BUFFER_BYTES))
        try:
            yield from io.TextIOWrapper(stream, encoding=self.charset_name, newline=newline)
        except DamagedFileError as error:
            raise ValueError(f"The file {path!r} cannot be decompressed as its name says: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(
                f"The file {path!r} is no text in {self.charset_name} ({error.reason} at byte {error.object[error.start]:#04x}): "
                "name its character set in StreamFormat.text_line_format(...)"
            ) from None


class BulkFormat(FileFormat):
    """The format of files that are read as a whole, not as a stream of bytes, such as Parquet."""


class BulkWriter(ABC):
    """A writer of one file."""

    @abstractmethod
    def add_element(self, element: Any) -> None:
        """Add an element to the file. The writer may keep it in memory.

        :param element: the element
        """

    @abstractmethod
    def finish(self) -> None:
        """Write all elements that are still in memory, and the end of the file. The file itself stays open."""


class BulkWriterFactory(ABC):
    """A factory of writers for the files of a sink. It is sent by value, so it holds no open files.

    >>> import json, pathlib, tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.connectors import BucketAssigner, BulkWriter, BulkWriterFactory, FileSink
    >>> class JsonArray(BulkWriter):
    ...     def __init__(self, stream):
    ...         self.stream, self.elements = stream, []
    ...     def add_element(self, element):
    ...         self.elements.append(element)
    ...     def finish(self):
    ...         self.stream.write(json.dumps(self.elements).encode())
    >>> class JsonArrays(BulkWriterFactory):
    ...     def create(self, stream):
    ...         return JsonArray(stream)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = FileSink.for_bulk_format(folder, JsonArrays()).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     end = env.from_collection([1, 2]).sink_to(sink.build())
    ...     result = env.execute("numbers")
    ...     [file.read_text() for file in pathlib.Path(folder).iterdir()]
    ['[1, 2]']
    """

    @abstractmethod
    def create(self, stream: IO[bytes]) -> BulkWriter:
        """Create the writer of a file.

        :param stream: the file, which is empty
        :returns: the writer
        """

    def for_type(self, type_info: TypeInformation) -> BulkWriterFactory:
        """Return a factory for elements of a declared type.

        :param type_info: the type of the stream
        :returns: this factory by default
        """
        return self

    @property
    def can_concatenate(self) -> bool:
        """True if the bytes of two files after each other are a file with the elements of both."""
        return False


@dataclass(frozen=True)
class LineWriterFactory(BulkWriterFactory):
    """A factory of writers that write each element as a line.

    :param encoder: the encoder of the lines
    :param to_text: the function that converts an element to text
    """

    encoder: Encoder
    to_text: Callable[[Any], str] = str

    def create(self, stream: IO[bytes]) -> BulkWriter:
        """Create the writer of a file."""
        return _LineWriter(self, stream)

    def for_type(self, type_info: TypeInformation) -> BulkWriterFactory:
        """Return a factory that writes elements as ``print`` shows values of the type."""
        return replace(self, to_text=type_info.to_text)

    @property
    def can_concatenate(self) -> bool:
        """True."""
        return True


class _LineWriter(BulkWriter):
    def __init__(self, factory: LineWriterFactory, stream: IO[bytes]) -> None:
        self._to_text, self._encode, self._write = factory.to_text, factory.encoder.encode, stream.write

    def add_element(self, element: Any) -> None:
        self._write(self._encode(self._to_text(element)))

    def finish(self) -> None:
        """Do nothing: each line is written at once."""
