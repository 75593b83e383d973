"""Functions of users: base classes with the methods that operators call."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from airflow_pipelines.streams.culprits import culprit
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.timers import TimeDomain
from airflow_pipelines.streams.windows.window import Window


class Function(ABC):  # noqa: B024 (what is abstract follows in its kinds)
    """Base of all functions. One object serves all elements of a task, and lives as long as the task."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Called before the first element: the place to ask for state.

        :param runtime_context: where the function runs
        """

    def close(self) -> None:  # noqa: B027
        """Called after the last element, also after an error."""


class MapFunction(Function):
    """Gives one value for each element."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Transform an element.

        :param value: the element
        :returns: the result
        """


class FlatMapFunction(Function):
    """Gives any number of values for each element."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Transform an element.

        :param value: the element
        :returns: the results: yield them, or return a list
        """


class FilterFunction(Function):
    """Keeps an element, or not."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Look at an element.

        :param value: the element
        :returns: whether to keep it
        """


class ReduceFunction(Function):
    """Makes one value of two."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine.

        :param value1: what was combined so far
        :param value2: the next element
        :returns: both as one
        """


class AggregateFunction(Function):
    """Adds elements to an accumulator, from which a result follows."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Begin.

        :returns: an accumulator that nothing was added to
        """

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Add an element.

        :param value: the element
        :param accumulator: what was added so far
        :returns: the accumulator with it
        """

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """What follows from the accumulator.

        :param accumulator: what was added
        :returns: the result
        """

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Make one accumulator of two, as merging windows do.

        :param acc_a: one
        :param acc_b: the other
        :returns: both as one
        """


class KeySelector(Function):
    """Gives the key of an element."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key.

        :param value: the element
        :returns: its key
        """


class NullByteKeySelector(KeySelector):
    """Gives all elements the same key."""

    def get_key(self, value: Any) -> Any:
        """The one key."""
        return 0


class Partitioner(Function):
    """Chooses the task for a key."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Choose.

        :param key: of an element
        :param num_partitions: number of tasks
        :returns: number of a task, from 0
        """


class CoMapFunction(Function):
    """Gives one value for each element of two streams."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Transform an element of the first stream; a result of None gives nothing."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Transform an element of the second stream; a result of None gives nothing."""


class CoFlatMapFunction(Function):
    """Gives any number of values for each element of two streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Transform an element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Transform an element of the second stream."""


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


class _WindowContext(ABC):
    """What a window function may ask."""

    @abstractmethod
    def window(self) -> Window:
        """The window.

        :returns: the window that fires
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
    def window_state(self) -> Any:
        """State of this key in this window, which :meth:`ProcessWindowFunction.clear` must clear.

        :returns: gives states by their descriptors
        """

    @abstractmethod
    def global_state(self) -> Any:
        """State of this key in all windows.

        :returns: gives states by their descriptors
        """


class WindowFunction(Function):
    """Makes results of the elements of a window."""

    @abstractmethod
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window.

        :param key: of its elements
        :param window: the window
        :param inputs: the elements
        :returns: the results
        """


class AllWindowFunction(Function):
    """Makes results of the elements of a window over a stream without keys."""

    @abstractmethod
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window."""


class ProcessWindowFunction(Function):
    """Makes results of the elements of a window, and may ask for the time and state."""

    class Context(_WindowContext):
        """What may be asked."""

    @abstractmethod
    def process(self, key: Any, content: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window.

        :param key: of its elements
        :param content: the window, the time and state
        :param elements: the elements
        :returns: the results
        """

    def clear(self, context: ProcessWindowFunction.Context) -> None:
        """The window is over: clear its state.

        :param context: the window, the time and state
        """


class ProcessAllWindowFunction(Function):
    """The same for windows over a stream without keys."""

    class Context(_WindowContext):
        """What may be asked."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window."""

    def clear(self, context: ProcessAllWindowFunction.Context) -> None:
        """The window is over: clear its state."""


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


class CallableFunction(Function):
    """Makes a function object of something that can be called, for every method of one argument or two.

    :param call: what to call
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self.map = self.flat_map = self.filter = self.reduce = self.get_key = self.partition = call
        self.call = call

    def __deepcopy__(self, memo: dict[int, Any]) -> CallableFunction:
        return CallableFunction(copy.deepcopy(self.call, memo))


def wraps_nothing(name: str, method: str, does: str) -> str:
    """Why a base class is not made an object of.

    :param name: of the class
    :param method: what a class derived from it has, with parameters
    :param does: what that does
    :returns: a sentence
    """
    return (
        f"{name} is derived from, and wraps no class of the JVM: there is none here. Write `class Mine({name})` with a method"
        f" {method} that {does}."
    )


F = TypeVar("F", bound=Function)


def own_copy(function: F) -> F:
    """A function object for one parallel instance, as if it had travelled there.

    :param function: what the program gave
    :returns: a copy
    :raises StreamProgramError: when something in it cannot be copied: the message has the path to it
    """
    try:
        return copy.deepcopy(function)
    except Exception as error:  # noqa: BLE001 (whatever it is, the message has it)
        path, value = culprit(function, copy.deepcopy)
        raise StreamProgramError(
            f"{type(function).__name__}{path} (of type {type(value).__name__}) cannot be copied to where the function runs"
            f" ({type(error).__name__}: {error}). Make connections, locks and open files in open(), where each parallel instance"
            " makes its own."
        ) from None
