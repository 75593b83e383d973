"""Rows as lines of CSV."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from airflow_pipelines.datastream.common import checks, field_text
from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo
from airflow_pipelines.datastream.common.composite_types import ArrayTypeInfo, ListTypeInfo
from airflow_pipelines.datastream.common.row import Row
from airflow_pipelines.datastream.common.serialization import DeserializationSchema, SerializationError, SerializationSchema
from airflow_pipelines.datastream.common.type_information import TypeConversionError, TypeInformation
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo

_Schema = TypeVar("_Schema")


@dataclass(frozen=True)
class CsvDialect:
    """The dialect of CSV lines.

    :param delimiter: the separator of two fields
    :param array_delimiter: the separator of two elements of a field that is an array
    :param quote: the quote around a field that contains a special character; None for none
    :param escape: the character that escapes a special character; None for none
    :param null_literal: the text of None; None for an empty field
    :param comments: True to skip a line that begins with ``#``
    :param line_end: the end of a line that is written
    """

    delimiter: str = ","
    array_delimiter: str = ";"
    quote: str | None = '"'
    escape: str | None = None
    null_literal: str | None = None
    comments: bool = False
    line_end: str = "\n"

    def options(self) -> dict[str, Any]:
        """Return the options of Python's CSV reader and writer."""
        quoting = csv.QUOTE_NONE if self.quote is None else csv.QUOTE_MINIMAL
        return {"delimiter": self.delimiter, "quotechar": self.quote, "escapechar": self.escape, "quoting": quoting, "strict": True}


class _Builder(Generic[_Schema]):
    """The settings that both builders share.

    :param type_info: the type of the rows
    """

    def __init__(self, type_info: RowTypeInfo) -> None:
        self._row_type = checks.instance("type_info", type_info, RowTypeInfo, "use Types.ROW_NAMED([names], [types])")
        self._dialect = CsvDialect()

    def set_field_delimiter(self, delimiter: str) -> Self:
        """Set the separator of two fields.

        :param delimiter: one character; a comma by default
        :returns: this object
        """
        return self._with(delimiter=checks.character("delimiter", delimiter))

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        """Set the separator of two elements of a field that is an array.

        :param delimiter: the separator; a semicolon by default
        :returns: this object
        """
        return self._with(array_delimiter=checks.text("delimiter", delimiter))

    def set_quote_character(self, c: str) -> Self:
        """Set the quote around a field that contains a special character.

        :param c: one character; a double quote by default
        :returns: this object
        """
        return self._with(quote=checks.character("c", c))

    def set_escape_character(self, c: str) -> Self:
        """Set the character that escapes a special character.

        :param c: one character; none by default
        :returns: this object
        """
        return self._with(escape=checks.character("c", c))

    def set_null_literal(self, null_literal: str) -> Self:
        """Set the text of None.

        :param null_literal: the text
        :returns: this object
        """
        if not isinstance(null_literal, str):
            raise TypeError(f"null_literal takes a str, not {null_literal!r:.60}")
        return self._with(null_literal=null_literal)

    def _with(self, **changes: Any) -> Self:
        self._dialect = replace(self._dialect, **changes)
        return self


