"""Windows of time: tumbling, sliding, and session windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, Self

from airflow_pipelines.streams.durations import milliseconds
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.windows.assigners import MergingWindowAssigner, WindowAssigner
from airflow_pipelines.streams.windows.trigger import Trigger
from airflow_pipelines.streams.windows.triggers import (
    EventTimeTrigger,
    ProcessingTimeTrigger,
)
from airflow_pipelines.streams.windows.window import MergedWindows, TimeWindow

_REMEMBERED = 10_000
_MOST_REMEMBERED = 100
"""The maximum number of sliding windows of one timestamp to remember."""


class _EventTime:
    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Return a trigger that evaluates a window when the watermark passes its end."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """Return True."""
        return True


class _ProcessingTime:
    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Return a trigger that evaluates a window when the clock passes its end."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """Return False."""
        return False


class _Tumbling:
    """The base of assigners of consecutive windows.

    :param size: the size of each window
    :param offset: the offset of the starts
    """

    def __init__(self, size: Any, offset: Any = 0) -> None:
        self.size, self.offset = milliseconds(size), milliseconds(offset)
        if self.size <= 0 or abs(self.offset) >= self.size:
            raise StreamProgramError(
                f"Tumbling windows of {self.size} ms with an offset of {self.offset} ms: the size must be more than 0 and the"
                f" offset smaller than it."
            )
        self._known: dict[int, tuple[TimeWindow]] = {}

    @classmethod
    def of(cls, size: Any, offset: Any = 0) -> Self:
        """Create the assigner.

        :param size: the size of each window
        :param offset: the offset of the starts
        :returns: the assigner
        """
        return cls(size, offset)

    def window_of(self, timestamp: int) -> tuple[TimeWindow]:
        """Return the window of a timestamp.

        :param timestamp: ms
        :returns: its window
        """
        start = timestamp - (timestamp - self.offset) % self.size
        window = self._known.get(start)
        if window is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            window = self._known[start] = (TimeWindow(start, start + self.size),)
        return window


class TumblingEventTimeWindows(_EventTime, _Tumbling, WindowAssigner[Any, TimeWindow]):
    """An assigner of consecutive windows of event time."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the window of the element's timestamp."""
        return self.window_of(timestamp)


class TumblingProcessingTimeWindows(_ProcessingTime, _Tumbling, WindowAssigner[Any, TimeWindow]):
    """An assigner of consecutive windows of processing time."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the window of the current processing time."""
        return self.window_of(context.get_current_processing_time())


class _Sliding:
    """The base of assigners of overlapping windows.

    :param size: the size of each window
    :param slide: the time from one start to the next
    :param offset: the offset of the starts
    """

    def __init__(self, size: Any, slide: Any, offset: Any = 0) -> None:
        self.size, self.slide, self.offset = milliseconds(size), milliseconds(slide), milliseconds(offset)
        if self.size <= 0 or self.slide <= 0 or abs(self.offset) >= self.slide:
            raise StreamProgramError(
                f"Sliding windows of {self.size} ms every {self.slide} ms with an offset of {self.offset} ms:"
                " size and slide must be more than 0 and the offset smaller than the slide."
            )

    @classmethod
    def of(cls, size: Any, slide: Any, offset: Any = 0) -> Self:
        """Create the assigner.

        :param size: the size of each window
        :param slide: the time from one start to the next
        :param offset: the offset of the starts
        :returns: the assigner
        """
        return cls(size, slide, offset)

    def windows_of(self, timestamp: int) -> list[TimeWindow]:
        """Return the windows of a timestamp, the latest first.

        :param timestamp: ms
        :returns: its windows
        """
        last = timestamp - (timestamp - self.offset) % self.slide
        if self.size > _MOST_REMEMBERED * self.slide:
            return _sliding_windows(last, timestamp, self.size, self.slide)
        windows = _windows_from(last, self.size, self.slide)
        # Timestamps with the same latest window have all these windows, except that the earliest may already have ended.
        return list(windows if windows[-1][1] > timestamp else windows[:-1])


