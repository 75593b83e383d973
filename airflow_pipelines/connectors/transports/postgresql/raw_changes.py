"""Changes with values as the server wrote them, which are converted to rows many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.transports.postgresql.arrow_rows import text_reader
from airflow_pipelines.connectors.transports.postgresql.pgoutput import Missing, TupleData
from airflow_pipelines.connectors.transports.postgresql.row_mapping import MappedColumn
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.parsed import RecordProblem, RowBuffer
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import RelationSchema

_FEW: Final = 50
"""The number of rows below which they are read faster one by one."""


class RowMapping:
    """The mapping of values of a table to those of the pipeline's table, as long as the table stays as it is.

    :param schema: the schema of the table in the pipeline
    :param reader: the reader of its rows
    :param mapped: the column that a value fills, by the number of the value
    """

    def __init__(self, schema: RelationSchema, reader: RowReader, mapped: Mapping[int, MappedColumn]) -> None:
        self.mapped = mapped
        self._schema = schema
        self._reader = reader
        self._readers = {each.column.name: (number, text_reader(each)) for number, each in mapped.items()}

    def record(self, values: TupleData) -> dict[str, Any]:
        """Return a row as JSON would have it, by column of the table in the pipeline, without values that were not sent.

        :param values: the values of the row
        :raises RecordProblem: when one does not fit
        """
        return {
            each.column.name: each.value(value)
            for number, each in self.mapped.items()
            if (value := values[number]) is not Missing.UNCHANGED
        }

    def key_record(self, values: TupleData) -> dict[str, Any]:
        """Return the primary key of an old row in the same form; its other values do not matter.

        :param values: the row, or its key as the server sends it
        :raises RecordProblem: when one does not fit
        """
        return {
            each.column.name: each.value(value)
            for number, each in self.mapped.items()
            if each.column.name in self._schema.primary_key and (value := values[number]) is not Missing.UNCHANGED
        }

    def shown_key(self, values: TupleData) -> str:
        """Return the primary key of a row as the beginning of a message about it; empty if the table has none.

        :param values: the row
        """
        texts = {each.column.name: None if isinstance(values[at], Missing) else values[at] for at, each in self.mapped.items()}
        key = self._reader.shown_key(texts)
        return f"{key}: " if key else ""

    def leave_out(self, change: RawChange, buffer: RowBuffer) -> None:
        """Delete the row of a malformed change: no row is better than the old one, which is no longer true.

        :param change: the change
        :param buffer: the buffer that takes the deletion
        """
        if change.op is Op.DELETE or not self._schema.primary_key:
            return
        row = self.key_row(change.values)
        if row is not None:
            buffer.add(Op.DELETE, row)

    def key_row(self, values: TupleData) -> list[Any] | None:
        """Return the row of a deletion, which has values for the primary key.

        :param values: the values of the row that is deleted
        :returns: the row; None when no row of the table can have this key
        """
        try:
            return self._reader.key(self.key_record(values))
        except RecordProblem:
            return None

    def row(self, change: RawChange) -> list[Any]:
        """Return the values of a row as Python objects.

        :raises RecordProblem: when one does not fit
        """
        if change.op is Op.DELETE and self._schema.primary_key:
            return self._reader.key(self.key_record(change.values))
        return self._reader.row(self.record(change.values))

    def columns(self, changes: Sequence[RawChange]) -> list[pa.Array] | None:
        """Return all rows of some changes, by column, or None if there are few or a value needs individual treatment."""
        if len(changes) < _FEW:
            return None
        values = list(zip(*(change.values for change in changes), strict=True))
        inserts = pa.array([change.op is not Op.DELETE or not self._schema.primary_key for change in changes])
        arrays = []
        for column, field in zip(self._schema.columns, self._schema.arrow, strict=True):
            if column.name not in self._readers:
                if column.default is not None:
                    return None
                arrays.append(pa.nulls(len(changes), field.type))
                continue
            number, read = self._readers[column.name]
            texts = pa.array(values[number], pa.string())
            must = inserts if column.name not in self._schema.primary_key else None
            if texts.null_count and not column.type.nullable and _has_missing(texts, must):
                return None
            array = read(texts)
            if array is None:
                return None
            arrays.append(array)
        return arrays


@dataclass(frozen=True, slots=True)
class RawChange:
    """The insertion or deletion of a whole row.

    :param op: the operation
    :param values: the values that the server sent
    :param mapping: the mapping of the values to columns
    """

    op: Op
    values: TupleData
    mapping: RowMapping


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A change of some columns of a row.

    :param op: the operation
    :param row: the values of the row in column order
    :param given: the columns that an update sets
    """

    op: Op
    row: list[Any]
    given: list[str]


@dataclass(frozen=True, slots=True)
class TableTruncation:
    """The truncation of the table."""


Entry: TypeAlias = "RawChange | ChangedRow | TableTruncation | str"
"""A change, or the reason why there is none."""


def add_to(buffer: RowBuffer, entries: Iterable[Entry], where: str) -> None:
    """Add changes in order.

    :param buffer: the buffer that takes them
    :param entries: the changes
    :param where: the place of malformed ones, for messages
    """
    for mapping, group in groupby(entries, lambda entry: entry.mapping if isinstance(entry, RawChange) else None):
        if mapping is None:
            _add_others(buffer, group, where)
        else:
            _add_raw(buffer, mapping, [entry for entry in group if isinstance(entry, RawChange)], where)


def _add_others(buffer: RowBuffer, entries: Iterable[Entry], where: str) -> None:
    for entry in entries:
        if isinstance(entry, ChangedRow):
            buffer.add(entry.op, entry.row, entry.given)
        elif isinstance(entry, TableTruncation):
            buffer.truncate()
        else:
            buffer.reject(0, f"{where}: {entry}")


def _add_raw(buffer: RowBuffer, mapping: RowMapping, changes: Sequence[RawChange], where: str) -> None:
    columns = mapping.columns(changes)
    if columns is not None:
        buffer.add_changes(columns, pa.array([int(change.op) for change in changes], pa.int8()))
        return
    for change in changes:
        try:
            buffer.add(change.op, mapping.row(change))
        except RecordProblem as problem:
            buffer.reject(0, f"{where}: {mapping.shown_key(change.values)}{problem}")
            mapping.leave_out(change, buffer)


def _has_missing(texts: pa.Array, must: pa.Array | None) -> bool:
    """Return True if there is a NULL where none may be."""
    absent = texts.is_null()
    return bool(pc.any(absent if must is None else pc.and_(absent, must)).as_py())
