"""The conversion of Arrow tables, such as those of columnar files: their columns match the relation's by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.defaults import Now, wall_clock
from airflow_pipelines.rows.formats.encode import ROWS_AT_ONCE, json_texts
from airflow_pipelines.rows.formats.parsed import Parsed, RecordProblem, RowBuffer
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.formats.scalar_texts import WHOLE_SCALARS
from airflow_pipelines.rows.required_parts import missing_part
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import UNSIGNED_INTEGERS

_CHECKED: Final = UNSIGNED_INTEGERS | {"BINARY", "UUID", "VARIANT", "MAP"}
"""The types whose values have a form of their own, which is checked value by value."""


class TableParser:
    """A parser of the rows of Arrow tables into inserts of one table. The index of a record is the row's number, from 0."""

    def __init__(self, schema: RelationSchema, now: Now = wall_clock) -> None:
        """Make a parser.

        :param schema: the table
        :param now: the clock that a DEFAULT may read
        """
        self._schema = schema
        self._reader = RowReader(schema, now=now)

    def takes(self, name: str) -> bool:
        """Return True if the table has a column for values of a column with this name."""
        return self._reader.place(name) is not None

    def parse_table(self, table: pa.Table, first_index: int) -> Parsed:
        """Convert rows to changes.

        :param table: the rows
        :param first_index: the number of the first one
        """
        return self.parse_sized(table, first_index, table.nbytes)

    def parse_sized(self, table: pa.Table, first_index: int, size: int) -> Parsed:
        """Convert rows that were made from a number of bytes to changes.

        :param table: the rows
        :param first_index: the number of the first one
        :param size: the number of bytes
        """
        return self._parse(table, first_index, RowBuffer(self._schema), size)

    def begin(self, metadata: pa.Table | None = None) -> None:
        """Begin another batch of changes, whose DEFAULTs have a time of their own.

        :param metadata: a connector's metadata of each record, one column for each name; None if it has none
        """
        self._reader.begin(metadata)

    def add_changes(
        self,
        table: pa.Table,
        operations: Sequence[Op],
        numbers: Sequence[int],
        buffer: RowBuffer,
        left_out: Sequence[Set[str]] | None = None,
    ) -> None:
        """Add rows that are inserted, deleted or updated to a buffer.

        :param table: the rows in order
        :param operations: the operation of each row
        :param numbers: the number of the record of each row, for its metadata and errors
        :param buffer: the buffer for the changes and errors
        :param left_out: for each row the table's columns without a value; None for none
        """
        columns = self._columns(table)
        if left_out is None:
            arrays = self._cast(columns, table.num_rows, None if Op.DELETE in operations else numbers)
            if arrays is not None:
                buffer.add_changes(arrays, pa.array([int(each) for each in operations], pa.int8()))
                return
        for at, record in enumerate(self._records(columns, table.num_rows)):
            self._reader.at(numbers[at])
            given = record if left_out is None else self._remove_fields(record, left_out[at])
            try:
                self._add_change(operations[at], given, buffer)
            except RecordProblem as problem:
                key = self._reader.shown_key(given)
                buffer.reject(numbers[at], f"{key}: {problem}" if key else str(problem))

    def _add_change(self, operation: Op, record: dict[str, Any], buffer: RowBuffer) -> None:
        match operation:
            case Op.DELETE:
                buffer.add(operation, self._reader.key(self._drop_missing(record)))
            case Op.UPDATE:
                buffer.add(operation, *self._reader.update(record))
            case _:
                buffer.add(operation, self._reader.row(record))

    def _remove_fields(self, record: dict[str, Any], names: Set[str]) -> dict[str, Any]:
        places = {self._reader.place(name) for name in names}
        return {name: value for name, value in record.items() if self._reader.place(name) not in places}

    def _drop_missing(self, record: dict[str, Any]) -> dict[str, Any]:
        """Drop from a deleted row the values that its source leaves out: NULLs in columns that cannot be NULL."""
        nullable = {column.name: column.type.nullable for column in self._reader.columns}
        return {name: value for name, value in record.items() if value is not None or nullable[name]}

    def _columns(self, table: pa.Table) -> list[pa.ChunkedArray | None]:
        """Return for each of the relation's columns the table's column with its values."""
        places = {self._reader.place(name): number for number, name in enumerate(table.column_names)}
        return [table.column(places[place]) if place in places else None for place in range(len(self._reader.columns))]

    def _parse(self, table: pa.Table, index: int, buffer: RowBuffer, size: int) -> Parsed:
        self._reader.begin()
        columns = self._columns(table)
        arrays = self._cast(columns, table.num_rows)
        if arrays is not None:
            buffer.add_inserts(arrays, table.num_rows)
            return buffer.finish(size, index + table.num_rows)
        for start in range(0, table.num_rows, ROWS_AT_ONCE):
            self._by_row(
                [None if column is None else column.slice(start, ROWS_AT_ONCE) for column in columns], index + start, buffer
            )
        return buffer.finish(size, index + table.num_rows)

    def _cast(
        self, columns: list[pa.ChunkedArray | None], rows: int, numbers: Sequence[int] | None = None
    ) -> list[pa.ChunkedArray] | None:
        """Cast the columns to the relation's types, or return None if a value must be checked by itself."""
        arrays = []
        described = self._reader.described
        for column, values, field in zip(self._reader.columns, columns, self._schema.arrow, strict=True):
            if values is None and column.name in described:
                array = None if numbers is None else self._reader.described_array(column.name, numbers, field.type)
                if array is None:
                    return None
                arrays.append(array)
                continue
            if values is None:
                if column.default is not None or not column.type.nullable:
                    return None
                arrays.append(pa.nulls(rows, field.type))
                continue
            if values.null_count and not column.type.nullable:
                return None
            if pat.is_nested(values.type) and values.type == field.type and missing_part(values, column.type) is not None:
                return None
            if column.type.name in _CHECKED or (column.type.is_text and column.type.precision):
                return None
            if column.type.is_interval and not column.type.name.endswith("SECOND"):
                # A duration may be no whole number of the column's units.
                return None
            array = _widen(values, field.type)
            if array is None:
                return None
            arrays.append(array)
        return arrays

    def _by_row(self, columns: list[pa.ChunkedArray | None], index: int, buffer: RowBuffer) -> None:
        rows = next((len(values) for values in columns if values is not None), 0)
        for number, record in enumerate(self._records(columns, rows), index):
            try:
                buffer.add(Op.INSERT, self._reader.row(record))
            except RecordProblem as problem:
                key = self._reader.shown_key(record)
                buffer.reject(number, f"row {number} ({key}): {problem}" if key else f"row {number}: {problem}")

    def _records(self, columns: list[pa.ChunkedArray | None], rows: int) -> Iterator[dict[str, Any]]:
        """Yield each row by itself. Its values pass through their JSON form, so that both ways have the same checks."""
        names = [column.name for column, values in zip(self._reader.columns, columns, strict=True) if values is not None]
        texts = [json_texts(values, WHOLE_SCALARS) for values in columns if values is not None]
        for number in range(rows):
            yield {name: jsontext.loads(text[number]) for name, text in zip(names, texts, strict=True)}


