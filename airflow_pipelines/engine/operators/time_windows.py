"""Time windows of a fixed length, computed in the driver by integer arithmetic on microseconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.arrow import ArrowColumn

_LENGTH = r"'(?:interval\s+)?(\d{1,6})\s+(millisecond|second|minute|hour|day|week)s?'"
_WINDOW = re.compile(rf"window\(\s*`?(\w+)`?\s*,\s*{_LENGTH}(?:\s*,\s*{_LENGTH})?(?:\s*,\s*{_LENGTH})?\s*\)", re.IGNORECASE)
_MICROSECONDS = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""The length of each unit in microseconds. In windows, a day is 24 hours in every time zone."""
_MOST_TIME = 2**61
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
    def of(cls, text: str) -> TimeWindows | None:
        """Return the windows of a call, or None for anything else.

        :param text: SQL
        """
        call = _WINDOW.fullmatch(text.strip())
        if call is None:
            return None
        length = _to_length(call[2], call[3])
        slide, start = (_to_length(call[at], call[at + 1]) if call[at] else None for at in (4, 6))
        found = cls(call[1], length, length if slide is None else slide, start or 0)
        return found if 0 < found.slide <= length and found.start < found.slide else None

    @property
    def overlapping(self) -> int:
        """The maximum number of windows that a row is in."""
        return -(-self.length // self.slide)

    def panes(self, times: ArrowColumn) -> ArrowColumn | None:
        """Round times down, so that times in the same windows become one time.

        :param times: the time of each row
        :returns: times of the same windows; None if these are not timestamps, or out of the usual range
        """
        numbers = _to_microseconds(times)
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
        numbers = _to_microseconds(times)
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


def _to_microseconds(times: ArrowColumn) -> ArrowColumn | None:
    """Return timestamps as numbers, or None for other types, and for times out of the usual range."""
    if not pa.types.is_timestamp(times.type) or times.type.unit != "us":
        return None
    numbers = times.cast(pa.int64())
    extremes = pc.min_max(numbers).as_py()
    return None if any(value is not None and abs(value) > _MOST_TIME for value in extremes.values()) else numbers


def _to_length(number: str, unit: str) -> int:
    return int(number) * _MICROSECONDS[unit.lower()]
