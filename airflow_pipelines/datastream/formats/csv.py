"""CSV files of stream programs."""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any, Self

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo
from airflow_pipelines.datastream.common.composite_types import RowTypeInfo
from airflow_pipelines.datastream.common.csv_row import (
    CsvDialect,
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

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]

_log = logging.getLogger("airflow_pipelines.datastream")
_NUMBERS = {
    BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.FLOAT, BasicType.DOUBLE, BasicType.BIG_INT,
    BasicType.BIG_DEC,
}  # fmt: skip


@dataclass(frozen=True)
class CsvSchema:
    """The columns and the dialect of CSV files. Use :meth:`builder` to make one.

    :param names: the names of the columns
    :param types: their types
    :param dialects: the dialect of each column, which differ in the separator of the elements of an array
    :param dialect: the dialect of the lines
    :param has_header: True if the first line has the names of the columns
    :param reorders_columns: True to find the columns by the names in the header instead of by their order
    :param is_header_strict: True to refuse a file whose header has other names, or these in another order
    :param skips_first_row: True to leave out the first row
    """

    names: tuple[str, ...] = ()
    types: tuple[TypeInformation, ...] = ()
    dialects: tuple[CsvDialect, ...] = ()
    dialect: CsvDialect = field(default_factory=CsvDialect)
    has_header: bool = False
    reorders_columns: bool = False
    is_header_strict: bool = False
    skips_first_row: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Return a builder.

        :returns: the builder
        """
        return CsvSchemaBuilder()

    @property
    def row_type(self) -> RowTypeInfo:
        """The type of the rows."""
        return RowTypeInfo(self.types, self.names)

    def size(self) -> int:
        """Return the number of columns.

        :returns: the number
        """
        return len(self.names)


class CsvSchemaBuilder:
    """A builder of schemas of CSV files.

    >>> from airflow_pipelines.datastream.common import Types
    >>> from airflow_pipelines.datastream.formats.csv import CsvSchema
    >>> builder = CsvSchema.builder().add_string_column("fruit").add_number_column("price", Types.DOUBLE())
    >>> schema = builder.add_array_column("shops", separator="|").set_column_separator(";").set_use_header().build()
    >>> schema.size(), schema.row_type
    (3, Types.ROW_NAMED(['fruit', 'price', 'shops'], [Types.STRING(), Types.DOUBLE(), Types.LIST(Types.STRING())]))
    """

    def __init__(self) -> None:
        self._schema = CsvSchema()

    def add_string_column(self, column_name: str) -> Self:
        """Add a column of texts.

        :param column_name: its name
        :returns: this object
        """
        return self._add(column_name, Types.STRING())

    def add_number_column(self, column_name: str, number_type: TypeInformation | None = None) -> Self:
        """Add a column of numbers.

        :param column_name: its name
        :param number_type: a type of numbers, such as ``Types.DOUBLE()``; ``Types.LONG()`` by default
        :returns: this object
        """
        type_info = Types.LONG() if number_type is None else number_type
        if not isinstance(type_info, BasicTypeInfo) or type_info.basic_type not in _NUMBERS:
            raise ValueError(f"number_type takes a type of numbers such as Types.DOUBLE(), not {number_type!r:.80}")
        return self._add(column_name, type_info)

    def add_boolean_column(self, column_name: str) -> Self:
        """Add a column of ``true`` and ``false``.

        :param column_name: its name
        :returns: this object
        """
        return self._add(column_name, Types.BOOLEAN())

    def add_array_column(self, column_name: str, separator: str = ";", element_type: TypeInformation | None = None) -> Self:
        """Add a column of arrays.

        :param column_name: its name
        :param separator: the separator of two elements
        :param element_type: the type of the elements; ``Types.STRING()`` by default
        :returns: this object
        """
        checks.text("separator", separator)
        return self._add(column_name, Types.LIST(element_type or Types.STRING()), separator)

    def add_column(self, column_name: str, type_info: TypeInformation) -> Self:
        """Add a column of any basic type, such as dates, or of lists of such values.

        :param column_name: its name
        :param type_info: its type
        :returns: this object
        """
        return self._add(column_name, checks.instance("type_info", type_info, TypeInformation, "use Types.SQL_DATE() or another"))

    def add_columns_from(self, schema: CsvSchema) -> Self:
        """Add the columns of another schema.

        :param schema: the schema
        :returns: this object
        """
        for name, type_info, dialect in zip(schema.names, schema.types, schema.dialects, strict=True):
            self._add(name, type_info, dialect.array_delimiter)
        return self

    def set_use_header(self, use_header: bool = True) -> Self:
        """Set whether the first line of a file has the names of the columns.

        :param use_header: True if it has
        :returns: this object
        """
        return self._with(has_header=checks.boolean("use_header", use_header))

    def set_reorder_columns(self, reorder: bool = True) -> Self:
        """Set whether the columns are found by the names in the header instead of by their order.

        :param reorder: True to find them by name
        :returns: this object
        """
        return self._with(reorders_columns=checks.boolean("reorder", reorder))

    def set_strict_headers(self, strict: bool = True) -> Self:
        """Set whether a file is refused whose header has other names, or these in another order.

        :param strict: True to refuse it
        :returns: this object
        """
        return self._with(is_header_strict=checks.boolean("strict", strict))

    def set_skip_first_data_row(self, skip: bool = True) -> Self:
        """Set whether the first row, after the header, is left out.

        :param skip: True to leave it out
        :returns: this object
        """
        return self._with(skips_first_row=checks.boolean("skip", skip))

    def set_allow_comments(self, allow: bool = True) -> Self:
        """Set whether lines that begin with ``#`` are left out.

        :param allow: True to leave them out
        :returns: this object
        """
        return self._with_dialect(comments=checks.boolean("allow", allow))

    def set_column_separator(self, char: str) -> Self:
        """Set the separator of two columns.

        :param char: one character; a comma by default
        :returns: this object
        """
        return self._with_dialect(delimiter=checks.character("char", char))

    def set_array_element_separator(self, separator: str) -> Self:
        """Set the separator of two elements of arrays, for the columns that were added so far.

        :param separator: the separator
        :returns: this object
        """
        checks.text("separator", separator)
        return self._with(dialects=tuple(replace(each, array_delimiter=separator) for each in self._schema.dialects))

    def set_quote_char(self, char: str) -> Self:
        """Set the quote around a field with special characters.

        :param char: one character; a double quote by default
        :returns: this object
        """
        return self._with_dialect(quote=checks.character("char", char))

    def disable_quote_char(self) -> Self:
        """Let quotes be characters like others.

        :returns: this object
        """
        return self._with_dialect(quote=None)

    def set_escape_char(self, char: str) -> Self:
        """Set the character that makes a special character an ordinary one.

        :param char: one character; none by default
        :returns: this object
        """
        return self._with_dialect(escape=checks.character("char", char))

    def disable_escape_char(self) -> Self:
        """Let no character escape others. This is the default.

        :returns: this object
        """
        return self._with_dialect(escape=None)

    def set_line_separator(self, separator: str) -> Self:
        """Set the end of lines that are written. Files may have all kinds of line ends.

        :param separator: the end
        :returns: this object
        """
        if separator not in ("\n", "\r", "\r\n"):
            raise ValueError(f"separator must be '\\n', '\\r' or '\\r\\n', not {separator!r}")
        return self._with_dialect(line_end=separator)

    def set_null_value(self, null_value: str) -> Self:
        """Set the text of None. Without one, an empty field is None where it is no text.

        :param null_value: the text
        :returns: this object
        """
        if not isinstance(null_value, str):
            raise TypeError(f"null_value takes a str, not {null_value!r:.60}")
        return self._with_dialect(null_literal=null_value)

    def build(self) -> CsvSchema:
        """Make the schema.

        :returns: the schema
        :raises ValueError: if it has no columns, or two with one name, or if columns are to be found in a header that there is not
        """
        schema = self._schema
        if not schema.names:
            raise ValueError("A CsvSchema needs columns: CsvSchema.builder().add_string_column('name')")
        if (schema.reorders_columns or schema.is_header_strict) and not schema.has_header:
            raise ValueError("set_reorder_columns() and set_strict_headers() need a header: add set_use_header()")
        dialects = tuple(replace(schema.dialect, array_delimiter=each.array_delimiter) for each in schema.dialects)
        built = replace(schema, dialects=dialects)
        built.row_type  # noqa: B018 (refuses two columns with one name)
        return built

    def _add(self, name: str, type_info: TypeInformation, separator: str = ";") -> Self:
        schema = self._schema
        dialect = CsvDialect(array_delimiter=separator)
        field_reader(type_info, dialect)  # refuses a type that has no form in CSV
        return self._with(
            names=(*schema.names, checks.text("column_name", name)),
            types=(*schema.types, type_info),
            dialects=(*schema.dialects, dialect),
        )

    def _with(self, **changes: Any) -> Self:
        self._schema = replace(self._schema, **changes)
        return self

    def _with_dialect(self, **changes: Any) -> Self:
        return self._with(dialect=replace(self._schema.dialect, **changes))


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
