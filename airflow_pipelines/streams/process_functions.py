"""Functions that look at elements with their timestamps, timers and keys: of one stream, of two, and of one that is broadcast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from airflow_pipelines.streams.functions import Function
from airflow_pipelines.streams.timers import TimeDomain


class TimerService(ABC):
    """Tells the time and keeps timers of the current key."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Processing time.

        :returns: ms since 1970
        """

    @abstractmethod
    def current_watermark(self) -> int:
        """How far event time has come.

        :returns: timestamp in ms
        """

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Have ``on_timer`` called when the watermark reaches a timestamp.

        :param timestamp: ms
        """

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Have ``on_timer`` called when the clock reaches a timestamp.

        :param timestamp: ms since 1970
        """

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Take back a timer.

        :param timestamp: ms
        """

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Take back a timer.

        :param timestamp: ms since 1970
        """


class _Context(ABC):
    """What a function may ask while it looks at an element."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """The time, and timers.

        :returns: the service
        """

    @abstractmethod
    def timestamp(self) -> int | None:
        """Event time of the element, or of the timer.

        :returns: ms, None for an element without
        """


class _KeyedContext(_Context):
    @abstractmethod
    def get_current_key(self) -> Any:
        """The key of the element, or of the timer.

        :returns: the key
        """


class _OnTimerContext(_KeyedContext):
    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Which notion of time the timer was registered for.

        :returns: the domain
        """


class ProcessFunction(Function):
    """Looks at an element, its timestamp and the watermark."""

    class Context(_Context):
        """What may be asked."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Look at an element.

        :param value: the element
        :param ctx: its timestamp, and the time
        :returns: the results: yield them, or return a list; ``tag, value`` goes to a side output
        """


class KeyedProcessFunction(Function):
    """Looks at an element of a keyed stream, with state and timers of its key."""

    class Context(_KeyedContext):
        """What may be asked."""

    class OnTimerContext(_OnTimerContext):
        """What may be asked when a timer fires."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Look at an element.

        :param value: the element
        :param ctx: its key and timestamp, the time, and timers
        :returns: the results: yield them, or return a list; ``tag, value`` goes to a side output
        """

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """A timer fires.

        :param timestamp: what it was registered for
        :param ctx: its key and notion of time, the time, and timers
        :returns: as of :meth:`process_element`
        """
        return None


class CoProcessFunction(Function):
    """Looks at elements of two streams."""

    class Context(_Context):
        """What may be asked."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Look at an element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Look at an element of the second stream."""


class KeyedCoProcessFunction(Function):
    """Looks at elements of two streams with the same keys, with state and timers of the key."""

    class Context(_KeyedContext):
        """What may be asked."""

    class OnTimerContext(_OnTimerContext):
        """What may be asked when a timer fires."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Look at an element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Look at an element of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """A timer fires."""
        return None


class _BaseBroadcastContext(ABC):
    @abstractmethod
    def timestamp(self) -> int | None:
        """Event time of the element.

        :returns: ms, None for an element without
        """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Processing time.

        :returns: ms since 1970
        """

    @abstractmethod
    def current_watermark(self) -> int:
        """How far event time has come.

        :returns: timestamp in ms
        """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: Any) -> Any:
        """The state that all tasks have in common. Only elements of the broadcast side may change it.

        :param state_descriptor: one of those that the stream was broadcast with
        :returns: the map
        """


class BroadcastProcessFunction(Function):
    """Looks at elements of a stream with what was broadcast to all its tasks."""

    class Context(_BaseBroadcastContext):
        """What may be asked for an element of the broadcast side."""

    class ReadOnlyContext(_BaseBroadcastContext):
        """What may be asked for an element of the other side."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[Any] | None:
        """Look at an element of the stream."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Iterable[Any] | None:
        """Look at an element that every task gets."""


class KeyedBroadcastProcessFunction(Function):
    """Looks at elements of a keyed stream with what was broadcast to all its tasks."""

    class Context(_BaseBroadcastContext):
        """What may be asked for an element of the broadcast side."""

        @abstractmethod
        def apply_to_keyed_state(self, state_descriptor: Any, function: Callable[[Any, Any], None]) -> None:
            """Call a function for the state of every key of this task.

            :param state_descriptor: which state
            :param function: is given the key and its state
            """

    class ReadOnlyContext(_BaseBroadcastContext):
        """What may be asked for an element of the keyed side."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The time, and timers of the key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the element."""

    class OnTimerContext(ReadOnlyContext):
        """What may be asked when a timer fires."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which notion of time the timer was registered for."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[Any] | None:
        """Look at an element of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[Any] | None:
        """Look at an element that every task gets."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """A timer fires."""
        return None
