"""Joins of two streams: of the elements of a window, and of elements whose times are near to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.time import Duration, Time
from airflow_pipelines.datastream.connected_streams import Input
from airflow_pipelines.datastream.given_functions import as_function, checked_function, checked_tag, key_selector_of
from airflow_pipelines.datastream.windowed_stream import KeyedElements, WindowedStream
from airflow_pipelines.streams.elements import OutputTag
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.functions import Function, KeySelector, MapFunction
from airflow_pipelines.streams.join_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
    results_of,
)
from airflow_pipelines.streams.operators.interval_join import IntervalJoin
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.window_functions import WindowFunction
from airflow_pipelines.streams.windows.assigners import WindowAssigner
from airflow_pipelines.streams.windows.trigger import Trigger

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


WindowJoin: TypeAlias = JoinFunction[Any, Any, Any] | FlatJoinFunction[Any, Any, Any] | CoGroupFunction[Any, Any, Any]


class Elements(Protocol[S_co]):
    """The interface of a stream that a join by window needs."""

    def get_execution_environment(self) -> Any:
        """Return the environment of the program."""
        ...

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: Any = None) -> S_co:
        """Return the stream with its elements transformed."""
        ...


class _Side(MapFunction):
    """A function that marks an element with the number of its stream."""

    def __init__(self, number: int) -> None:
        self._number = number

    def map(self, value: Any) -> tuple[int, Any]:
        return self._number, value


class _KeyOfSide(KeySelector):
    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
        self._selectors = first, second

    def get_key(self, value: tuple[int, Any]) -> Any:
        return self._selectors[value[0]](value[1])


class _OfSides(WindowFunction[Any, Any, Any, Any]):
    """A function over the marked elements of both streams in a window.

    :param function: the function of the program
    """

    def __init__(self, function: Function) -> None:
        self._function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.open(runtime_context)

    def close(self) -> None:
        self._function.close()

    def apply(self, key: Any, window: Any, inputs: Iterable[tuple[int, Any]]) -> Iterator[Any]:
        sides: tuple[list[Any], list[Any]] = ([], [])
        for number, value in inputs:
            sides[number].append(value)
        return self._join(*sides)

    def _join(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        function = self._function
        if isinstance(function, CoGroupFunction):
            yield from results_of(function.co_group(first, second))
            return
        is_flat = isinstance(function, FlatJoinFunction)
        for left in first:
            for right in second:
                result = function.join(left, right)  # type: ignore[attr-defined]
                yield from results_of(result) if is_flat else (result,)


class JoinedStreams(Generic[S]):
    """Two streams whose elements are joined by key and window. Elements without a partner give no result.

    :param stream1: the first stream
    :param stream2: the second stream

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, Time, WatermarkStrategy
    >>> from airflow_pipelines.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
    >>> clicks = env.from_collection([("ann", 1), ("bob", 2), ("ann", 12)]).assign_timestamps_and_watermarks(timed)
    >>> orders = env.from_collection([("ann", 5)]).assign_timestamps_and_watermarks(timed)
    >>> by_name = clicks.join(orders).where(lambda click: click[0]).equal_to(lambda order: order[0])
    >>> joined = by_name.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    >>> list(joined.apply(lambda click, order: (click[0], click[1], order[1])).execute_and_collect())
    [('ann', 1, 5)]
    """

    _name = "Join"

    def __init__(self, stream1: Elements[S], stream2: Elements[S]) -> None:
        if stream1.get_execution_environment() is not stream2.get_execution_environment():
            raise StreamProgramError(f"{self._name.lower()}() of streams of two environments: a program has one.")
        self._streams = stream1, stream2
        self._first_key: Callable[[Any], Any] | None = None
        self._keys: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None = None
        self._key_type: Any = None

    def where(self, key_selector: Callable[[Any], Any] | KeySelector, key_type: Any = None) -> Self:
        """Set the key of the first stream.

        :param key_selector: the function that returns the key of an element
        :param key_type: declared type of the keys; optional
        :returns: this object
        """
        self._first_key, self._key_type = key_selector_of(key_selector), key_type
        return self

    def equal_to(self, key_selector: Callable[[Any], Any] | KeySelector) -> Self:
        """Set the key of the second stream.

        :param key_selector: the function that returns the key of an element
        :returns: this object
        :raises StreamProgramError: if the first stream has no key yet
        """
        if self._first_key is None:
            raise StreamProgramError("equal_to() sets the key of the second stream: call where(...) before it for the first one.")
        self._keys = self._first_key, key_selector_of(key_selector)
        return self

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> JoinedWindows[S]:
        """Assign the elements of both streams to windows.

        :param window_assigner: the assigner; it gets each element as a pair of the number of its stream, 0 or 1, and the element
        :returns: the windows
        :raises StreamProgramError: if a key is missing
        """
        if self._keys is None:
            raise StreamProgramError("window() needs keys: call where(...) and equal_to(...) before it.")
        first, second = (
            self._mark_elements(stream, number, word)
            for stream, number, word in zip(self._streams, (0, 1), ("first", "second"), strict=True)
        )
        keyed = first.union(second).key_by(_KeyOfSide(*self._keys), self._key_type)
        return JoinedWindows(keyed, window_assigner, self._function_of, self._name)

    def _mark_elements(self, stream: Elements[S], number: int, word: str) -> Any:
        marked: Any = stream.map(_Side(number))
        return marked.name(f"{self._name}: {word} stream")

    @staticmethod
    def _function_of(function: Any) -> Function:
        if isinstance(function, FlatJoinFunction | JoinFunction):
            return function
        if isinstance(function, Function) or not callable(function):
            return checked_function(function, JoinFunction, "apply")  # type: ignore[no-any-return]
        return _JoinBy(function)


class CoGroupedStreams(JoinedStreams[S]):
    """Two streams whose elements are grouped by key and window, including those without a partner.

    :param stream1: the first stream
    :param stream2: the second stream

    >>> from airflow_pipelines.datastream import CoGroupFunction, StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.window import CountTrigger, GlobalWindows
    >>> class Both(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         yield sorted(first), sorted(second)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> grouped = env.from_collection([1, 2]).co_group(env.from_collection([3])).where(lambda n: 0).equal_to(lambda n: 0)
    >>> windows = grouped.window(GlobalWindows.create()).trigger(CountTrigger.of(3))
    >>> list(windows.apply(Both()).execute_and_collect())
    [([1, 2], [3])]
    """

    _name = "Co-Group"

    @staticmethod
    def _function_of(function: Any) -> Function:
        return checked_function(function, CoGroupFunction, "apply")  # type: ignore[no-any-return]


class _JoinBy(JoinFunction[Any, Any, Any]):
    def __init__(self, call: Callable[[Any, Any], Any]) -> None:
        self.call = as_function(call, JoinFunction, "apply").call  # type: ignore[attr-defined]

    def join(self, first: Any, second: Any) -> Any:
        return self.call(first, second)


class JoinedWindows(Generic[S]):
    """The windows of two streams that are joined.

    :param keyed: the marked elements of both streams, by key
    :param assigner: the assigner of elements to windows
    :param function_of: the function that checks the function of the program
    :param name: the name of the operator
    """

    def __init__(
        self, keyed: KeyedElements[S], assigner: WindowAssigner[Any, Any], function_of: Callable[[Any], Function], name: str
    ) -> None:
        self._windows: WindowedStream[S] = WindowedStream(keyed, assigner)
        self._function_of = function_of
        self._name = name

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Set the trigger, which decides when a window is evaluated.

        :param trigger: the trigger
        :returns: this object
        """
        self._windows.trigger(trigger)
        return self

    def allowed_lateness(self, time_ms: int) -> Self:
        """Set the time after its end for which a window accepts elements.

        :param time_ms: milliseconds
        :returns: this object
        """
        self._windows.allowed_lateness(time_ms)
        return self

    def apply(self, function: WindowJoin | Callable[[Any, Any], Any], result_type: Any = None) -> S:
        """Make results of the elements of each key and window.

        :param function: for a join the function of pairs, an object or a callable; for a co-group a ``CoGroupFunction``
        :param result_type: declared type of the results; optional
        :returns: the results
        """
        results: Any = self._windows.apply(_OfSides(self._function_of(function)), result_type)
        return results.name(self._name)  # type: ignore[no-any-return]


class IntervalJoinedStreams(Generic[S]):
    """Two streams with keys whose elements are joined by their times. Use :meth:`between`.

    :param left: the left stream
    :param right: the right stream
    """

    def __init__(self, left: Input[S], right: Input[S]) -> None:
        self._streams = left, right

    def between(self, lower_bound: Time | Duration, upper_bound: Time | Duration) -> IntervalJoined[S]:
        """Join an element with those of the other stream whose time is from ``lower_bound`` to ``upper_bound`` after its own.

        :param lower_bound: the least difference of the right time to the left one; may be negative
        :param upper_bound: the greatest difference of the right time to the left one
        :returns: the join
        """
        lower, upper = _milliseconds("lower_bound", lower_bound), _milliseconds("upper_bound", upper_bound)
        return IntervalJoined(*self._streams, lower, upper)


class IntervalJoined(Generic[S]):
    """The join of two streams by their times.

    :param left: the left stream
    :param right: the right stream
    :param lower: the least difference of the right time to the left one, in ms
    :param upper: the greatest difference of the right time to the left one, in ms
    """

    def __init__(self, left: Input[S], right: Input[S], lower: int, upper: int) -> None:
        self._streams = left, right
        self._lower = lower
        self._upper = upper
        self._late: tuple[OutputTag[Any] | None, OutputTag[Any] | None] = (None, None)

    def lower_bound_exclusive(self) -> Self:
        """Exclude the lower bound itself.

        :returns: this object
        """
        self._lower += 1
        return self

    def upper_bound_exclusive(self) -> Self:
        """Exclude the upper bound itself.

        :returns: this object
        """
        self._upper -= 1
        return self

    def side_output_left_late_data(self, output_tag: OutputTag[Any]) -> Self:
        """Send late elements of the left stream to a side output. They are dropped otherwise.

        :param output_tag: the tag
        :returns: this object
        """
        self._late = checked_tag(output_tag, "side_output_left_late_data"), self._late[1]
        return self

    def side_output_right_late_data(self, output_tag: OutputTag[Any]) -> Self:
        """Send late elements of the right stream to a side output. They are dropped otherwise.

        :param output_tag: the tag
        :returns: this object
        """
        self._late = self._late[0], checked_tag(output_tag, "side_output_right_late_data")
        return self

    def process(self, process_join_function: ProcessJoinFunction[Any, Any, Any], output_type: Any = None) -> S:
        """Make results of each pair.

        :param process_join_function: the function object
        :param output_type: declared type of the results; optional
        :returns: the results
        :raises StreamProgramError: if no difference is within the bounds
        """
        if self._lower > self._upper:
            raise StreamProgramError(
                f"between() has no difference of times within it: the lower bound is {self._lower} ms and the upper one"
                f" {self._upper} ms."
            )
        function = checked_function(process_join_function, ProcessJoinFunction, "process")
        spec = IntervalJoin(function, self._lower, self._upper)
        tags = tuple(None if tag is None else tag.tag_id for tag in self._late)
        left, right = self._streams
        edges = left._edges(0) + right._edges(1)
        return left._add_operator("Interval Join", replace(spec, late_tags=tags), edges, output_type)  # type: ignore[arg-type]


def _milliseconds(name: str, time: Any) -> int:
    return time.to_millis() if isinstance(time, Duration) else checks.instance(name, time, Time).to_milliseconds()
