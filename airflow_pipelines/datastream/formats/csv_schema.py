"""The columns and the dialect of CSV files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo
from airflow_pipelines.datastream.common.composite_types import RowTypeInfo
from airflow_pipelines.datastream.common.csv_row import CsvDialect, field_reader
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types

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
