"""Windows: finite parts of a stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from airflow_pipelines.streams.elements import MAX_TIMESTAMP

T = TypeVar("T")
"""The type of elements."""
W = TypeVar("W")
"""The type of windows."""
W2 = TypeVar("W2")
"""The type of windows of a context within a class that has one of its own."""


class Window:
    """A finite part of a stream. Windows that are equal are the same window.

    >>> from airflow_pipelines.datastream import TimeWindow, Window
    >>> minute = TimeWindow(0, 60_000)
    >>> isinstance(minute, Window), minute == TimeWindow(0, 60_000), minute.max_timestamp()
    (True, True, 59999)
    """

    __slots__ = ()

    def max_timestamp(self) -> int:
        """Return the largest timestamp that belongs to the window.

        :returns: ms
        """
        raise NotImplementedError


class TimeWindow(tuple[int, int], Window):
    """A window of a time interval.

    :param start: its first timestamp in ms
    :param end: the first timestamp after it

    >>> from airflow_pipelines.datastream import TimeWindow
    >>> minute = TimeWindow(0, 60_000)
    >>> minute.max_timestamp(), minute.intersects(TimeWindow(30_000, 90_000))
    (59999, True)
    >>> minute.cover(TimeWindow(30_000, 90_000))
    TimeWindow(start=0, end=90000)
    """

    __slots__ = ()
    is_immutable_value = True

    def __new__(cls, start: int, end: int) -> TimeWindow:
        """Create the window."""
        return tuple.__new__(cls, (start, end))

    def __getnewargs__(self) -> tuple[int, int]:
        return (self[0], self[1])

    @property
    def start(self) -> int:
        """The first timestamp of the window."""
        return self[0]

    @property
    def end(self) -> int:
        """The first timestamp after the window."""
        return self[1]

    def max_timestamp(self) -> int:
        """Return the last timestamp of the window.

        :returns: ms
        """
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Return True if two windows overlap or touch.

        :param other: the other window
        :returns: True if there is no gap between them
        """
        return self[0] <= other[1] and self[1] >= other[0]

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that contains two windows.

        :param other: the other window
        :returns: a window from the earlier start to the later end
        """
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window of a timestamp.

        :param timestamp: the timestamp in ms
        :param offset: the offset of the starts
        :param window_size: the size of each window
        :returns: timestamp in ms
        """
        return timestamp - (timestamp - offset + window_size) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: Any) -> None:
        """Merge windows that overlap or touch.

        :param windows: the windows
        :param callback: its ``merge(merged_windows, result)`` is called for each group of several windows
        """
        parts: list[TimeWindow] = []
        start = end = 0
        for window in sorted(set(windows)):
            if parts and window[0] <= end:
                parts.append(window)
                end = max(end, window[1])
            else:
                if len(parts) > 1:
                    callback.merge(parts, TimeWindow(start, end))
                parts = [window]
                start, end = window
        if len(parts) > 1:
            callback.merge(parts, TimeWindow(start, end))

    def __repr__(self) -> str:
        return f"TimeWindow(start={self[0]}, end={self[1]})"


class CountWindow(tuple[int], Window):
    """A window with a number of elements.

    :param id: the number of the window

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, WindowFunction
    >>> class Numbered(WindowFunction):
    ...     def apply(self, key, window, inputs):
    ...         yield window.id, list(inputs)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> parcels = env.from_collection([1, 2, 3, 4]).key_by(lambda parcel: "truck")
    >>> list(parcels.count_window(2).apply(Numbered()).execute_and_collect())
    [(0, [1, 2]), (1, [3, 4])]
    """

    __slots__ = ()
    is_immutable_value = True

    def __new__(cls, id: int) -> CountWindow:
        """Create the window."""
        return tuple.__new__(cls, (id,))

    def __getnewargs__(self) -> tuple[int]:
        return (self[0],)

    @property
    def id(self) -> int:
        """The number of the window."""
        return self[0]

    def max_timestamp(self) -> int:
        """Return the end of time, since a count has no end in time.

        :returns: the end of time
        """
        return MAX_TIMESTAMP

    def __repr__(self) -> str:
        return f"CountWindow(id={self[0]})"


class GlobalWindow(tuple[()], Window):
    """The window of all elements."""

    __slots__ = ()
    is_immutable_value = True

    def __new__(cls) -> GlobalWindow:
        """Create the window."""
        return tuple.__new__(cls, ())

    def __getnewargs__(self) -> tuple[()]:
        return ()

    @classmethod
    def get(cls) -> GlobalWindow:
        """Return the window.

        :returns: a window that is equal to all others of this class
        """
        return cls()

    def max_timestamp(self) -> int:
        """Return the end of time, since the window has no end.

        :returns: the end of time
        """
        return MAX_TIMESTAMP

    def __repr__(self) -> str:
        return "GlobalWindow()"


class MergedWindows(dict[W, W]):
    """The windows of one key that may merge, in ascending order if they can be compared.

    Each has the window under which its contents are stored: the first of those from which it was merged.
    """

    def add(self, window: W, kept: W) -> None:
        """Add a window.

        :param window: the window
        :param kept: the window under which its contents are stored
        """
        last = next(reversed(self), None)
        self[window] = kept
        if last is not None and _is_before(window, last):
            self._sort()

    def _sort(self) -> None:
        ordered = sorted(self.items(), key=lambda item: item[0])  # type: ignore[arg-type, return-value]
        self.clear()
        self.update(ordered)

    @staticmethod
    def of(windows: dict[W, W]) -> MergedWindows[W]:
        """Return windows in their order.

        :param windows: windows in any order
        :returns: the same windows
        """
        merged: MergedWindows[W] = MergedWindows()
        for window, kept in windows.items():
            merged.add(window, kept)
        return merged


def _is_before(window: Any, other: Any) -> bool:
    try:
        return bool(window < other)
    except TypeError:  # windows of a program's own class
        return False
