"""DEFAULTs: the values of columns that a record does not name."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Final, TypeAlias

import pyarrow as pa

from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.schema import Column, DescribedDefaults, EvaluatedDefaults, RelationSchema

Now: TypeAlias = Callable[[], int]
"""A function that returns the time in microseconds since the epoch, as NOW() shows it."""
IS_DELETE: Final = "is_delete"
"""The metadata of records that is known only when they are read: true for a record that deletes its row, NULL for others."""
_EPOCH: Final = dt.datetime(1970, 1, 1)
_MAKE: Final[Mapping[str, Callable[[dt.datetime], Any]]] = {
    "DATE": lambda moment: moment.date(),
    "TIME": lambda moment: moment.time(),
    "TIMESTAMP": lambda moment: moment,
    "TIMESTAMP_TZ": lambda moment: moment.replace(tzinfo=dt.UTC),
}


_MOMENTS: Final = ("now", "current_timestamp", "localtimestamp")
_CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "DATE": (*_MOMENTS, "current_date"),
    "TIME": ("current_time", "localtime"),
    "TIMESTAMP": _MOMENTS,
    "TIMESTAMP_TZ": _MOMENTS,
}
"""By type, the functions of the clock whose value a column of the type may have unchanged."""


def wall_clock() -> int:
    """Return the time of the machine, in microseconds since the epoch."""
    return time.time_ns() // 1000


def is_the_time(column: Column) -> bool:
    """Return True if a column's DEFAULT is the unchanged time, which is known without Spark.

    :param column: the column
    """
    name = (column.default or "").strip().lower().removesuffix("()").rstrip()
    return name in _CALLS.get(column.type.name, ())


class ColumnDefaults:
    """The DEFAULTs of a table's columns."""

    def __init__(self, schema: RelationSchema, now: Now) -> None:
        """Collect the constant values.

        :param schema: the table
        :param now: the clock
        """
        self._columns = schema.columns
        self._varying = schema.varying
        self._described = schema.described
        self._metadata: pa.Table | None = None
        self._described_rows: dict[bool, Sequence[Mapping[str, Any]]] = {}
        self._number = 0
        self._now = now
        self._time: int | None = None
        self._constants: list[Any] = []
        self._problems: list[str | None] = []
        self._makers = [_MAKE[column.type.name] if is_the_time(column) else None for column in schema.columns]
        for column in schema.columns:
            constant, problem = _find_constant(column, schema)
            self._constants.append(constant)
            self._problems.append(problem)

    def begin(self, metadata: pa.Table | None = None) -> None:
        """Begin another batch of records; those of one batch have the same time.

        :param metadata: a connector's metadata of each record, one column for each name; None if it has none
        """
        self._time = None
        self._metadata = metadata
        self._described_rows = {}
        self._number = 0

    def at(self, number: int) -> None:
        """Move to a record of the batch, whose metadata are read from now on.

        :param number: the number of the record
        """
        self._number = number

    @property
    def described(self) -> Set[str]:
        """The columns whose DEFAULT reads the metadata of the batch; none if it has no metadata."""
        return frozenset() if self._described is None or self._metadata is None else self._described.columns

    def described_values(self, place: int, numbers: Sequence[int]) -> list[Any] | None:
        """Evaluate a column of :attr:`described` for records that do not name it, or return None if they must be read one by one.

        :param place: the column's number
        :param numbers: the numbers of the records
        """
        if self._described is None or self._metadata is None:
            return None
        rows = self._described_batch(self._described, self._metadata, goes=False)
        column = self._columns[place]
        values = [rows[number][column.name] for number in numbers] if rows else None
        return None if values is None or (None in values and not column.type.nullable) else values

    def constant(self, place: int) -> Any:
        """Return the DEFAULT of a column if it is constant, else None.

        :param place: the column's number
        """
        return self._constants[place]

    def fill_deleted(self, row: list[Any], missing: Iterable[int]) -> None:
        """Fill in the columns that the record of a delete does not name, with constants and with values from its metadata.

        :param row: the row to fill
        :param missing: the numbers of the columns
        :raises RecordProblem: when one of them cannot be evaluated
        """
        for place in missing:
            row[place] = self._constants[place]
            name = self._columns[place].name
            if self._metadata is not None and self._described is not None and name in self._described.columns:
                row[place] = self._from_metadata(self._described, self._metadata, goes=True)[name]

    def fill(self, row: list[Any], missing: Iterable[int]) -> None:
        """Fill in the columns that a record does not name.

        :param row: the row to fill
        :param missing: the numbers of the columns
        :raises RecordProblem: when one of them has no DEFAULT
        """
        varying: Mapping[str, Any] | None = None
        for place in missing:
            column = self._columns[place]
            if self._metadata is not None and self._described is not None and column.name in self._described.columns:
                row[place] = self._from_metadata(self._described, self._metadata, goes=False)[column.name]
                self._check_null(column, row[place])
                continue
            problem = self._problems[place]
            if problem is not None:
                raise RecordProblem(problem)
            make = self._makers[place]
            if make is not None:
                row[place] = make(_EPOCH + dt.timedelta(microseconds=self._batch_time()))
            elif self._varying is not None and column.name in self._varying.columns:
                varying = self._evaluate_varying(self._varying) if varying is None else varying
                row[place] = varying[column.name]
                self._check_null(column, row[place])
            else:
                row[place] = self._constants[place]

    def _check_null(self, column: Column, value: Any) -> None:
        if value is None and not column.type.nullable:
            raise RecordProblem(f"column {column.name!r} is missing and NOT NULL, and its DEFAULT is NULL")

    def _from_metadata(self, described: DescribedDefaults, metadata: pa.Table, *, goes: bool) -> Mapping[str, Any]:
        """Evaluate the DEFAULTs of the current record that read its metadata."""
        rows = self._described_batch(described, metadata, goes=goes)
        if rows:
            return rows[self._number]
        try:
            return described.rows(self._batch_time(), _mark_deletes(metadata.slice(self._number, 1), goes=goes))[0]
        except ValueError as error:
            raise RecordProblem(f"a DEFAULT cannot be evaluated: {error}") from error

    def _described_batch(self, described: DescribedDefaults, metadata: pa.Table, *, goes: bool) -> Sequence[Mapping[str, Any]]:
        """Evaluate them for all records of the batch, once; return none if that fails for one of them."""
        if goes not in self._described_rows:
            try:
                self._described_rows[goes] = described.rows(self._batch_time(), _mark_deletes(metadata, goes=goes))
            except ValueError:
                # Each record is then evaluated by itself, which finds the one that fails.
                self._described_rows[goes] = ()
        return self._described_rows[goes]

    def _evaluate_varying(self, varying: EvaluatedDefaults) -> Mapping[str, Any]:
        try:
            return varying.row(self._batch_time())
        except ValueError as error:
            raise RecordProblem(f"a DEFAULT cannot be evaluated: {error}") from error

    def _batch_time(self) -> int:
        if self._time is None:
            self._time = self._now()
        return self._time


def _mark_deletes(metadata: pa.Table, *, goes: bool) -> pa.Table:
    """Return the metadata with :data:`IS_DELETE`: true if the row is deleted, else NULL."""
    others = metadata.drop_columns([IS_DELETE]) if IS_DELETE in metadata.column_names else metadata
    return others.append_column(IS_DELETE, pa.repeat(pa.scalar(goes or None, pa.bool_()), metadata.num_rows))


def _find_constant(column: Column, schema: RelationSchema) -> tuple[Any, str | None]:
    """Return the constant DEFAULT of a column, and the problem of a record that does not name the column."""
    if is_the_time(column) or (schema.varying is not None and column.name in schema.varying.columns):
        return None, None
    constant = schema.defaults.get(column.name)
    if constant is None and column.default is not None and column.name not in schema.defaults:
        return None, f"column {column.name!r} is missing and its DEFAULT ({column.default}) was not evaluated"
    missing = constant is None and not column.type.nullable
    return constant, f"column {column.name!r} is missing and NOT NULL" if missing else None
