"""CSV files of stream programs."""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.composite_types import RowTypeInfo
from airflow_pipelines.datastream.common.csv_row import (
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    field_reader,
    field_writer,
    line_of_row,
)
from airflow_pipelines.datastream.common.row import Row, RowKind, checked_row
from airflow_pipelines.datastream.common.type_information import TypeConversionError, TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.datastream.connectors.file_formats import BulkWriter, BulkWriterFactory, StreamFormat
from airflow_pipelines.datastream.formats.csv_schema import CsvSchema, CsvSchemaBuilder

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]

_log = logging.getLogger("airflow_pipelines.datastream")


@dataclass(frozen=True)
class CsvReaderFormat(StreamFormat):
    r"""The format of CSV files that are read as rows. Use :meth:`for_schema` to make one.

    :param charset_name: the character set
    :param schema: the columns and the dialect
    :param ignores_parse_errors: True to leave out rows that cannot be read

    >>> import pathlib, tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
    >>> from airflow_pipelines.datastream.common import Types
    >>> from airflow_pipelines.datastream.connectors import FileSource
    >>> from airflow_pipelines.datastream.formats.csv import CsvReaderFormat, CsvSchema
    >>> schema = CsvSchema.builder().add_string_column("fruit").add_number_column("price", Types.DOUBLE()).set_use_header().build()
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = pathlib.Path(folder, "sales.csv").write_text('fruit,price\n"pears, green",2.5\nplums,\n')
    ...     source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), folder).build()
    ...     list(env.from_source(source, WatermarkStrategy.no_watermarks(), "sales").execute_and_collect())
    [Row(fruit='pears, green', price=2.5), Row(fruit='plums', price=None)]
    """

    schema: CsvSchema = field(default_factory=CsvSchema)
    ignores_parse_errors: bool = False

    @staticmethod
    def for_schema(schema: CsvSchema, charset_name: str = "UTF-8") -> CsvReaderFormat:
        """Return the format for files with some columns.

        :param schema: the columns and the dialect
        :param charset_name: the character set of the files
        :returns: the format
        """
        return CsvReaderFormat(charset_name, checks.instance("schema", schema, CsvSchema, "use CsvSchema.builder()"))

    def with_ignore_parse_errors(self) -> CsvReaderFormat:
        """Return the format that leaves out rows that cannot be read. Their number is logged for each file.

        :returns: the format
        """
        return replace(self, ignores_parse_errors=True)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self.schema.row_type

    def records(self, path: str, stream: IO[bytes]) -> Iterator[Row]:
        """Yield the rows of a file."""
        lines = _Lines(self.lines(path, stream, newline=""), self.schema.dialect.comments)
        records = csv.reader(lines, **self.schema.dialect.options())
        order = self._read_header(path, records)
        if self.schema.skips_first_row:
            next(records, None)
        names, readers = self.schema.names, self._readers()
        left_out = 0
        while True:
            try:
                fields = next(records, None)
                if fields is None:
                    break
                if fields:
                    yield checked_row(self._values(fields, order, readers), names, RowKind.INSERT)
            except (ValueError, csv.Error, TypeConversionError) as error:
                if lines.error is not None or not self.ignores_parse_errors:
                    raise lines.error or ValueError(
                        f"The file {path!r}, line {lines.number}, cannot be read as CSV: {error}"
                    ) from None
                left_out += 1
        if left_out:
            _log.warning("The file %r has %d rows that cannot be read as CSV; they are left out", path, left_out)

    def _readers(self) -> list[Callable[[str], Any]]:
        return [field_reader(each, dialect) for each, dialect in zip(self.schema.types, self.schema.dialects, strict=True)]

    def _read_header(self, path: str, records: Iterator[list[str]]) -> Sequence[int]:
        """Read the header if there is one, and return the number of the field of each column."""
        schema = self.schema
        in_order = range(len(schema.names))
        header = next(records, None) if schema.has_header else None
        if header is None:
            return in_order
        header = [name.strip() for name in header]
        if schema.is_header_strict and tuple(header) != schema.names:
            raise ValueError(f"The file {path!r} has the header {header}, and the columns are {list(schema.names)}")
        if not schema.reorders_columns:
            return in_order
        missing = [name for name in schema.names if name not in header]
        if missing:
            raise ValueError(f"The file {path!r} has the header {header}, and no column {missing[0]!r}")
        return [header.index(name) for name in schema.names]

    def _values(self, fields: list[str], order: Sequence[int], readers: list[Callable[[str], Any]]) -> list[Any]:
        if len(fields) != len(readers) and not (self.schema.reorders_columns and len(fields) > max(order)):
            raise ValueError(f"it has {len(fields)} fields, and there are {len(readers)} columns")
        values: list[Any] = []
        try:
            for place, read in zip(order, readers, strict=True):
                values.append(read(fields[place]))
        except TypeConversionError as error:
            raise error.below(f"column {self.schema.names[len(values)]!r}") from None
        return values


