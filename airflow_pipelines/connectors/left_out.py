"""Rows that the target of an output rejects: they are isolated, left out, counted and listed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import pyarrow as pa

from airflow_pipelines.connectors.base import ConnectorFailure, CountedError
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.common_options import OnError
from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.formats.encode import json_texts
from airflow_pipelines.rows.formats.failures import FormatFailure, TransientFormatFailure
from airflow_pipelines.rows.formats.parsed import excerpt
from airflow_pipelines.rows.zsets import WEIGHT

_MOST_LISTED: Final = 100
_PLACE: Final = "__place"
"""The name of the last column, which holds the number of a row's change in a step."""
_KEY_LENGTH: Final = 60
_ROW_LENGTH: Final = 200
_REASON_LENGTH: Final = 400
_OF_VALUES: Final = (FormatFailure, ValueError, TypeError, ArithmeticError, RecursionError, pa.ArrowException)
"""The errors of formats and their libraries for values without a counterpart in the format."""
T = TypeVar("T")
Refuse = Callable[[pa.Table, "RowProblem"], pa.Table | None]
"""A function that handles a change that a target rejects, given the reason. It returns the change to write instead, or None."""


class RowProblem(Exception):
    """The reason why a target rejects some changes. None of them was written."""


class LeftOutRows:
    """The rows that one write of an output has left out. They count once the write is over."""

    def __init__(self, key: Sequence[str] = (), on_error: OnError = OnError.SKIP) -> None:
        """Start without rows.

        :param key: the columns of the output's index, which identify a row; empty without one
        :param on_error: the policy: leave the row out, or end the output
        """
        self._key = list(key)
        self._on_error = on_error
        self._count = 0
        self._listed: deque[CountedError] = deque(maxlen=_MOST_LISTED)

    def add(self, change: pa.Table, problem: RowProblem) -> pa.Table | None:
        """Leave a change out.

        :param change: one row with a weight of 1 or -1, or the two rows of an update
        :param problem: the reason why the target rejects it
        :returns: the replacement to write: for an update, the removal of its old row, which no longer holds; otherwise None
        :raises ConnectorFailure: if the output is to end instead
        """
        self._note(self._describe_row(change), problem)
        return change.slice(0, 1).set_column(0, UPDATE, pa.array([False])) if change.num_rows > 1 else None

    def add_record(self, record: bytes, problem: RowProblem) -> None:
        """Leave out a change that is already encoded as a record.

        :param record: the record
        :param problem: the reason why the target rejects it
        :raises ConnectorFailure: if the output is to end instead
        """
        self._note(f"record {excerpt(record.decode(errors='replace'), _ROW_LENGTH)}", problem)

    def _note(self, what: str, problem: RowProblem) -> None:
        text = f"{what}: {excerpt(str(problem), _REASON_LENGTH)}"
        if self._on_error is OnError.STOP:
            raise ConnectorFailure(
                f"{text}. The output ends, as 'on_error' of the connector says; with 'skip' it leaves such rows out."
            )
        self._listed.append(CountedError("encode", text, self._count))
        self._count += 1

    def clear(self) -> None:
        """Forget the rows, because they are written again."""
        self._count = 0
        self._listed.clear()

    def take(self) -> tuple[list[CountedError], int]:
        """Return the newest rows left out since the last call, numbered from 0, and the count of all, and clear them."""
        taken = list(self._listed), self._count
        self.clear()
        return taken

    def _describe_row(self, change: pa.Table) -> str:
        row = change.slice(change.num_rows - 1).drop_columns([WEIGHT])
        names = self._key or [name for name in row.column_names if name not in (UPDATE, _PLACE)]
        length = _KEY_LENGTH if self._key else _ROW_LENGTH
        shown = ", ".join(f"{name} = {excerpt(_format_value(row.column(name)), length)}" for name in names)
        what = "a row that goes" if change.column(WEIGHT)[-1].as_py() < 0 else "row"
        return f"{what} ({excerpt(shown, _ROW_LENGTH)})"


def parts_that_fit(changes: pa.Table, write: Callable[[pa.Table], T], refuse: Refuse) -> Iterator[T]:
    """Write changes as a whole or, if that fails, each half of them recursively, so that a bad change costs others little time.

    :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates, whose two rows stay together
    :param write: the function that writes some of them, or raises :class:`RowProblem`
    :param refuse: the function to call with each change that cannot be written, as a table of its own
    :returns: the results of ``write``, one part after the other
    """
    try:
        written = write(changes)
    except RowProblem as problem:
        middle = _find_middle(changes)
        if middle is not None:
            yield from parts_that_fit(changes.slice(0, middle), write, refuse)
            yield from parts_that_fit(changes.slice(middle), write, refuse)
            return
        instead = refuse(changes, problem)
        if instead is None:
            return
        try:
            written = write(instead)
        except RowProblem:
            # The old row was left out too when it arrived.
            return
    yield written


