"""Rows that the target of an output does not take: they are found among those that it takes, left out, counted and listed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import pyarrow as pa

from airflow_pipelines.connectors.base import ConnectorError, ConnectorFailure
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
"""A column, the last one, that says which change of a step a row is."""
_KEY_LENGTH: Final = 60
_ROW_LENGTH: Final = 200
_REASON_LENGTH: Final = 400
_OF_VALUES: Final = (FormatFailure, ValueError, TypeError, ArithmeticError, RecursionError, pa.ArrowException)
"""The errors of values that have no counterpart in a format, of formats and their libraries."""
T = TypeVar("T")
Refuse = Callable[[pa.Table, "RowProblem"], pa.Table | None]
"""Called with a change that a target does not take, and why; gives what is to be written in its place, if anything."""


class RowProblem(Exception):
    """A target does not take some changes: why. Nothing of them was written."""


class LeftOutRows:
    """The rows that one write of an output has left out; they count once it is over."""

    def __init__(self, key: Sequence[str] = (), on_error: OnError = OnError.SKIP) -> None:
        """Have none yet.

        :param key: the columns of the output's index, which tell which row it is; empty without one
        :param on_error: whether a row is left out at all
        """
        self._key = list(key)
        self._on_error = on_error
        self._count = 0
        self._listed: deque[ConnectorError] = deque(maxlen=_MOST_LISTED)

    def add(self, change: pa.Table, problem: RowProblem) -> pa.Table | None:
        """Leave a change out.

        :param change: one row with a weight of 1 or -1, or the two rows of an update
        :param problem: why the target does not take it
        :returns: what is to be written in its place: of an update that its old row goes, for what it says is not so any more
        :raises ConnectorFailure: when the output is to end instead
        """
        self._note(self._shown(change), problem)
        return change.slice(0, 1).set_column(0, UPDATE, pa.array([False])) if change.num_rows > 1 else None

    def add_record(self, record: bytes, problem: RowProblem) -> None:
        """Leave a change out that has become a record.

        :param record: the record
        :param problem: why the target does not take it
        :raises ConnectorFailure: when the output is to end instead
        """
        self._note(f"record {excerpt(record.decode(errors='replace'), _ROW_LENGTH)}", problem)

    def _note(self, what: str, problem: RowProblem) -> None:
        text = f"{what}: {excerpt(str(problem), _REASON_LENGTH)}"
        if self._on_error is OnError.STOP:
            raise ConnectorFailure(
                f"{text}. The output ends, as 'on_error' of the connector says; with 'skip' it leaves such rows out."
            )
        self._listed.append(ConnectorError("encode", text, self._count))
        self._count += 1

    def clear(self) -> None:
        """Forget what was left out: it is written again."""
        self._count = 0
        self._listed.clear()

    def take(self) -> tuple[list[ConnectorError], int]:
        """Return the newest changes that were left out since the last call, with their numbers from 0 on, and the count of all."""
        found = list(self._listed), self._count
        self.clear()
        return found

    def _shown(self, change: pa.Table) -> str:
        row = change.slice(change.num_rows - 1).drop_columns([WEIGHT])
        names = self._key or [name for name in row.column_names if name not in (UPDATE, _PLACE)]
        length = _KEY_LENGTH if self._key else _ROW_LENGTH
        shown = ", ".join(f"{name} = {excerpt(_shown(row.column(name)), length)}" for name in names)
        what = "a row that goes" if change.column(WEIGHT)[-1].as_py() < 0 else "row"
        return f"{what} ({excerpt(shown, _ROW_LENGTH)})"


def parts_that_fit(changes: pa.Table, write: Callable[[pa.Table], T], refuse: Refuse) -> Iterator[T]:
    """Write changes as a whole, and where that does not work each half of them, so that a bad one costs few others any time.

    :param changes: rows with a weight of 1 or -1 as the last column, and maybe with updates, whose two rows stay together
    :param write: writes some of them, or raises :class:`RowProblem`
    :param refuse: called with each change that cannot be written, as a table of its own
    :returns: what ``write`` has given, for one part after the other
    """
    try:
        written = write(changes)
    except RowProblem as problem:
        middle = _middle(changes)
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
            # The old row was left out when it came, too.
            return
    yield written


def records_that_fit(changes: pa.Table, encode: Callable[[pa.Table], Iterable[T]], left_out: LeftOutRows) -> Iterator[T]:
    """The records of changes; those that have none are left out.

    :param changes: see :func:`parts_that_fit`
    :param encode: gives the records of some of them, or raises what formats raise
    :param left_out: gets the others
    :raises TransientFormatFailure: when nothing can be encoded at the moment
    """
    encoded = problems_of(lambda rows: list(encode(rows)))
    for part in parts_that_fit(changes, encoded, refusing(encoded, left_out)):
        yield from part


def refusing(encoded: Callable[[pa.Table], object], left_out: LeftOutRows) -> Refuse:
    """Leave changes out that cannot be encoded; of an update whose old row is the reason the new one is an insert.

    :param encoded: encodes changes, or raises :class:`RowProblem`
    :param left_out: gets those that are left out
    """

    def refuse(change: pa.Table, problem: RowProblem) -> pa.Table | None:
        if change.num_rows > 1:
            # An old row that cannot be encoded was left out when it came.
            new = change.slice(1).set_column(0, UPDATE, pa.array([False]))
            with suppress(RowProblem):
                encoded(new)
                return new
        return left_out.add(change, problem)

    return refuse


def problems_of(encode: Callable[[pa.Table], T]) -> Callable[[pa.Table], T]:
    """Have errors of values be a :class:`RowProblem`.

    :param encode: makes of changes what a target takes
    :returns: does the same
    """

    def encoded(changes: pa.Table) -> T:
        try:
            return encode(changes)
        except TransientFormatFailure:
            raise
        except _OF_VALUES as error:
            raise RowProblem(str(error) or type(error).__name__) from error

    return encoded


class FittingChanges:
    """Those changes of a step that a target takes; the others are left out once, however often these are gone through."""

    def __init__(self, changes: Changes, check: Callable[[pa.Table], object], left_out: LeftOutRows) -> None:
        """Find out which they are.

        :param changes: those of the step
        :param check: raises :class:`RowProblem` for changes that the target does not take
        :param left_out: gets them
        """
        left_out.clear()
        self._changes = changes
        # By their places among all, which do not depend on how the changes are cut into tables.
        self._dropped: set[int] = set()
        self._single: set[int] = set()
        first = 0
        for table in changes.tables():
            self._find(table, first, check, left_out)
            first += table.num_rows

    def count(self) -> int:
        """Return the number that there are at most."""
        return self._changes.count()

    def tables(self) -> Iterator[pa.Table]:
        """All of them in order."""
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

        def checked(part: pa.Table) -> list[int]:
            check(part)
            return list(part.column(_PLACE).to_pylist())

        refuse = refusing(checked, left_out)

        def refuse_placed(change: pa.Table, problem: RowProblem) -> pa.Table | None:
            instead = refuse(change, problem)
            if instead is not None:
                self._single.update(instead.column(_PLACE).to_pylist())
            return instead

        kept = {place for part in parts_that_fit(placed, checked, refuse_placed) for place in part}
        self._dropped.update(place for place in places if place not in kept)


def key_alone(row: pa.Table, key: Sequence[str]) -> pa.Table:
    """A row that goes, with NULL in all columns but those that it is found by.

    :param row: with a weight, and maybe with updates
    :param key: the columns of the index
    """
    for at, field in enumerate(row.schema):
        if field.name not in (UPDATE, WEIGHT, *key):
            row = row.set_column(at, field, pa.nulls(row.num_rows, field.type))
    return row


def _middle(changes: pa.Table) -> int | None:
    """Find the place where changes can be cut; None for one alone."""
    middle = changes.num_rows // 2
    if middle and UPDATE in changes.column_names and changes.column(UPDATE)[middle].as_py():
        # The new row of an update stays with the old one.
        middle += int(changes.column(WEIGHT)[middle].as_py() > 0)
    return middle if 0 < middle < changes.num_rows else None


def _shown(values: pa.ChunkedArray) -> str:
    try:
        (text,) = json_texts(values)
    except _OF_VALUES:
        # Such as a text that is none: people are to see at least what they can look for.
        return jsontext.dumps(repr(values.cast(pa.binary())[0].as_py())) if pa.types.is_string(values.type) else "?"
    return text