class _Lines(Iterator[str]):
    """The lines of a file, counted, perhaps without comments.

    :param lines: the lines with their ends
    :param comments: True to leave out lines that begin with ``#``
    """

    def __init__(self, lines: Iterator[str], comments: bool) -> None:
        self._lines = lines
        self._comments = comments
        self.number = 0
        self.error: ValueError | None = None
        """The error for which the file itself cannot be read."""

    def __next__(self) -> str:
        try:
            while True:
                line = next(self._lines)
                self.number += 1
                if self.number == 1:
                    line = line.removeprefix("\ufeff")
                if not (self._comments and line.startswith("#")):
                    return line
        except ValueError as error:
            self.error = error
            raise


class CsvBulkWriters:
    r"""Factories of writers of CSV files.

    >>> import pathlib, tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.connectors import BucketAssigner, FileSink
    >>> from airflow_pipelines.datastream.formats.csv import CsvBulkWriters, CsvSchema
    >>> schema = CsvSchema.builder().add_string_column("fruit").add_number_column("number").set_use_header().build()
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     builder = FileSink.for_bulk_format(folder, CsvBulkWriters.for_schema(schema))
    ...     sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    ...     end = env.from_collection([("pears, green", 2), ("plums", None)]).sink_to(sink)
    ...     result = env.execute("sales")
    ...     [file.read_text() for file in pathlib.Path(folder).iterdir()]
    ['fruit,number\n"pears, green",2\nplums,\n']
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Return a factory of writers for rows.

        :param schema: the columns and the dialect; with ``set_use_header`` each file begins with a header
        :returns: the factory
        """
        return _CsvWriterFactory(checks.instance("schema", schema, CsvSchema, "use CsvSchema.builder()"))


@dataclass(frozen=True)
class _CsvWriterFactory(BulkWriterFactory):
    schema: CsvSchema

    def create(self, stream: IO[bytes]) -> BulkWriter:
        return _CsvWriter(self.schema, stream)

    @property
    def can_concatenate(self) -> bool:
        return not self.schema.has_header


class _CsvWriter(BulkWriter):
    def __init__(self, schema: CsvSchema, stream: IO[bytes]) -> None:
        self._stream = stream
        self._row_type, self._dialect = schema.row_type, schema.dialect
        self._writers = [field_writer(each, dialect) for each, dialect in zip(schema.types, schema.dialects, strict=True)]
        if schema.has_header:
            names = RowTypeInfo([Types.STRING()] * schema.size(), schema.names)
            stream.write(line_of_row(schema.names, names, [str] * schema.size(), schema.dialect))

    def add_element(self, element: Any) -> None:
        self._stream.write(line_of_row(element, self._row_type, self._writers, self._dialect))

    def finish(self) -> None:
        """Do nothing: each line is written at once."""