def _sliding_windows(last: int, timestamp: int, size: int, slide: int) -> list[TimeWindow]:
    return [TimeWindow(start, start + size) for start in range(last, timestamp - size, -slide)]


@lru_cache(_REMEMBERED // 10)
def _windows_from(start: int, size: int, slide: int) -> tuple[TimeWindow, ...]:
    """Return the windows of a timestamp at which a window starts, the latest first."""
    return tuple(_sliding_windows(start, start, size, slide))


class SlidingEventTimeWindows(_EventTime, _Sliding, WindowAssigner[Any, TimeWindow]):
    """An assigner of overlapping windows of event time."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the windows of the element's timestamp."""
        return self.windows_of(timestamp)


class SlidingProcessingTimeWindows(_ProcessingTime, _Sliding, WindowAssigner[Any, TimeWindow]):
    """An assigner of overlapping windows of processing time."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the windows of the current processing time."""
        return self.windows_of(context.get_current_processing_time())


class SessionWindowTimeGapExtractor(ABC):
    """An extractor of the gap of an element."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return the gap of an element.

        :param element: the element
        :returns: the number of ms for which its session stays open
        """


class _Sessions:
    """The base of assigners of sessions, which grow with their elements.

    :param gap: the time for which a session stays open: a length of time, an extractor, or a callable
    """

    def __init__(self, gap: Any) -> None:
        if isinstance(gap, SessionWindowTimeGapExtractor):
            self._gap_of: Callable[[Any], Any] | None = gap.extract
        elif callable(gap):
            self._gap_of = gap
        else:
            self._gap_of = None
            self._gap = self._check_gap(milliseconds(gap))

    @classmethod
    def with_gap(cls, size: Any) -> Self:
        """Create the assigner.

        :param size: the time for which a session stays open
        :returns: the assigner
        """
        return cls(size)

    @classmethod
    def with_dynamic_gap(cls, session_window_time_gap_extractor: Any) -> Self:
        """Create the assigner.

        :param session_window_time_gap_extractor: the extractor of the gap of each element
        :returns: the assigner
        """
        return cls(session_window_time_gap_extractor)

    @staticmethod
    def _check_gap(gap: int) -> int:
        if gap <= 0:
            raise StreamProgramError(f"The gap of a session is {gap} ms: it must be more than 0.")
        return gap

    def session_of(self, element: Any, timestamp: int) -> tuple[TimeWindow]:
        """Return the session of a single element.

        :param element: the element
        :param timestamp: ms
        :returns: the window
        """
        gap = self._gap if self._gap_of is None else self._check_gap(milliseconds(self._gap_of(element)))
        return (TimeWindow(timestamp, timestamp + gap),)

    def merge_candidates(self, windows: MergedWindows[TimeWindow], new: TimeWindow) -> Collection[TimeWindow]:
        """Return the sessions that overlap or touch the new one."""
        start, end = new
        if type(self).merge_windows is not _Sessions.merge_windows:  # a subclass may leave sessions that overlap
            return [window for window in windows if window[0] <= end and window[1] >= start]
        candidates = []
        for window in reversed(windows):
            if window[1] < start:
                break  # sessions that begin earlier end earlier, too
            if window[0] <= end:
                candidates.append(window)
        return candidates

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        """Merge sessions that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)


class EventTimeSessionWindows(_EventTime, _Sessions, MergingWindowAssigner[Any, TimeWindow]):
    """An assigner of sessions of event time."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the session that begins with the element."""
        return self.session_of(element, timestamp)


class ProcessingTimeSessionWindows(_ProcessingTime, _Sessions, MergingWindowAssigner[Any, TimeWindow]):
    """An assigner of sessions of processing time."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the session that begins now."""
        return self.session_of(element, context.get_current_processing_time())
