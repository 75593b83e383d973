"""Vectorised parsing of JSON records to whole columns, with pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats import columns
from airflow_pipelines.rows.formats.columns import NotPlain
from airflow_pipelines.rows.formats.debezium import may_have_unavailable
from airflow_pipelines.rows.formats.parsed import BYTE_ORDER_MARK
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType

GREATEST_WEIGHT: Final = 10_000
"""The maximum number of times that one record may add or remove a row."""

_BEGINS_WITH_NULL: Final = re.compile(rb"\s*null")
_Members: TypeAlias = Mapping[str, ArrowColumn]
"""The members of all records by name, each as one array."""


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """Changes of one table.

    :param columns: an array for each of its columns
    :param operations: the operation of each change
    :param records: the number of records that contained them
    """

    columns: Sequence[ArrowColumn]
    operations: ArrowColumn
    records: int


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of records that holds one of their rows.

    :param rows: the members of the row of each record; undefined for those without one
    :param op: the operation of the row
    :param times: for each record the number of times that the change is in it
    """

    rows: _Members
    op: Op
    times: Any


class JsonColumns:
    """A reader of blocks of JSON records of one update format into changes.

    :param schema: the table
    :param reader: the row reader, which finds the column of a name
    :param update_format: the form of a record
    :param array: True if the block is one array of records rather than a sequence
    """

    def __init__(self, schema: RelationSchema, reader: RowReader, update_format: str, *, array: bool) -> None:
        self._columns = schema.columns
        self._types = [field.type for field in schema.arrow]
        self._key = [place for place, column in enumerate(schema.columns) if column.name in schema.primary_key]
        self._reader = reader
        names = {column.name for column in schema.columns}
        row = pa.struct([(column.name, _json_type(column.type)) for column in schema.columns])
        self._names = names
        self._usable = (
            update_format in _FORMATS
            and all(columns.can_read(column.type) for column in schema.columns)
            and len(names) == len(schema.columns) > 0
        )
        if self._usable:
            record, self._parts = _FORMATS[update_format]
            fields = record(row)
            self._explicit = pa.schema([("records", pa.list_(pa.struct(fields)))] if array else fields)
        self._array = array
        self._is_debezium = update_format == "debezium"

    def read(self, data: bytes) -> ColumnChanges | None:
        """Read the changes, or return None if ``data`` must be read row by row."""
        if not self._usable or len(data) < columns.SMALL_BYTES or not data.strip() or not columns.is_utf8(data):
            return None
        if self._is_debezium and may_have_unavailable(data):
            return None
        if data.startswith(BYTE_ORDER_MARK):
            # pyarrow leaves it out wherever a block begins; the parser has left out that of a file.
            return None
        if _BEGINS_WITH_NULL.match(data):
            # pyarrow ends the process for such data.
            return None
        try:
            return self._changes(self._parts(self._members(data)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, NotPlain):
            return None

    def _members(self, data: bytes) -> _Members:
        """Collect the members of all records, including unknown ones, since one may be a column in another case."""
        if self._array:
            # pyarrow reads objects only, so the array is wrapped in one.
            data = b'{"records":' + data + b"}"
        table = pajson.read_json(
            pa.BufferReader(data),
            read_options=pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pajson.ParseOptions(explicit_schema=self._explicit, unexpected_field_behavior="infer"),
        )
        members = {name: _whole(column) for name, column in zip(table.column_names, table.columns, strict=True)}
        if not self._array:
            return members
        if table.num_rows != 1 or list(members) != ["records"] or members["records"].null_count:
            raise NotPlain
        records = members["records"].flatten()
        if records.null_count:
            raise NotPlain
        return _fields(records)

    def _changes(self, parts: Sequence[_Part]) -> ColumnChanges:
        for part in parts:
            if any(self._reader.place(name) is not None for name in part.rows if name not in self._names):
                raise NotPlain
        order, operations = _in_order(parts)
        arrays = []
        for place, (column, kind) in enumerate(zip(self._columns, self._types, strict=True)):
            values = parts[0].rows[column.name]
            if len(parts) > 1:
                values = pa.concat_arrays([part.rows[column.name] for part in parts])
            if order is not None:
                values = values.take(order)
            if place in self._key and values.null_count:
                # A delete must have a key, and an insert may leave it to a DEFAULT.
                raise NotPlain
            arrays.append(columns.column_of(column, values, kind, columns.from_json))
        return ColumnChanges(arrays, operations, len(parts[0].times))


def _in_order(parts: Sequence[_Part]) -> tuple[ArrowColumn | None, ArrowColumn]:
    """Order the changes record by record.

    :param parts: the parts, in their order within a record
    :returns: for each change the number of its row, where those of one part follow those of the other, or None if all keep their
        place; and the operation of each change
    """
    times = np.stack([part.times for part in parts], axis=1).ravel()
    operations = np.tile(np.array([int(part.op) for part in parts], np.int8), len(times) // len(parts))
    if len(parts) == 1 and (times == 1).all():
        return None, pa.array(operations)
    records = len(times) // len(parts)
    rows = np.arange(len(parts) * records).reshape(len(parts), records).T.ravel()
    return pa.array(np.repeat(rows, times)), pa.array(np.repeat(operations, times))


def _raw(members: _Members) -> list[_Part]:
    missing = None
    for values in members.values():
        if not values.null_count:
            break
        missing = values.is_null() if missing is None else pc.and_(missing, values.is_null())
    else:
        # A record that is null looks like a row of NULLs.
        columns.require(pc.invert(missing))
    return [_Part(members, Op.INSERT, np.ones(len(next(iter(members.values()))), np.int64))]


def _insert_delete(members: _Members) -> list[_Part]:
    if members.keys() != {"insert", "delete", "update"}:
        raise NotPlain
    inserts, deletes = _find_given(members["insert"]), _find_given(members["delete"])
    if not (inserts ^ deletes).all():
        raise NotPlain
    parts = [_Part(_fields(members["insert"]), Op.INSERT, inserts.astype(np.int64))]
    if deletes.any():
        parts.append(_Part(_fields(members["delete"]), Op.DELETE, deletes.astype(np.int64)))
    return parts


def _weighted(members: _Members) -> list[_Part]:
    weights, data = members["weight"], members["data"]
    if weights.null_count or data.null_count:
        raise NotPlain
    times = weights.to_numpy(zero_copy_only=False)
    columns.require(pc.less_equal(pc.abs_checked(weights), GREATEST_WEIGHT))
    if (times == 0).any():
        raise NotPlain
    rows = _fields(data)
    parts = [_Part(rows, Op.INSERT, np.maximum(times, 0))]
    if (times < 0).any():
        parts.append(_Part(rows, Op.DELETE, np.maximum(-times, 0)))
    return parts


def _debezium(members: _Members) -> list[_Part]:
    payload = members["payload"]
    # With schemas switched off in Debezium, there is only the payload.
    if payload.null_count == 0:
        members = _fields(payload)
    elif payload.null_count < len(payload):
        raise NotPlain
    kinds = members["op"]
    columns.require(pc.is_in(kinds, value_set=pa.array(["c", "r", "u", "d"])))
    goes = pc.is_in(kinds, value_set=pa.array(["u", "d"])).to_numpy(zero_copy_only=False)
    comes = pc.invert(pc.equal(kinds, "d")).to_numpy(zero_copy_only=False)
    before, after = members["before"], members["after"]
    if (comes & ~_find_given(after)).any() or (~comes & ~_find_given(before)).any():
        raise NotPlain
    goes = goes & _find_given(before)
    parts = [_Part(_fields(after), Op.INSERT, comes.astype(np.int64))]
    if goes.any():
        parts.insert(0, _Part(_fields(before), Op.DELETE, goes.astype(np.int64)))
    return parts


def _fields_of_debezium(row: pa.DataType) -> list[pa.Field]:
    fields = [pa.field("before", row), pa.field("after", row), pa.field("op", pa.string())]
    return [pa.field("payload", pa.struct(fields)), *fields]


_FORMATS: Final[Mapping[str, tuple[Callable[[pa.DataType], list[pa.Field]], Callable[[_Members], list[_Part]]]]] = {
    "raw": (list, _raw),
    "insert_delete": (
        # An update sets some columns and leaves the others: none can be read here.
        lambda row: [pa.field("insert", row), pa.field("delete", row), pa.field("update", pa.null())],
        _insert_delete,
    ),
    "weighted": (lambda row: [pa.field("weight", pa.int64()), pa.field("data", row)], _weighted),
    "debezium": (_fields_of_debezium, _debezium),
}
"""By update format, the fields of a record with rows of a type, and the function that splits it into parts."""


def _whole(column: Any) -> ArrowColumn:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _fields(structs: ArrowColumn) -> dict[str, ArrowColumn]:
    """Return the members of structs; those of a NULL struct are undefined."""
    return {field.name: structs.field(number) for number, field in enumerate(structs.type)}


def _find_given(values: ArrowColumn) -> Any:
    return values.is_valid().to_numpy(zero_copy_only=False)


def _json_type(kind: ColumnType) -> pa.DataType:
    """Return the type in which pyarrow reads a column's JSON values, before they are converted."""
    if kind.fits_long:
        return pa.int64()
    if kind.is_boolean:
        return pa.bool_()
    if kind.is_floating:
        return pa.float64()
    if kind.is_decimal:
        return pa.decimal128(kind.precision or 38, kind.scale or 0)
    return pa.string()
