"""Sources that programs implement themselves."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from airflow_pipelines.streams.clock import StepClock, SystemClock
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.functions import Function, own_copy, wraps_nothing
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.sources import Polled, Source, SourceReader

_QUICK = 0.005
_MANY = 100
_LONGEST_POLL = 0.02
"""The number of seconds after which the elements read so far are passed on, however quickly more arrive: the first element waits
for the last.
"""


class SourceContext:
    """The context that a source function receives.

    >>> from airflow_pipelines.datastream import ProcessFunction, StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.functions import SourceFunction
    >>> class Sales(SourceFunction):
    ...     def run(self, ctx):
    ...         yield ctx.with_timestamp("pears", 3_000)
    >>> class AddTime(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield value, ctx.timestamp()
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> list(env.add_source(Sales()).process(AddTime()).execute_and_collect())
    [('pears', 3000)]
    """

    def __init__(self) -> None:
        self.is_cancelled = False

    @staticmethod
    def with_timestamp(value: Any, timestamp: int) -> Timestamped:
        """Return an element with its event time, to be yielded.

        :param value: the element
        :param timestamp: ms
        :returns: both
        """
        return Timestamped(value, timestamp)


@dataclass(frozen=True)
class Timestamped:
    """An element with its event time.

    :param value: the element
    :param timestamp: ms
    """

    value: Any
    timestamp: int


class SourceFunction(Function):
    """A function that yields the elements of a source. It is read in one task.

    To resume after a restart, keep the position in the object: change it before each ``yield``, return it from
    :meth:`snapshot_state`, and begin there in :meth:`run` after :meth:`restore_state`. ``yield None`` says that no element is
    available now. While the function itself waits, a program that runs in one process waits with it: no timer fires and no
    checkpoint is taken. In a pipeline the other operators continue, and this function is notified of checkpoints when it yields
    again.

    >>> from airflow_pipelines.datastream import SourceFunction, StreamExecutionEnvironment
    >>> class Countdown(SourceFunction):
    ...     is_bounded = True
    ...     def run(self, ctx):
    ...         yield from (3, 2, 1)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> list(env.add_source(Countdown(), "countdown").execute_and_collect())
    [3, 2, 1]
    """

    is_bounded = False
    """True if the source ends by itself."""

    def __new__(cls, *_arguments: Any, **_named: Any) -> Self:
        """Refuse to wrap a class of the JVM, which PyFlink's class of this name does."""
        if cls is SourceFunction:
            raise StreamProgramError(wraps_nothing("SourceFunction", "run(ctx)", "yields the elements"))
        return super().__new__(cls)

    @abstractmethod
    def run(self, ctx: SourceContext) -> Iterable[Any]:
        """Yield the elements.

        :param ctx: the context, which says if the program was cancelled and makes elements with timestamps
        :returns: the elements
        """

    def cancel(self) -> None:
        """Handle the end of the program."""

    def snapshot_state(self) -> Any:
        """Return the position after the element that was yielded last.

        :returns: a value that can be pickled
        """
        return None

    def restore_state(self, state: Any) -> None:
        """Resume at a position.

        :param state: the result of :meth:`snapshot_state`
        """

    def notify_checkpoint_complete(self, state: Any) -> None:
        """Handle the completion of a checkpoint: all elements up to a position are durable, with all results that follow from them.

        :param state: the result of :meth:`snapshot_state`
        """


@dataclass(frozen=True)
class FunctionSource(Source):
    """A source that reads a source function.

    :param function: the function
    """

    function: SourceFunction

    @property
    def is_bounded(self) -> bool:
        """True if the function ends by itself."""
        return self.function.is_bounded

    @property
    def position_kind(self) -> str:
        """The name of the function's class, which makes the positions."""
        return type(self.function).__qualname__

    def splits(self, parallelism: int) -> Sequence[Any]:
        """Return the only split."""
        return (0,)

    def open(self, split: Any, position: Any | None) -> FunctionReader:
        """Read the function as a single task that has the name of its class."""
        return self.open_in(SubtaskInfo(type(self.function).__name__, 0, 1), split, position)

    def open_in(self, subtask: SubtaskInfo, split: Any, position: Any | None) -> FunctionReader:
        """Read the function in a task."""
        return FunctionReader(own_copy(self.function), subtask, position)


class FunctionReader(SourceReader):
    """A reader of a source function.

    :param function: the function, which belongs to the reader
    :param subtask: the parallel instance that reads
    :param position: the position at which it resumes, None for the beginning
    """

    def __init__(self, function: SourceFunction, subtask: SubtaskInfo, position: Any | None) -> None:
        self._function = function
        self._context = SourceContext()
        self._quick_ones = _MANY
        function.open(RuntimeContext(subtask, StepClock(SystemClock().now()), None))
        if position is not None:
            function.restore_state(position)
        elements = function.run(self._context)
        if not hasattr(elements, "__iter__"):
            raise StreamProgramError(
                f"{type(function).__name__}.run() returned {elements!r}: it must yield the elements of the source."
            )
        self._elements: Iterator[Any] = iter(elements)

    def poll(self, limit: int) -> Polled:
        """Read from the function until it yields None or has waited for something."""
        values: list[Any] = []
        timestamps: list[int | None] = []
        began = before = time.monotonic()

        def take(value: Any, timestamp: int | None) -> bool:
            nonlocal before
            values.append(value)
            timestamps.append(timestamp)
            now = time.monotonic()
            self._quick_ones = 0 if now - before > _QUICK else self._quick_ones + 1
            before = now
            # A function that has just waited may wait again, so the elements read so far are passed on.
            return self._quick_ones >= _MANY and now - began < _LONGEST_POLL

        has_ended = self.hand_over(limit, take)
        if time.monotonic() - before > _QUICK:
            self._quick_ones = 0
        return Polled(values, timestamps, has_ended)

    def hand_over(self, limit: int, take: Callable[[Any, int | None], bool]) -> bool:
        """Read like :meth:`poll`, but hand each element over before the function is asked for the next one, for which it may wait.

        :param limit: the maximum number of elements
        :param take: a function that receives an element and its timestamp, and returns True if there may be another
        :returns: True if nothing follows
        """
        for element in islice(self._elements, limit):
            if element is None:
                return False
            limit -= 1
            is_timed = element.__class__ is Timestamped
            if not (take(element.value, element.timestamp) if is_timed else take(element, None)):
                return False
        return limit > 0

    def position(self) -> Any:
        """Return the position that the function reports after its last element."""
        return self._function.snapshot_state()

    def commit(self, position: Any) -> None:
        """Notify the function that a checkpoint is complete."""
        self._function.notify_checkpoint_complete(position)

    def cancel(self) -> None:
        """Notify the function that the program ends."""
        self._context.is_cancelled = True
        self._function.cancel()

    def close(self) -> None:
        """End the function."""
        self.cancel()
        close = getattr(self._elements, "close", None)
        if close is not None:
            close()
        self._function.close()
