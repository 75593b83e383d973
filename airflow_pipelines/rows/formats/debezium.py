"""Changes as Debezium describes them: which rows go and come, and which of their values were not sent."""

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
"""The placeholder of a large value that an update did not change, and that the database therefore does not send."""
_TEXTS: Final = frozenset(
    {
        _UNAVAILABLE.decode(),
        base64.b64encode(_UNAVAILABLE).decode(),
        base64.urlsafe_b64encode(_UNAVAILABLE).decode(),
        _UNAVAILABLE.hex(),
        str(UUID(bytes=hashlib.md5(_UNAVAILABLE, usedforsecurity=False).digest(), version=3)),
    }
)
"""The same as texts: as it is, as bytes are written, and as a UUID."""
_MARKS: Final = tuple(text.encode() for text in _TEXTS)
_GOES: Final = {"c": False, "r": False, "u": True, "d": True}
"""Of each operation whether a row goes."""
Row: TypeAlias = Any
"""The record of a row, as the format has it."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that goes, comes or changes.

    :param op: which of these
    :param row: the row
    :param left_out: the fields of it that say nothing: of an update those that stay as they are, of a delete those that are unknown
    """

    op: Op
    row: Row
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Truncation:
    """All rows of the table go."""


Change: TypeAlias = RowChange | Truncation


def may_have_unavailable(data: bytes) -> bool:
    """Look by bytes alone whether a message may have values that were not sent.

    :param data: the message, in a format that has texts and bytes as they are: JSON, and Avro and Protobuf but for lists of numbers
    """
    return any(mark in data for mark in _MARKS)


def is_unavailable(value: Any) -> bool:
    """Tell whether a value only says that it was not sent, in any of the forms in which Debezium does: by the column's type.

    :param value: as the format has it
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

    :param schema: of the table
    :param reader: tells which column a field is for
    :param fields: gives the values of a row's record by name
    :param completed: gives a row's record with other values for some fields
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

        :param operation: which one it is (``op``)
        :param before: the row that was there
        :param after: the row that is there now
        :param is_complete: whether it is known that all values were sent, so that none needs a look
        :raises RecordProblem: when it is none, or lacks a value that nobody has
        """
        if operation == "t":
            return (Truncation(),)
        if operation not in _GOES:
            raise RecordProblem(f"{operation!r} is no operation of Debezium; wanted 'c', 'u', 'd', 'r' or 't'")
        if operation == "d":
            if before is None:
                raise RecordProblem("the row that goes ('before') is missing")
            return (self._goes(before, is_complete),)
        if after is None:
            raise RecordProblem("the row that comes ('after') is missing")
        before = before if _GOES[operation] else None
        goes = () if before is None else (self._goes(before, is_complete),)
        if is_complete:
            return (*goes, RowChange(Op.INSERT, after))
        return self._comes(goes, before, after, is_update=operation == "u")

    def _comes(self, goes: Sequence[Change], before: Row | None, after: Row, *, is_update: bool) -> Sequence[Change]:
        unknown = self._unavailable(after)
        if not unknown:
            return (*goes, RowChange(Op.INSERT, after))
        given = {} if before is None else self._fields(before)
        # A value that is this large is never NULL, which a row has that is known by its key alone.
        known = {name: value for name in unknown if (value := given.get(name)) is not None and not is_unavailable(value)}
        after = self._completed(after, known) if known else after
        rest = unknown - known.keys()
        if not rest:
            return (*goes, RowChange(Op.INSERT, after))
        if not is_update or not self._key or (before is not None and self._key_of(before) != self._key_of(after)):
            raise self._unknown(rest)
        return (RowChange(Op.UPDATE, after, rest),)

    def _goes(self, before: Row, is_complete: bool) -> RowChange:
        unknown: frozenset[str] = frozenset() if is_complete else self._unavailable(before)
        if unknown and not self._key:
            raise self._unknown(unknown)
        return RowChange(Op.DELETE, before, unknown)

    def _unavailable(self, row: Row) -> frozenset[str]:
        """Return the fields whose values were not sent, of those that there are columns for."""
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
    """Return the values of a record that is a dictionary; none of one that names no columns.

    :param row: the record
    """
    return row if isinstance(row, dict) else {}


def completed_object(row: Row, values: Mapping[str, Any]) -> Row:
    """Replace values of a record that is a dictionary.

    :param row: the record
    :param values: by name
    """
    return {**row, **values}