def _widen(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Return ``values`` in the wanted type if that loses nothing except a timestamp's digits after the microsecond, else None."""
    if pat.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    given = values.type
    if given == wanted:
        return values
    same_kind = (
        (pat.is_integer(given) and (pat.is_integer(wanted) or pat.is_decimal(wanted)))
        or (pat.is_decimal(given) and pat.is_decimal(wanted))
        or (pat.is_timestamp(given) and pat.is_timestamp(wanted))
        or (pat.is_date(given) and pat.is_date(wanted))
        or (pat.is_time(given) and pat.is_time(wanted))
        or (pat.is_duration(given) and pat.is_duration(wanted))
        or (_is_text(given) and pat.is_string(wanted))
        or (pat.is_null(given))
    )
    if not same_kind:
        return None
    if pat.is_decimal(wanted) and pat.is_decimal(given) and given.scale > wanted.scale:
        return None
    try:
        return pc.cast(values, options=pc.CastOptions(target_type=wanted, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


class TableFileParser:
    """A parser of files that describe themselves, such as Parquet, as a whole."""

    def __init__(self, schema: RelationSchema, now: Now, kind: str, read: Callable[[bytes], pa.Table]) -> None:
        """Make a parser.

        :param schema: the table
        :param now: the clock that a DEFAULT may read
        :param kind: the name of such files in messages
        :param read: a function that reads the rows of a file; its error says why it is invalid
        """
        self._schema = schema
        self._tables = TableParser(schema, now)
        self._kind = kind
        self._read = read

    def parse(self, data: bytes, first_index: int = 0) -> Parsed:
        """Parse a whole file."""
        try:
            table = self._read(data)
        except (pa.ArrowInvalid, OSError, ValueError) as error:
            buffer = RowBuffer(self._schema)
            buffer.reject(first_index, f"not {self._kind} file: {error}")
            return buffer.finish(len(data), first_index)
        return self._tables.parse_sized(table, first_index, len(data))

    def parse_table(self, table: pa.Table, first_index: int) -> Parsed:
        """Convert rows that were already read from a file to changes.

        :param table: the rows
        :param first_index: the number of the first one
        """
        return self._tables.parse_table(table, first_index)

    def parse_prefix(self, data: bytes, first_index: int) -> Parsed:
        """Parse the whole file, which is complete or cannot be read, like :meth:`parse`."""
        return self.parse(data, first_index)

    def state(self) -> dict[str, Any]:
        """Return an empty state: nothing is remembered between calls."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing, because nothing is remembered between calls."""
