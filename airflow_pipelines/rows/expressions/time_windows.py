"""Windows of time of a fixed length: their calls in expressions, and their values by integer arithmetic on microseconds."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.expressions.columns import column_name

_WINDOW: Final = "window"
_LENGTH: Final = re.compile(r"(?:interval\s+)?(\d{1,9})\s+(microsecond|millisecond|second|minute|hour|day|week)s?", re.IGNORECASE)
_MICROSECONDS: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""The length of each unit in microseconds. In windows, a day is 24 hours in every time zone."""
_MOST_TIME: Final = 2**61
"""The greatest time that is handled here. Windows around greater times may be too large for their type."""


@dataclass(frozen=True, slots=True)
class WindowsOfRows:
    """The windows of rows.

    :param rows: for each window the place of its row
    :param windows: structs of start and end
    """

    rows: npt.NDArray[np.int64]
    windows: pa.StructArray


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """The windows of a call of ``window``. Lengths are in microseconds.

    :param column: the column with the time
    :param length: the length of a window
    :param slide: the distance between the starts of two windows, at most the length
    :param start: the start of one of them, since the epoch
    """

    column: str
    length: int
    slide: int
    start: int

    @classmethod
    def of(cls, tree: exp.Expr) -> TimeWindows | None:
        """Return the windows of a call, or None for anything else.

        :param tree: an expression

        >>> from sqlglot import exp
        >>> call = exp.Anonymous(this="window", expressions=[exp.column("at"), exp.Literal.string("10 minutes")])
        >>> TimeWindows.of(call)
        TimeWindows(column='at', length=600000000, slide=600000000, start=0)
        """
        call = tree.unnest()
        if not _is_call(call) or not 2 <= len(call.expressions) <= 4:
            return None
        time, *written = call.expressions
        column, lengths = column_name(time), [length for each in written if (length := fixed_length(each)) is not None]
        if column is None or len(column) > 1 or len(lengths) < len(written):
            return None
        # The slide of a window without one is its length.
        length, slide, start = (*lengths, *(lengths[0], 0)[len(lengths) - 1 :])
        return cls(column[0], length, slide, start) if 0 < slide <= length <= _MOST_TIME and start < slide else None

    @property
    def overlapping(self) -> int:
        """The maximum number of windows that a row is in."""
        return -(-self.length // self.slide)

    def panes(self, times: ArrowColumn) -> ArrowColumn | None:
        """Round times down, so that times in the same windows become one time.

        :param times: the time of each row
        :returns: times of the same windows; None if these are not timestamps, or out of the usual range
        """
        numbers = _to_numbers(times)
        if numbers is None:
            return None
        width = math.gcd(self.length, self.slide)
        known = numbers.fill_null(0).to_numpy()
        first = known - (known - self.start) % width
        return pa.array(first, mask=np.asarray(numbers.is_null())).cast(times.type)

    def of_rows(self, times: ArrowColumn) -> WindowsOfRows | None:
        """Return the windows of rows. A row without a time is in none.

        :param times: the time of each row
        :returns: the windows; None if the times are not timestamps, or out of the usual range
        """
        numbers = _to_numbers(times)
        if numbers is None:
            return None
        there = np.flatnonzero(np.asarray(numbers.is_valid()))
        known: npt.NDArray[np.int64] = numbers.drop_null().to_numpy()
        last = known - (known - self.start) % self.slide
        rows = np.repeat(there, self.overlapping)
        starts = (last[:, None] - np.arange(self.overlapping) * self.slide).ravel()
        if self.length % self.slide:
            inside = np.repeat(known, self.overlapping) < starts + self.length
            rows, starts = rows[inside], starts[inside]
        kind = times.type
        parts = [pa.array(moments).cast(kind) for moments in (starts, starts + self.length)]
        return WindowsOfRows(rows, pa.StructArray.from_arrays(parts, fields=[pa.field("start", kind), pa.field("end", kind)]))


def _to_numbers(times: ArrowColumn) -> ArrowColumn | None:
    """Return timestamps as numbers, or None for other types, and for times out of the usual range."""
    if not pa.types.is_timestamp(times.type) or times.type.unit != "us":
        return None
    numbers = times.cast(pa.int64())
    extremes = pc.min_max(numbers).as_py()
    return None if any(value is not None and abs(value) > _MOST_TIME for value in extremes.values()) else numbers


def has_windows(tree: exp.Expr) -> bool:
    """Return True if an expression has a call of ``window``, which gives none, one or several rows for each row."""
    return any(map(_is_call, tree.find_all(exp.Anonymous)))


def _is_call(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() == _WINDOW


def fixed_length(tree: exp.Expr, units: Collection[str] = _MICROSECONDS.keys()) -> int | None:
    """Return the microseconds of a length of time such as ``'10 minutes'``, or None for anything else.

    :param tree: an expression
    :param units: the units that the length may have, in the singular
    """
    # Spark leaves out blanks around an interval.
    written = _LENGTH.fullmatch(tree.name.strip()) if isinstance(tree, exp.Literal) and tree.is_string else None
    return int(written[1]) * _MICROSECONDS[written[2].lower()] if written is not None and written[2].lower() in units else None
