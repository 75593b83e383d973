"""Windows of time: one after the other, overlapping, and sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, Self

from airflow_pipelines.streams.durations import milliseconds
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.windows.assigners import MergingWindowAssigner, WindowAssigner
from airflow_pipelines.streams.windows.trigger import Trigger
from airflow_pipelines.streams.windows.triggers import (
    EventTimeTrigger,
    ProcessingTimeTrigger,
)
from airflow_pipelines.streams.windows.window import TimeWindow

_REMEMBERED = 10_000


class _EventTime:
    def get_default_trigger(self, env: Any) -> Trigger:
        """Evaluate a window when the watermark passes its end."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """It is."""
        return True


class _ProcessingTime:
    def get_default_trigger(self, env: Any) -> Trigger:
        """Evaluate a window when the clock passes its end."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """It is not."""
        return False


class _Tumbling:
    """Windows that follow each other.

    :param size: of each
    :param offset: by how much they are moved
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
        """Make the assigner.

        :param size: of each window
        :param offset: by how much windows are moved
        :returns: the assigner
        """
        return cls(size, offset)

    def window_of(self, timestamp: int) -> tuple[TimeWindow]:
        """The window of a timestamp.

        :param timestamp: ms
        :returns: its window
        """
        start = timestamp - (timestamp - self.offset) % self.size
        found = self._known.get(start)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[start] = (TimeWindow(start, start + self.size),)
        return found


class TumblingEventTimeWindows(_EventTime, _Tumbling, WindowAssigner):
    """Windows of event time that follow each other."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """The window of its timestamp."""
        return self.window_of(timestamp)


class TumblingProcessingTimeWindows(_ProcessingTime, _Tumbling, WindowAssigner):
    """Windows of processing time that follow each other."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """The window of this moment."""
        return self.window_of(context.get_current_processing_time())


class _Sliding:
    """Windows that overlap.

    :param size: of each
    :param slide: from one start to the next
    :param offset: by how much they are moved
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
        """Make the assigner.

        :param size: of each window
        :param slide: from one start to the next
        :param offset: by how much windows are moved
        :returns: the assigner
        """
        return cls(size, slide, offset)

    def windows_of(self, timestamp: int) -> list[TimeWindow]:
        """The windows of a timestamp, the latest first.

        :param timestamp: ms
        :returns: its windows
        """
        last = timestamp - (timestamp - self.offset) % self.slide
        return [TimeWindow(start, start + self.size) for start in range(last, timestamp - self.size, -self.slide)]


class SlidingEventTimeWindows(_EventTime, _Sliding, WindowAssigner):
    """Windows of event time that overlap."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """The windows of its timestamp."""
        return self.windows_of(timestamp)


class SlidingProcessingTimeWindows(_ProcessingTime, _Sliding, WindowAssigner):
    """Windows of processing time that overlap."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """The windows of this moment."""
        return self.windows_of(context.get_current_processing_time())


class SessionWindowTimeGapExtractor(ABC):
    """Gives the gap of an element."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap.

        :param element: the element
        :returns: for how long its session stays open, in ms
        """


class _Sessions:
    """Windows that grow with their elements.

    :param gap: for how long a session stays open: a length of time, an extractor, or a callable
    """

    def __init__(self, gap: Any) -> None:
        if isinstance(gap, SessionWindowTimeGapExtractor):
            self._gap_of: Callable[[Any], Any] | None = gap.extract
        elif callable(gap):
            self._gap_of = gap
        else:
            self._gap_of = None
            self._gap = self._checked(milliseconds(gap))

    @classmethod
    def with_gap(cls, size: Any) -> Self:
        """Make the assigner.

        :param size: for how long a session stays open
        :returns: the assigner
        """
        return cls(size)

    @classmethod
    def with_dynamic_gap(cls, session_window_time_gap_extractor: Any) -> Self:
        """Make the assigner.

        :param session_window_time_gap_extractor: gives the gap of each element
        :returns: the assigner
        """
        return cls(session_window_time_gap_extractor)

    @staticmethod
    def _checked(gap: int) -> int:
        if gap <= 0:
            raise StreamProgramError(f"The gap of a session is {gap} ms: it must be more than 0.")
        return gap

    def session_of(self, element: Any, timestamp: int) -> tuple[TimeWindow]:
        """The session of one element alone.

        :param element: the element
        :param timestamp: ms
        :returns: the window
        """
        gap = self._gap if self._gap_of is None else self._checked(milliseconds(self._gap_of(element)))
        return (TimeWindow(timestamp, timestamp + gap),)

    def merge_candidates(self, windows: Collection[TimeWindow], new: TimeWindow) -> Collection[TimeWindow]:
        """Sessions that overlap it or touch it."""
        start, end = new
        return [window for window in windows if window[0] <= end and window[1] >= start]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback) -> None:
        """Sessions that overlap or touch become one."""
        TimeWindow.merge_windows(windows, callback)


class EventTimeSessionWindows(_EventTime, _Sessions, MergingWindowAssigner):
    """Sessions of event time."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """The session that begins with it."""
        return self.session_of(element, timestamp)


class ProcessingTimeSessionWindows(_ProcessingTime, _Sessions, MergingWindowAssigner):
    """Sessions of processing time."""

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Collection[TimeWindow]:
        """The session that begins now."""
        return self.session_of(element, context.get_current_processing_time())
