"""Changes in Debezium's form: the rows that are deleted and inserted, and their values that were not sent."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import RelationSchema

_UNAVAILABLE: Final = b"__debezium_unavailable_value"
"""The placeholder of a large value that an update did not change, so that the database does not send it."""
_TEXTS: Final = frozenset(
    {
        _UNAVAILABLE.decode(),
        base64.b64encode(_UNAVAILABLE).decode(),
        base64.urlsafe_b64encode(_UNAVAILABLE).decode(),
        _UNAVAILABLE.hex(),
        str(UUID(bytes=hashlib.md5(_UNAVAILABLE, usedforsecurity=False).digest(), version=3)),
    }
)
"""The forms of the placeholder as text: verbatim, in the encodings of bytes, and as a UUID."""
_MARKS: Final = tuple(text.encode() for text in _TEXTS)
_GOES: Final = {"c": False, "r": False, "u": True, "d": True}
"""By operation, True if it deletes an old row."""
Row: TypeAlias = Any
"""The record of a row, in the form of the format."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that is deleted, inserted or updated.

    :param op: the operation
    :param row: the row
    :param left_out: the fields of it without a value: for an update those that stay as they are, for a delete those that are
        unknown
    """

    op: Op
    row: Row
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Truncation:
    """The deletion of all rows of the table."""


Change: TypeAlias = RowChange | Truncation


def may_have_unavailable(data: bytes) -> bool:
    """Return True if a message may have values that were not sent, judged by its bytes alone.

    :param data: the message, in a format with verbatim texts and bytes: JSON, and Avro and Protobuf except for lists of numbers
    """
    return any(mark in data for mark in _MARKS)


def is_unavailable(value: Any) -> bool:
    """Return True if a value is the placeholder of one that was not sent, in any of Debezium's forms for the types of columns.

    :param value: the value, in the form of the format
    """
    if isinstance(value, str):
        return value in _TEXTS
    if isinstance(value, bytes):
        return value == _UNAVAILABLE
    if isinstance(value, list):
        return (len(value) == 1 and is_unavailable(value[0])) or value == list(_UNAVAILABLE)
    return isinstance(value, dict) and len(value) == 1 and all(map(is_unavailable, next(iter(value.items()))))


class DebeziumChanges:
    """A reader of the changes of one table.

    :param schema: the schema of the table
    :param reader: the row reader, which finds the column of a field
    :param fields: a function that returns the values of a row's record by name
    :param completed: a function that returns a row's record with other values for some fields
    """

    def __init__(
        self,
        schema: RelationSchema,
        reader: RowReader,
        fields: Callable[[Row], Mapping[str, Any]],
        completed: Callable[[Row, Mapping[str, Any]], Row],
    ) -> None:
        self._reader = reader
        self._columns = schema.columns
        self._key = {place for place, column in enumerate(schema.columns) if column.name in schema.primary_key}
        self._fields = fields
        self._completed = completed

    def of(self, operation: Any, before: Row | None, after: Row | None, *, is_complete: bool = False) -> Sequence[Change]:
        """Return the changes that a message describes.

        :param operation: the operation (``op``)
        :param before: the old row
        :param after: the new row
        :param is_complete: True if it is known that all values were sent, so that none is checked
        :raises RecordProblem: when it is no change, or lacks a value that is unknown
        """
        if operation == "t":
            return (Truncation(),)
        if operation not in _GOES:
            raise RecordProblem(f"{operation!r} is no operation of Debezium; wanted 'c', 'u', 'd', 'r' or 't'")
        if operation == "d":
            if before is None:
                raise RecordProblem("the row that goes ('before') is missing")
            return (self._make_delete(before, is_complete),)
        if after is None:
            raise RecordProblem("the row that comes ('after') is missing")
        before = before if _GOES[operation] else None
        goes = () if before is None else (self._make_delete(before, is_complete),)
        if is_complete:
            return (*goes, RowChange(Op.INSERT, after))
        return self._convert_after(goes, before, after, is_update=operation == "u")

    def _convert_after(self, goes: Sequence[Change], before: Row | None, after: Row, *, is_update: bool) -> Sequence[Change]:
        unknown = self._find_unavailable(after)
        if not unknown:
            return (*goes, RowChange(Op.INSERT, after))
        given = {} if before is None else self._fields(before)
        # Such a large value is never NULL; a NULL means that only the key of the row is known.
        known = {name: value for name in unknown if (value := given.get(name)) is not None and not is_unavailable(value)}
        after = self._completed(after, known) if known else after
        rest = unknown - known.keys()
        if not rest:
            return (*goes, RowChange(Op.INSERT, after))
        if not is_update or not self._key or (before is not None and self._key_of(before) != self._key_of(after)):
            raise self._unknown(rest)
        return (RowChange(Op.UPDATE, after, rest),)

    def _make_delete(self, before: Row, is_complete: bool) -> RowChange:
        unknown: frozenset[str] = frozenset() if is_complete else self._find_unavailable(before)
        if unknown and not self._key:
            raise self._unknown(unknown)
        return RowChange(Op.DELETE, before, unknown)

    def _find_unavailable(self, row: Row) -> frozenset[str]:
        """Return the fields with a column whose values were not sent."""
        return frozenset(
            name for name, value in self._fields(row).items() if is_unavailable(value) and self._reader.place(name) is not None
        )

    def _key_of(self, row: Row) -> Mapping[int, Any]:
        return {place: value for name, value in self._fields(row).items() if (place := self._reader.place(name)) in self._key}

    def _unknown(self, names: frozenset[str]) -> RecordProblem:
        listed = ", ".join(repr(self._columns[self._reader.place(name) or 0].name) for name in sorted(names))
        return RecordProblem(
            f"column {listed}: its value is large and was not changed, so the database did not send it, and it is needed here. "
            "Let the database send old rows as a whole: ALTER TABLE ... REPLICA IDENTITY FULL"
        )


def fields_of_object(row: Row) -> Mapping[str, Any]:
    """Return the values of a record that is a dictionary, or none for a record that names no columns.

    :param row: the record
    """
    return row if isinstance(row, dict) else {}


def completed_object(row: Row, values: Mapping[str, Any]) -> Row:
    """Replace values of a record that is a dictionary.

    :param row: the record
    :param values: the new values by name
    """
    return {**row, **values}
