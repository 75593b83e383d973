"""Results of parsing: changes, counts and the records that were malformed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.changes import GIVEN, OP, Op, TableChanges
from airflow_pipelines.rows.schema import RelationSchema

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The bytes that some programs write before a text in UTF-8. They are left out at its start and belong to it elsewhere."""
MAX_ERRORS = 1000
"""The number of malformed records of one parse that are kept with their messages; all are counted."""


class RecordProblem(ValueError):
    """The reason why one record is malformed, in words for the person who wrote it."""


@dataclass(frozen=True, slots=True)
class RecordError:
    """A malformed record: ``index`` is the line number (CSV, from 1) or the record's number (other formats, from 0)."""

    index: int
    message: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of parsing some bytes.

    :param changes: the well-formed rows in order, None if there are none
    :param records: the number of these rows
    :param errors: the first :data:`MAX_ERRORS` malformed records; ``num_errors`` counts all
    :param consumed: the number of bytes that were used; less than given only if the end of the data may be an unfinished record
    :param next_index: the index of the next record
    """

    changes: TableChanges | None
    records: int
    errors: tuple[RecordError, ...]
    num_errors: int
    consumed: int
    next_index: int


class Parser(Protocol):
    """A parser of the bytes of one stream into changes of one table; it keeps state between calls, such as a CSV header."""

    def parse(self, data: bytes, first_index: int = 0) -> Parsed:
        """Parse ``data``, which holds whole records only; nothing is left over."""

    def parse_prefix(self, data: bytes, first_index: int) -> Parsed:
        """Parse the records of ``data`` that are known to be complete; ``consumed`` is the number of bytes of these."""

    def state(self) -> dict[str, Any]:
        """Return the state of the parser, as JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state that :meth:`state` returned."""


class RowBuffer:
    """A buffer of parsed rows by column, which converts them to changes, and of the errors."""

    def __init__(self, schema: RelationSchema) -> None:
        self._schema = schema
        self._columns: list[list[Any]] = [[] for _ in schema.columns]
        self._operations: list[int] = []
        self._given: list[list[str] | None] = []
        self._tables: list[pa.Table] = []
        self._records = 0
        self._errors: list[RecordError] = []
        self._num_errors = 0
        self._truncates = False
        self.document: int | None = None
        """The number of the current document, if errors are noted with it instead of the record's own."""

    def add(self, op: Op, row: Sequence[Any], given: list[str] | None = None) -> None:
        """Add one row.

        :param op: the operation of the row
        :param row: its values in column order, as Python values
        :param given: the columns that an update sets, None for a whole row
        """
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self._operations.append(int(op))
        self._given.append(given)
        self._records += 1

    def add_inserts(self, columns: Sequence[ArrowColumn], rows: int) -> None:
        """Add rows that are already Arrow arrays of the schema's types, one for each column."""
        self.add_changes(columns, pa.repeat(pa.scalar(int(Op.INSERT), pa.int8()), rows))

    def add_changes(self, columns: Sequence[ArrowColumn], operations: ArrowColumn) -> None:
        """Add changes that are already Arrow arrays.

        :param columns: the arrays, one for each column, of the schema's types
        :param operations: the operation of each change
        """
        if not len(operations):
            return
        self._flush()
        self._tables.append(pa.Table.from_arrays([*columns, operations], schema=changes_schema(self._schema)))
        self._records += len(operations)

    def truncate(self) -> None:
        """Add the deletion of all rows, both those that were added before and those of the table."""
        self._flush()
        self._tables, self._records, self._truncates = [], 0, True

    def reject(self, index: int, message: str) -> None:
        """Record a malformed record."""
        self._num_errors += 1
        if len(self._errors) < MAX_ERRORS:
            self._errors.append(RecordError(index if self.document is None else self.document, message))

    def finish(self, consumed: int, next_index: int) -> Parsed:
        """Return everything that was collected."""
        self._flush()
        changes = None
        if self._tables or self._truncates:
            tables = self._tables or [changes_schema(self._schema).empty_table()]
            rows = pa.concat_tables(tables, promote_options="default")
            changes = TableChanges(self._schema.name, rows, truncates=self._truncates)
        return Parsed(changes, self._records, tuple(self._errors), self._num_errors, consumed, next_index)

    def _flush(self) -> None:
        if not self._operations:
            return
        fields = changes_schema(self._schema)
        arrays = [pa.array(values, type=field.type) for values, field in zip(self._columns, fields, strict=False)]
        arrays.append(pa.array(self._operations, pa.int8()))
        if any(given is not None for given in self._given):
            arrays.append(pa.array(self._given, pa.list_(pa.string())))
            fields = fields.append(pa.field(GIVEN, pa.list_(pa.string())))
        self._tables.append(pa.Table.from_arrays(arrays, schema=fields))
        self._columns = [[] for _ in self._schema.columns]
        self._operations = []
        self._given = []


def changes_schema(schema: RelationSchema) -> pa.Schema:
    """Return the Arrow schema of a table's changes: its columns, nullable as a delete may have the key only, and the operation."""
    return pa.schema([*(field.with_nullable(True) for field in schema.arrow), pa.field(OP, pa.int8())])


def excerpt(text: str, limit: int = 100) -> str:
    """Shorten a text for an error message."""
    line = " ".join(text.split())
    line = line.encode("utf-8", "backslashreplace").decode("utf-8")
    return line if len(line) <= limit else line[: limit - 3] + "..."
