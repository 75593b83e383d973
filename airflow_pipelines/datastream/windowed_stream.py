"""Windowed streams, with the functions that evaluate each window."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from airflow_pipelines.datastream.given_functions import as_function, checked_function, checked_tag
from airflow_pipelines.streams.durations import milliseconds
from airflow_pipelines.streams.elements import OutputTag
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.functions import AggregateFunction, Function, ReduceFunction
from airflow_pipelines.streams.operators.base import OperatorSpec
from airflow_pipelines.streams.operators.windowing import Windowed
from airflow_pipelines.streams.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from airflow_pipelines.streams.windows.assigners import MergingWindowAssigner, WindowAssigner
from airflow_pipelines.streams.windows.trigger import Trigger

S_co = TypeVar("S_co", covariant=True)


class KeyedElements(Protocol[S_co]):
    """The interface of a stream with keys that windows need."""

    def get_execution_environment(self) -> Any:
        """Return the environment of the program."""
        ...

    def _then(self, name: str, spec: OperatorSpec, output_type: Any = None, **settings: Any) -> S_co: ...


class WindowedStream(Generic[S_co]):
    """The elements of each key in windows.

    :param keyed_stream: the stream with keys
    :param window_assigner: the assigner that selects the windows of an element

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, Time, WatermarkStrategy
    >>> from airflow_pipelines.datastream.window import TumblingEventTimeWindows
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda sale, _: sale[2])
    >>> sales = env.from_collection([("tea", 2, 1_000), ("tea", 3, 2_000), ("tea", 4, 11_000)])
    >>> sales = sales.assign_timestamps_and_watermarks(timed)
    >>> windows = sales.key_by(lambda sale: sale[0]).window(TumblingEventTimeWindows.of(Time.seconds(10)))
    >>> list(windows.reduce(lambda first, second: (first[0], first[1] + second[1], second[2])).execute_and_collect())
    [('tea', 5, 2000), ('tea', 4, 11000)]
    """

    def __init__(self, keyed_stream: KeyedElements[S_co], window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise StreamProgramError(
                f"window() needs a WindowAssigner such as TumblingEventTimeWindows.of(...), and was given {window_assigner!r}."
            )
        self._stream = keyed_stream
        self._assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._lateness = 0
        self._late_tag: str | None = None

    def trigger(self, trigger: Trigger[Any, Any]) -> Any:
        """Set the trigger that decides when windows are evaluated.

        :param trigger: the trigger
        :returns: this object
        """
        if not isinstance(trigger, Trigger):
            raise StreamProgramError(f"trigger() needs a Trigger, and was given {trigger!r}.")
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise StreamProgramError(f"{type(trigger).__name__} does not work with windows that merge: its can_merge() says so.")
        self._trigger = trigger
        return self

    def allowed_lateness(self, time_ms: Any) -> Any:
        """Set the time after its end for which a window accepts elements.

        :param time_ms: milliseconds
        :returns: this object
        """
        lateness = milliseconds(time_ms)
        if lateness < 0:
            raise StreamProgramError(f"The allowed lateness is {lateness} ms: it cannot be negative.")
        self._lateness = lateness
        return self

    def side_output_late_data(self, output_tag: OutputTag[Any]) -> Any:
        """Send late elements that no window accepts to a side output.

        :param output_tag: the tag of the side output
        :returns: this object
        """
        self._late_tag = checked_tag(output_tag, "side_output_late_data").tag_id
        return self

    def reduce(self, reduce_function: Any, window_function: Any = None, output_type: Any = None) -> S_co:
        """Combine the elements of each window incrementally.

        :param reduce_function: the function that combines two values into one
        :param window_function: the function that computes results from the combined value; optional
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return self._add_window_operator(
            "Window Reduce", as_function(reduce_function, ReduceFunction, "reduce"), window_function, output_type
        )

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: Any = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> S_co:
        """Add the elements of each window to an accumulator incrementally.

        :param aggregate_function: the function that adds elements to the accumulator
        :param window_function: the function that computes results from the result of the accumulator; optional
        :param accumulator_type: declared type of the accumulator; optional, without effect
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        del accumulator_type
        return self._add_window_operator(
            "Window Aggregate", checked_function(aggregate_function, AggregateFunction, "aggregate"), window_function, output_type
        )

    def apply(self, window_function: WindowFunction[Any, Any, Any, Any], result_type: Any = None) -> S_co:
        """Evaluate each window with all its elements.

        :param window_function: the function that computes results from the elements
        :param result_type: declared type of the results; optional
        :returns: the results
        """
        return self._add_window_operator(
            "Window Apply", None, checked_function(window_function, WindowFunction, "apply"), result_type
        )

    def process(self, process_window_function: ProcessWindowFunction[Any, Any, Any, Any], result_type: Any = None) -> S_co:
        """Evaluate each window with all its elements, the time and state.

        :param process_window_function: the function that computes results from the elements
        :param result_type: declared type of the results; optional
        :returns: the results
        """
        function = checked_function(process_window_function, ProcessWindowFunction, "process")
        return self._add_window_operator("Window Process", None, function, result_type)

    _function_kinds: tuple[type[Function], ...] = (WindowFunction, ProcessWindowFunction)

    def _add_window_operator(self, name: str, combine: Function | None, function: Any, output_type: Any) -> S_co:
        if function is not None and not isinstance(function, self._function_kinds):
            expected = " or ".join(kind.__name__ for kind in self._function_kinds)
            raise StreamProgramError(f"The window function is {function!r}: a {expected} is needed.")
        if self._lateness and not self._assigner.is_event_time():
            raise StreamProgramError("allowed_lateness() is for windows of event time: no element is late for a clock or a count.")
        trigger = self._trigger or self._assigner.get_default_trigger(self._stream.get_execution_environment())
        spec = Windowed(self._assigner, trigger, self._lateness, self._late_tag, combine, function)
        return self._add(name, spec, output_type)

    def _add(self, name: str, spec: Windowed, output_type: Any) -> S_co:
        return self._stream._then(name, spec, output_type)


class AllWindowedStream(WindowedStream[S_co]):
    """All elements of a stream in windows.

    :param stream: the stream, whose elements all have one key
    :param assigner: the assigner that selects the windows of an element

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> pairs = env.from_collection([1, 2, 3, 4]).count_window_all(2)
    >>> list(pairs.reduce(lambda first, second: first + second).execute_and_collect())
    [3, 7]
    """

    _function_kinds = (AllWindowFunction, ProcessAllWindowFunction)

    def __init__(self, stream: KeyedElements[S_co], assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(stream, assigner)

    def apply(self, window_function: AllWindowFunction[Any, Any, Any], result_type: Any = None) -> S_co:  # type: ignore[override]
        """Evaluate each window with all its elements.

        :param window_function: the function that computes results from the elements
        :param result_type: declared type of the results; optional
        :returns: the results
        """
        return self._add_window_operator(
            "Window Apply", None, checked_function(window_function, AllWindowFunction, "apply"), result_type
        )

    def process(self, process_window_function: ProcessAllWindowFunction[Any, Any, Any], result_type: Any = None) -> S_co:  # type: ignore[override]
        """Evaluate each window with all its elements, the time and state.

        :param process_window_function: the function that computes results from the elements
        :param result_type: declared type of the results; optional
        :returns: the results
        """
        function = checked_function(process_window_function, ProcessAllWindowFunction, "process")
        return self._add_window_operator("Window Process", None, function, result_type)

    def _add(self, name: str, spec: Windowed, output_type: Any) -> S_co:
        return self._stream._then(name, spec, output_type, non_parallel=True)
