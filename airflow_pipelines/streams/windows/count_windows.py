"""Windows that end after a number of elements, or never."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.descriptors import ValueStateDescriptor
from airflow_pipelines.streams.windows.assigners import WindowAssigner
from airflow_pipelines.streams.windows.trigger import Trigger
from airflow_pipelines.streams.windows.triggers import (
    CountTrigger,
    NeverTrigger,
    PurgingTrigger,
)
from airflow_pipelines.streams.windows.window import CountWindow, GlobalWindow


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """An assigner with one window for all elements of a key. It never fires unless the program sets a trigger."""

    @staticmethod
    def create() -> GlobalWindows:
        """Create the assigner.

        :returns: the assigner
        """
        return GlobalWindows()

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        """Return the global window."""
        return (GlobalWindow(),)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Return a trigger that never fires."""
        return NeverTrigger()

    def is_event_time(self) -> bool:
        """Return False."""
        return False


class _Counting(WindowAssigner[Any, CountWindow]):
    def __init__(self, size: int) -> None:
        if not isinstance(size, int) or size < 1:
            raise StreamProgramError(f"The size of a count window is {size!r}: it must be a whole number of at least 1.")
        self.size = size
        self._descriptor = ValueStateDescriptor("number-of-elements")

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Return a trigger that evaluates a window once, when it is full."""
        return PurgingTrigger(CountTrigger(self.size))

    def is_event_time(self) -> bool:
        """Return False."""
        return False

    def _count(self, context: WindowAssigner.WindowAssignerContext) -> int:
        state = context.get_runtime_context().get_state(self._descriptor)
        number: int = state.value() or 0
        state.update(number + 1)
        return number


class CountTumblingWindowAssigner(_Counting):
    """An assigner of consecutive windows with a number of elements. A window that is not full never fires.

    :param window_size: the number of elements
    """

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Create the assigner.

        :param window_size: the number of elements
        :returns: the assigner
        """
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """Return the window for the number of the element."""
        return (CountWindow(self._count(context) // self.size),)


class CountSlidingWindowAssigner(_Counting):
    """An assigner of overlapping windows with a number of elements. A window that is not full never fires.

    :param window_size: the number of elements
    :param window_slide: the number of elements from one start to the next
    """

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size)
        if not isinstance(window_slide, int) or window_slide < 1:
            raise StreamProgramError(f"The slide of a count window is {window_slide!r}: it must be a whole number of at least 1.")
        self.slide = window_slide

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Create the assigner.

        :param window_size: the number of elements
        :param window_slide: the number of elements from one start to the next
        :returns: the assigner
        """
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """Return the windows for the number of the element, the earliest first."""
        number = self._count(context)
        first = max(0, (number - self.size) // self.slide + 1)
        return [CountWindow(each) for each in range(first, number // self.slide + 1)]
