"""Sinks that programs write themselves."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from airflow_pipelines.streams.clock import StepClock, SystemClock
from airflow_pipelines.streams.elements import MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.functions import Function, own_copy, wraps_nothing
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.sinks import Sink, SinkWriter, SubtaskInfo


class SinkContext:
    """The context of an element that a sink function can query.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
    >>> from airflow_pipelines.datastream.functions import SinkFunction
    >>> class PrintWithTime(SinkFunction):
    ...     def invoke(self, value, context):
    ...         print(f"{context.timestamp()} ms: {value[0]}")
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda sale, _: sale[1] * 1_000)
    >>> sales = env.from_collection([("apples", 3), ("pears", 5)]).assign_timestamps_and_watermarks(time)
    >>> end = sales.add_sink(PrintWithTime())
    >>> result = env.execute("sales")
    3000 ms: apples
    5000 ms: pears
    """

    def __init__(self) -> None:
        self.element_timestamp: int | None = None
        self.watermark = MIN_TIMESTAMP

    def timestamp(self) -> int | None:
        """Return the event time of the element.

        :returns: ms; None for an element without a timestamp
        """
        return self.element_timestamp

    def current_watermark(self) -> int:
        """Return the current watermark.

        :returns: timestamp in ms
        """
        return self.watermark


class SinkFunction(Function):
    """A function that consumes elements. Results that must appear exactly once have to be kept until :meth:`commit`.

    >>> from airflow_pipelines.datastream import SinkFunction, StreamExecutionEnvironment
    >>> class Mail(SinkFunction):
    ...     def invoke(self, value, context):
    ...         print("mail to", value)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sink = env.from_collection(["ann", "bob"]).add_sink(Mail())
    >>> result = env.execute()
    mail to ann
    mail to bob
    """

    def __new__(cls, *_arguments: Any, **_named: Any) -> Self:
        """Refuse to wrap a class of the JVM, as PyFlink's class of this name does."""
        if cls is SinkFunction:
            raise StreamProgramError(wraps_nothing("SinkFunction", "invoke(value, context)", "takes an element"))
        return super().__new__(cls)

    @abstractmethod
    def invoke(self, value: Any, context: SinkContext) -> None:
        """Consume an element.

        :param value: the element
        :param context: the timestamp of the element, and the watermark
        """

    def prepare_commit(self) -> Any | None:
        """Prepare the elements that were consumed since the last call to be committed.

        :returns: the value that :meth:`commit` needs, which is pickled; None for nothing
        """
        return None

    def commit(self, prepared: Any) -> None:
        """Make prepared elements visible. It is called again after a restart, so it must be idempotent.

        :param prepared: the value that :meth:`prepare_commit` returned
        """


@dataclass(frozen=True)
class FunctionSink(Sink):
    """A sink that passes elements to a sink function.

    :param function: the function
    """

    function: SinkFunction

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer for one task."""
        return _FunctionWriter(own_copy(self.function), subtask)


class _FunctionWriter(SinkWriter):
    def __init__(self, function: SinkFunction, subtask: SubtaskInfo) -> None:
        self._function = function
        self._name = subtask.name
        self._context = SinkContext()
        function.open(RuntimeContext(subtask, StepClock(SystemClock().now()), None))

    def write(self, batch: Batch) -> None:
        invoke, context = self._function.invoke, self._context
        value = None
        try:
            for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
                context.element_timestamp = timestamp
                invoke(value, context)
        except Exception as error:
            note_element(error, self._name, value)
            raise

    def watermark(self, timestamp: int) -> None:
        self._context.watermark = timestamp

    def prepare(self) -> Any | None:
        return self._function.prepare_commit()

    def commit(self, prepared: Any) -> None:
        self._function.commit(prepared)

    def close(self) -> None:
        self._function.close()