class CsvRowDeserializationSchema(DeserializationSchema):
    """A schema that converts lines of CSV to rows. Use its ``Builder`` to make one.

    :param row_type: the type of the rows: basic types, and lists of them
    :param dialect: the dialect of the lines
    :param ignore_parse_errors: True to skip a line that cannot be read

    >>> from airflow_pipelines.datastream.common import CsvRowDeserializationSchema, Types
    >>> sale = Types.ROW_NAMED(["fruit", "number", "price"], [Types.STRING(), Types.INT(), Types.DOUBLE()])
    >>> schema = CsvRowDeserializationSchema.Builder(sale).set_field_delimiter(";").build()
    >>> schema.deserialize(b'"pears; green";3;')
    Row(fruit='pears; green', number=3, price=None)
    """

    class Builder(_Builder["CsvRowDeserializationSchema"]):
        """A builder of schemas.

        :param type_info: the type of the rows
        """

        def __init__(self, type_info: RowTypeInfo) -> None:
            super().__init__(type_info)
            self._ignore_parse_errors = False

        def set_allow_comments(self, allow_comments: bool) -> Self:
            """Set whether a line that begins with ``#`` is skipped.

            :param allow_comments: True to skip it
            :returns: this object
            """
            return self._with(comments=checks.boolean("allow_comments", allow_comments))

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> Self:
            """Set whether a line that cannot be read is skipped.

            :param ignore_parse_errors: True to skip it
            :returns: this object
            """
            self._ignore_parse_errors = checks.boolean("ignore_parse_errors", ignore_parse_errors)
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """Make the schema.

            :returns: the schema
            """
            return CsvRowDeserializationSchema(self._row_type, self._dialect, self._ignore_parse_errors)

    def __init__(self, row_type: RowTypeInfo, dialect: CsvDialect | None = None, ignore_parse_errors: bool = False) -> None:
        self._row_type = row_type
        self._dialect = dialect or CsvDialect()
        self._ignore_parse_errors = ignore_parse_errors
        self._readers = _field_functions(row_type, lambda each: field_reader(each, self._dialect))

    def deserialize(self, message: bytes) -> Any:
        """See :meth:`DeserializationSchema.deserialize`."""
        try:
            text = message.decode()
            return None if self._dialect.comments and text.startswith("#") else self._row(text)
        except (ValueError, csv.Error, TypeConversionError) as error:
            if self._ignore_parse_errors:
                return None
            raise SerializationError(f"The line {message!r:.200} cannot be read as CSV: {error}") from None

    def get_produced_type(self) -> TypeInformation:
        """See :meth:`DeserializationSchema.get_produced_type`."""
        return self._row_type

    def _row(self, text: str) -> Row:
        fields = next(csv.reader(io.StringIO(text, newline=""), **self._dialect.options()), [])
        if len(fields) != len(self._readers):
            raise ValueError(f"it has {len(fields)} fields, and the type has {len(self._readers)}")
        names = self._row_type.get_field_names()
        return Row.of([_at(name, read, field) for (name, read), field in zip(self._readers, fields, strict=True)], names)

    def __reduce__(self) -> Any:
        return CsvRowDeserializationSchema, (self._row_type, self._dialect, self._ignore_parse_errors)


class CsvRowSerializationSchema(SerializationSchema):
    """A schema that converts rows to lines of CSV. Use its ``Builder`` to make one.

    :param row_type: the type of the rows: basic types, and lists of them
    :param dialect: the dialect of the lines

    >>> from airflow_pipelines.datastream.common import CsvRowSerializationSchema, Types
    >>> sale = Types.ROW_NAMED(["fruit", "number", "price"], [Types.STRING(), Types.INT(), Types.DOUBLE()])
    >>> schema = CsvRowSerializationSchema.Builder(sale).set_line_terminator("").set_null_literal("-").build()
    >>> schema.serialize(("pears, green", 3, None))
    b'"pears, green",3,-'
    """

    class Builder(_Builder["CsvRowSerializationSchema"]):
        """A builder of schemas.

        :param type_info: the type of the rows
        """

        def set_line_terminator(self, delimiter: str) -> Self:
            """Set the end of a line.

            :param delimiter: the end; a newline by default; may be empty
            :returns: this object
            """
            if delimiter not in ("", "\n", "\r", "\r\n"):
                raise ValueError(f"delimiter must be '', '\\n', '\\r' or '\\r\\n', not {delimiter!r}")
            return self._with(line_end=delimiter)

        def disable_quote_character(self) -> Self:
            """Disable the quoting of fields.

            :returns: this object
            """
            return self._with(quote=None)

        def build(self) -> CsvRowSerializationSchema:
            """Make the schema.

            :returns: the schema
            """
            return CsvRowSerializationSchema(self._row_type, self._dialect)

    def __init__(self, row_type: RowTypeInfo, dialect: CsvDialect | None = None) -> None:
        self._row_type = row_type
        self._dialect = dialect or CsvDialect()
        self._writers = _field_functions(row_type, lambda each: field_writer(each, self._dialect))

    def serialize(self, element: Any) -> bytes:
        """See :meth:`SerializationSchema.serialize`."""
        return line_of_row(element, self._row_type, [write for _, write in self._writers], self._dialect)

    def __reduce__(self) -> Any:
        return CsvRowSerializationSchema, (self._row_type, self._dialect)