def records_that_fit(changes: pa.Table, encode: Callable[[pa.Table], Iterable[T]], left_out: LeftOutRows) -> Iterator[T]:
    """Yield the records of changes, and leave out changes that cannot be encoded.

    :param changes: the changes, see :func:`parts_that_fit`
    :param encode: the function that returns the records of some of them, or raises an error of formats
    :param left_out: the collector of the others
    :raises TransientFormatFailure: if nothing can be encoded at the moment
    """
    encoded = problems_of(lambda rows: list(encode(rows)))
    for part in parts_that_fit(changes, encoded, refusing(encoded, left_out)):
        yield from part


def refusing(encoded: Callable[[pa.Table], object], left_out: LeftOutRows) -> Refuse:
    """Return a function that leaves out changes that cannot be encoded.

    If the old row of an update is the reason, the new row becomes an insert.

    :param encoded: the function that encodes changes, or raises :class:`RowProblem`
    :param left_out: the collector of those that are left out
    """

    def refuse(change: pa.Table, problem: RowProblem) -> pa.Table | None:
        if change.num_rows > 1:
            # An old row that cannot be encoded was left out when it arrived.
            new = change.slice(1).set_column(0, UPDATE, pa.array([False]))
            with suppress(RowProblem):
                encoded(new)
                return new
        return left_out.add(change, problem)

    return refuse


def problems_of(encode: Callable[[pa.Table], T]) -> Callable[[pa.Table], T]:
    """Return a function that converts errors of values to :class:`RowProblem`.

    :param encode: the function that encodes changes for a target
    :returns: the wrapped function
    """

    def encode_changes(changes: pa.Table) -> T:
        try:
            return encode(changes)
        except TransientFormatFailure:
            raise
        except _OF_VALUES as error:
            raise RowProblem(str(error) or type(error).__name__) from error

    return encode_changes


class FittingChanges:
    """The changes of a step that a target accepts. The others are left out once, however often the changes are iterated."""

    def __init__(self, changes: Changes, check: Callable[[pa.Table], object], left_out: LeftOutRows) -> None:
        """Find the changes that the target accepts.

        :param changes: the changes of the step
        :param check: the function that raises :class:`RowProblem` for changes that the target rejects
        :param left_out: the collector of rejected changes
        """
        left_out.clear()
        self._changes = changes
        # By their positions among all changes, which do not depend on the split into tables.
        self._dropped: set[int] = set()
        self._single: set[int] = set()
        first = 0
        for table in changes.tables():
            self._find(table, first, check, left_out)
            first += table.num_rows

    def count(self) -> int:
        """Return an upper bound of the number of changes."""
        return self._changes.count()

    def tables(self) -> Iterator[pa.Table]:
        """Yield all changes in order."""
        first = 0
        for table in self._changes.tables():
            places = range(first, first + table.num_rows)
            first += table.num_rows
            if not self._single.isdisjoint(places):
                updates = zip(table.column(UPDATE).to_pylist(), places, strict=True)
                table = table.set_column(0, UPDATE, pa.array([part and place not in self._single for part, place in updates]))
            yield table.filter(pa.array([place not in self._dropped for place in places], pa.bool_()))

    def _find(self, table: pa.Table, first: int, check: Callable[[pa.Table], object], left_out: LeftOutRows) -> None:
        places = range(first, first + table.num_rows)
        placed = table.append_column(_PLACE, pa.array(places, pa.int64()))

        def check_part(part: pa.Table) -> list[int]:
            check(part)
            return list(part.column(_PLACE).to_pylist())

        refuse = refusing(check_part, left_out)

        def refuse_placed(change: pa.Table, problem: RowProblem) -> pa.Table | None:
            instead = refuse(change, problem)
            if instead is not None:
                self._single.update(instead.column(_PLACE).to_pylist())
            return instead

        kept = {place for part in parts_that_fit(placed, check_part, refuse_placed) for place in part}
        self._dropped.update(place for place in places if place not in kept)


def key_alone(row: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return a row to remove, with NULL in all columns except those that identify it.

    :param row: the row with a weight, and optionally with updates
    :param key: the columns of the index
    """
    for at, field in enumerate(row.schema):
        if field.name not in (UPDATE, WEIGHT, *key):
            row = row.set_column(at, field, pa.nulls(row.num_rows, field.type))
    return row


def _find_middle(changes: pa.Table) -> int | None:
    """Return the index where changes can be split; None for a single change."""
    middle = changes.num_rows // 2
    if middle and UPDATE in changes.column_names and changes.column(UPDATE)[middle].as_py():
        # The new row of an update stays with the old one.
        middle += int(changes.column(WEIGHT)[middle].as_py() > 0)
    return middle if 0 < middle < changes.num_rows else None


def _format_value(values: pa.ChunkedArray) -> str:
    try:
        (text,) = json_texts(values)
    except _OF_VALUES:
        # Such as text that is not valid UTF-8: show at least something that people can search for.
        return jsontext.dumps(repr(values.cast(pa.binary())[0].as_py())) if pa.types.is_string(values.type) else "?"
    return text
