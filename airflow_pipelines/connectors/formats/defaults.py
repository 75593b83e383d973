"""What a column gets when a record does not name it: its DEFAULT."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from airflow_pipelines.connectors.formats.parsed import RecordProblem
from airflow_pipelines.connectors.formats.values import Converter
from airflow_pipelines.program.column_types import INTERVAL_UNITS
from airflow_pipelines.program.relations import Column
from airflow_pipelines.sql.values.constants import constant_text
from airflow_pipelines.sql.values.durations import microseconds, months

Now: TypeAlias = Callable[[], int]
"""Gives the time in microseconds since the epoch, as NOW() shows it."""
_EPOCH: Final = dt.datetime(1970, 1, 1)
_MAKE: Final[Mapping[str, Callable[[dt.datetime], Any]]] = {
    "DATE": lambda moment: moment.date(),
    "TIME": lambda moment: moment.time(),
    "TIMESTAMP": lambda moment: moment,
    "TIMESTAMP_TZ": lambda moment: moment.replace(tzinfo=dt.UTC),
}
_MOMENTS: Final = ("now", "current_timestamp", "localtimestamp")
_CLOCK_CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "DATE": (*_MOMENTS, "current_date"),
    "TIME": ("current_time", "localtime"),
    "TIMESTAMP": _MOMENTS,
    "TIMESTAMP_TZ": _MOMENTS,
}
"""By type, the functions of the clock whose value a column of the type may have as it is."""


def wall_clock() -> int:
    """The time of the machine."""
    return time.time_ns() // 1000


class Default:
    """The DEFAULT of one column.

    ``constant`` is its value where it is the same each time, else None.
    """

    def __init__(self, column: Column, from_text: Converter, evaluated: Mapping[str, Any], now: Now) -> None:
        """Find out what the value is.

        :param column: the column
        :param from_text: reads its values
        :param evaluated: what DEFAULTs are that are more than literals, by column
        :param now: the clock
        """
        self.constant: Any = evaluated.get(column.name)
        self._now = now
        self._make: Callable[[dt.datetime], Any] | None = None
        self._problem: str | None = None
        if column.default is not None and column.name not in evaluated:
            self._read(column, column.default, from_text)
        if self.constant is None and self._make is None and not column.type.nullable and self._problem is None:
            self._problem = f"column {column.name!r} is missing and NOT NULL"

    def value(self) -> Any:
        """The value for a record.

        :raises RecordProblem: when there is none
        """
        if self._problem is not None:
            raise RecordProblem(self._problem)
        return self.constant if self._make is None else self._make(_EPOCH + dt.timedelta(microseconds=self._now()))

    def _read(self, column: Column, default: str, from_text: Converter) -> None:
        if _is_clock_call(column, default):
            self._make = _MAKE[column.type.name]
            return
        try:
            self.constant = _constant(column, from_text)
        except ValueError as error:
            self._problem = f"column {column.name!r} is missing and its DEFAULT ({default}) is not a constant: {error}"


def _is_clock_call(column: Column, default: str) -> bool:
    name = default.strip().lower().removesuffix("()").rstrip()
    return name in _CLOCK_CALLS.get(column.type.name, ())


def _constant_interval(column: Column) -> int:
    read = months if column.type.name.rsplit("_", 1)[-1] in INTERVAL_UNITS[0] else microseconds
    text = str(column.default).strip()
    negative = text.startswith("-")
    try:
        length = read(text.removeprefix("-"))
        return -length if negative else length
    except ValueError as error:
        raise RecordProblem(str(error)) from error


def _constant(column: Column, from_text: Converter) -> Any:
    """The value of a column's DEFAULT."""
    if column.type.is_interval and str(column.default).strip().upper() != "NULL":
        return _constant_interval(column)
    text = constant_text(str(column.default))
    return None if text is None else from_text(text)