def _field_functions(
    row_type: RowTypeInfo, function: Callable[[TypeInformation], Callable[[Any], Any]]
) -> list[tuple[str, Callable[[Any], Any]]]:
    return [(name, function(type_)) for name, type_ in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)]


def line_of_row(element: Any, row_type: RowTypeInfo, writers: Sequence[Callable[[Any], str]], dialect: CsvDialect) -> bytes:
    """Return a row as a line.

    :param element: a row, a tuple, a list or a dict that fits the type
    :param row_type: the type of the row
    :param writers: for each field the result of :func:`field_writer`
    :param dialect: the dialect of the line
    :returns: the line with its end
    :raises SerializationError: if it does not fit, or cannot be written in this dialect
    """
    try:
        fields = [write(value) for write, value in zip(writers, row_type.convert(element), strict=True)]
        text = _join_fields(fields, dialect.options())
        if dialect.comments and text.startswith("#"):
            if dialect.quote is None:
                raise csv.Error("it begins with #, which makes it a comment")
            text = _join_fields(fields, {**dialect.options(), "quoting": csv.QUOTE_ALL})
    except (TypeConversionError, csv.Error) as error:
        raise SerializationError(f"{element!r:.200} cannot be written as CSV: {error}") from None
    return (text + dialect.line_end).encode()


def _join_fields(fields: list[str], options: dict[str, Any]) -> str:
    line = io.StringIO(newline="")
    # The writer quotes only its own line terminator, but readers accept CR and LF, so both must be quoted.
    csv.writer(line, lineterminator="\r\n", **options).writerow(fields)
    return line.getvalue().removesuffix("\r\n")


def _at(name: str, read: Callable[[str], Any], field: str) -> Any:
    try:
        return read(field)
    except TypeConversionError as error:
        raise error.below(f"field {name!r}") from None


def field_reader(type_: TypeInformation, dialect: CsvDialect) -> Callable[[str], Any]:
    """Return a function that reads the text of a field.

    :param type_: the type of the field: a basic one, or a list of such values
    :param dialect: the dialect
    :returns: a function of the text, which raises :class:`TypeConversionError` or ``ValueError`` if it is no such value
    :raises TypeError: if the type has no form in CSV
    """
    read = _present_reader(type_, dialect)
    is_text = isinstance(type_, BasicTypeInfo) and type_.basic_type is BasicType.STRING
    # An empty field is a valid text, but not a valid number or date: for those it stands for None.
    nulls = {dialect.null_literal} if dialect.null_literal is not None or is_text else {""}
    return lambda text: None if text in nulls else read(text)


def _present_reader(type_: TypeInformation, dialect: CsvDialect) -> Callable[[str], Any]:
    if isinstance(type_, BasicTypeInfo):
        return field_text.reader(type_)
    element = _element_type(type_)
    if isinstance(type_.convert([]), bytes):
        return lambda text: base64.b64decode(text, validate=True)
    read = field_reader(element, CsvDialect())
    return lambda text: type_.convert([read(each) for each in text.split(dialect.array_delimiter)])


def field_writer(type_: TypeInformation, dialect: CsvDialect) -> Callable[[Any], str]:
    """Return a function that writes a value as the text of a field.

    :param type_: the type of the field: a basic one, or a list of such values
    :param dialect: the dialect
    :returns: a function of a value of the type, or None
    :raises TypeError: if the type has no form in CSV
    """
    null, write = dialect.null_literal or "", _present_writer(type_, dialect)
    return lambda value: null if value is None else write(value)


def _present_writer(type_: TypeInformation, dialect: CsvDialect) -> Callable[[Any], str]:
    if isinstance(type_, BasicTypeInfo):
        return field_text.writer(type_)
    write = field_text.writer(_element_type(type_))
    if isinstance(type_.convert([]), bytes):
        return lambda value: base64.b64encode(value).decode()
    return lambda value: dialect.array_delimiter.join("" if each is None else write(each) for each in value)


def _element_type(type_: TypeInformation) -> BasicTypeInfo:
    if isinstance(type_, (ArrayTypeInfo, ListTypeInfo)) and isinstance(type_.element_type, BasicTypeInfo):
        return type_.element_type
    raise TypeError(f"CSV has no form for {type_!r}: a field is of a basic type, or a list of such values")
