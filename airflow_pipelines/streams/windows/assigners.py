"""Window assigners: which windows an element belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, Self

from airflow_pipelines.streams.durations import milliseconds
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.state.descriptors import ValueStateDescriptor
from airflow_pipelines.streams.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from airflow_pipelines.streams.windows.window import CountWindow, GlobalWindow, TimeWindow

_REMEMBERED = 10_000


class WindowAssigner(ABC):
    """Says which windows an element belongs to."""

    class WindowAssignerContext(ABC):
        """What an assigner may ask."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Processing time.

            :returns: ms since 1970
            """

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Where the operator runs, and state of the current key.

            :returns: the context
            """

    @abstractmethod
    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[Any]:
        """The windows of an element.

        :param element: the element
        :param timestamp: its event time
        :param context: processing time and state
        :returns: the windows
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger:
        """When windows are evaluated unless the program says otherwise.

        :param env: the environment of the program
        :returns: the trigger
        """

    def get_window_serializer(self) -> Any:
        """How windows become bytes: without effect, windows are pickled with the state.

        :returns: None
        """
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows are made of event time.

        :returns: whether they are
        """


class MergingWindowAssigner(WindowAssigner):
    """An assigner whose windows may become one."""

    class MergeCallback(ABC):
        """Is told which windows become one."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
            """Windows become one.

            :param to_be_merged: the windows
            :param merge_result: what they become
            """

    @abstractmethod
    def merge_windows(self, windows: Iterable[Any], callback: MergeCallback) -> None:
        """Find out which windows become one.

        :param windows: the windows of one key
        :param callback: is told
        """

    def merge_candidates(self, windows: Collection[Any], new: Any) -> Collection[Any]:
        """Which windows of a key to look at when there is another one. Those of a key do not merge with each other any more.

        :param windows: the windows of one key
        :param new: another one
        :returns: all that may become one with it
        """
        return windows


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


class GlobalWindows(WindowAssigner):
    """One window of all elements of a key. It never fires unless the program sets a trigger."""

    @staticmethod
    def create() -> GlobalWindows:
        """Make the assigner.

        :returns: the assigner
        """
        return GlobalWindows()

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        """The window."""
        return (GlobalWindow(),)

    def get_default_trigger(self, env: Any) -> Trigger:
        """Never."""
        return NeverTrigger()

    def is_event_time(self) -> bool:
        """It is not."""
        return False


class _Counting(WindowAssigner):
    def __init__(self, size: int) -> None:
        if not isinstance(size, int) or size < 1:
            raise StreamProgramError(f"The size of a count window is {size!r}: it must be a whole number of at least 1.")
        self.size = size
        self._descriptor = ValueStateDescriptor("number-of-elements")

    def get_default_trigger(self, env: Any) -> Trigger:
        """Evaluate a window once, when it is full."""
        return PurgingTrigger(CountTrigger(self.size))

    def is_event_time(self) -> bool:
        """It is not."""
        return False

    def _count(self, context: WindowAssigner.WindowAssignerContext) -> int:
        state = context.get_runtime_context().get_state(self._descriptor)
        number: int = state.value() or 0
        state.update(number + 1)
        return number


class CountTumblingWindowAssigner(_Counting):
    """Windows of a number of elements that follow each other. A window that is not full never fires.

    :param window_size: number of elements
    """

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Make the assigner.

        :param window_size: number of elements
        :returns: the assigner
        """
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """The window of its number."""
        return (CountWindow(self._count(context) // self.size),)


class CountSlidingWindowAssigner(_Counting):
    """Windows of a number of elements that overlap. A window that is not full never fires.

    :param window_size: number of elements
    :param window_slide: number of elements from one start to the next
    """

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size)
        if not isinstance(window_slide, int) or window_slide < 1:
            raise StreamProgramError(f"The slide of a count window is {window_slide!r}: it must be a whole number of at least 1.")
        self.slide = window_slide

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Make the assigner.

        :param window_size: number of elements
        :param window_slide: number of elements from one start to the next
        :returns: the assigner
        """
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """The windows of its number, the earliest first."""
        number = self._count(context)
        first = max(0, (number - self.size) // self.slide + 1)
        return [CountWindow(each) for each in range(first, number // self.slide + 1)]
