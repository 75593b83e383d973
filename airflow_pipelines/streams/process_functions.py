"""Functions that work on elements with their timestamps, timers and keys: of one stream, of two, and of one that is broadcast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from airflow_pipelines.streams.functions import Function
from airflow_pipelines.streams.timers import TimeDomain


class TimerService(ABC):
    """A service that tells the time and keeps timers of the current key.

    >>> from airflow_pipelines.datastream import KeyedProcessFunction, StreamExecutionEnvironment
    >>> class Reminder(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(value[1] + 60_000)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield f"{ctx.get_current_key()} has waited until {timestamp}"
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> orders = env.from_collection([("ann", 2_000), ("bob", 1_000)]).key_by(lambda order: order[0])
    >>> list(orders.process(Reminder()).execute_and_collect())
    ['bob has waited until 61000', 'ann has waited until 62000']
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time.

        :returns: ms since 1970
        """

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the current watermark.

        :returns: timestamp in ms
        """

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Register a timer: ``on_timer`` is called when the watermark reaches the timestamp.

        :param timestamp: ms
        """

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a timer: ``on_timer`` is called when the clock reaches the timestamp.

        :param timestamp: ms since 1970
        """

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete an event-time timer.

        :param timestamp: ms
        """

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a processing-time timer.

        :param timestamp: ms since 1970
        """


class _Context(ABC):
    """The context of a function while it processes an element."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the service for the time and for timers.

        :returns: the service
        """

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the event time of the element, or of the timer.

        :returns: ms, None for an element that has none
        """


class _KeyedContext(_Context):
    @abstractmethod
    def get_current_key(self) -> Any:
        """Return the key of the element, or of the timer.

        :returns: the key
        """


class _OnTimerContext(_KeyedContext):
    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return the time domain of the timer.

        :returns: the domain
        """


class ProcessFunction(Function):
    """A function that processes an element with its timestamp and the watermark."""

    class Context(_Context):
        """The context of an element."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Process an element.

        :param value: the element
        :param ctx: its timestamp, and the time
        :returns: the results: yield them, or return a list; ``tag, value`` goes to a side output
        """


class KeyedProcessFunction(Function):
    """A function that processes an element of a keyed stream, with state and timers of its key."""

    class Context(_KeyedContext):
        """The context of an element."""

    class OnTimerContext(_OnTimerContext):
        """The context of a timer that fires."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Process an element.

        :param value: the element
        :param ctx: its key and timestamp, the time, and timers
        :returns: the results: yield them, or return a list; ``tag, value`` goes to a side output
        """

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Process a timer that fires.

        :param timestamp: the timestamp for which it was registered
        :param ctx: its key and time domain, the time, and timers
        :returns: the results, as for :meth:`process_element`
        """
        return None


class CoProcessFunction(Function):
    """A function that processes elements of two streams.

    >>> from airflow_pipelines.datastream import CoProcessFunction, StreamExecutionEnvironment
    >>> class Booking(CoProcessFunction):
    ...     def process_element1(self, deposit, ctx):
    ...         yield "deposit", deposit
    ...     def process_element2(self, withdrawal, ctx):
    ...         yield "withdrawal", -withdrawal
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> deposits, withdrawals = env.from_collection([100, 50]), env.from_collection([30])
    >>> sorted(deposits.connect(withdrawals).process(Booking()).execute_and_collect())
    [('deposit', 50), ('deposit', 100), ('withdrawal', -30)]
    """

    class Context(_Context):
        """The context of an element."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Process an element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Process an element of the second stream."""


class KeyedCoProcessFunction(Function):
    """A function that processes elements of two streams with the same keys, with state and timers of the key."""

    class Context(_KeyedContext):
        """The context of an element."""

    class OnTimerContext(_OnTimerContext):
        """The context of a timer that fires."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Process an element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any] | None:
        """Process an element of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Process a timer that fires."""
        return None


class _BaseBroadcastContext(ABC):
    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the event time of the element.

        :returns: ms, None for an element that has none
        """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time.

        :returns: ms since 1970
        """

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the current watermark.

        :returns: timestamp in ms
        """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: Any) -> Any:
        """Return a broadcast state, which all tasks share. Only elements of the broadcast side may change it.

        :param state_descriptor: one of the descriptors with which the stream was broadcast
        :returns: the map
        """


class BroadcastProcessFunction(Function):
    """A function that processes elements of a stream together with state that was broadcast to all its tasks.

    >>> from airflow_pipelines.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.state import MapStateDescriptor
    >>> RATES = MapStateDescriptor("rates")
    >>> class InDollars(BroadcastProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.early = []
    ...     def process_element(self, value, ctx):
    ...         rate = ctx.get_broadcast_state(RATES).get("EUR")
    ...         return self.early.append(value) if rate is None else [value * rate]
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(RATES).put("EUR", value)
    ...         early, self.early = self.early, []
    ...         return [euros * value for euros in early]
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> euros, rates = env.from_collection([10.0, 20.0]), env.from_collection([1.25]).broadcast(RATES)
    >>> sorted(euros.connect(rates).process(InDollars()).execute_and_collect())
    [12.5, 25.0]
    """

    class Context(_BaseBroadcastContext):
        """The context of an element of the broadcast side."""

    class ReadOnlyContext(_BaseBroadcastContext):
        """The context of an element of the other side."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[Any] | None:
        """Process an element of the stream."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Iterable[Any] | None:
        """Process an element that every task gets."""


class KeyedBroadcastProcessFunction(Function):
    """A function that processes elements of a keyed stream together with state that was broadcast to all its tasks."""

    class Context(_BaseBroadcastContext):
        """The context of an element of the broadcast side."""

        @abstractmethod
        def apply_to_keyed_state(self, state_descriptor: Any, function: Callable[[Any, Any], None]) -> None:
            """Call a function for the state of every key of this task.

            :param state_descriptor: the descriptor of the state
            :param function: a function that receives the key and its state
            """

    class ReadOnlyContext(_BaseBroadcastContext):
        """The context of an element of the keyed side."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the service for the time and for timers of the key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the element."""

    class OnTimerContext(ReadOnlyContext):
        """The context of a timer that fires."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return the time domain of the timer."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[Any] | None:
        """Process an element of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[Any] | None:
        """Process an element that every task gets."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """Process a timer that fires."""
        return None
