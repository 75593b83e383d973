"""Sources that programs implement themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from airflow_pipelines.streams.clock import StepClock, SystemClock
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.function_thread import FunctionThread
from airflow_pipelines.streams.functions import Function, own_copy, wraps_nothing
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.sources import Polled, Source, SourceReader
from airflow_pipelines.streams.values import isolate


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
    available now. The function may also wait itself: the other operators continue meanwhile, and it is notified of checkpoints when
    it yields again. :meth:`cancel`, which is called in another thread, should end its wait.

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

    In a program that runs in one process (:meth:`poll`), the function runs in a thread of its own, since it may wait. Elsewhere the
    caller has such a thread (:meth:`hand_over`).

    :param function: the function, which belongs to the reader
    :param subtask: the parallel instance that reads
    :param position: the position at which it resumes, None for the beginning
    """

    def __init__(self, function: SourceFunction, subtask: SubtaskInfo, position: Any | None) -> None:
        self._function = function
        self._context = SourceContext()
        self._thread: FunctionThread | None = None
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
        """Take the elements that the function has yielded."""
        if self._thread is None:
            self._thread = FunctionThread(self, type(self._function).__name__)
        taken = self._thread.take(limit)
        return Polled(taken.values, taken.timestamps, taken.has_ended)

    def hand_over(self, limit: int, take: Callable[[Any, int | None], bool]) -> bool:
        """Hand each element over before the function is asked for the next one, for which it may wait.

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
        """Return the position that the function reported after the last element that was read."""
        return self._function.snapshot_state() if self._thread is None else self._thread.position

    def read_position(self) -> Any:
        """Return the position that the function reports now, in the thread in which it runs, as a value that stays the same."""
        return isolate(self._function.snapshot_state())

    def commit(self, position: Any) -> None:
        """Notify the function that a checkpoint is complete, between two elements."""
        if self._thread is None:
            self.tell_commit(position)
        else:
            self._thread.commit(position)

    def tell_commit(self, position: Any) -> None:
        """Notify the function that a checkpoint is complete, in the thread in which it runs."""
        self._function.notify_checkpoint_complete(position)

    def cancel(self) -> None:
        """Notify the function that the program ends."""
        self._context.is_cancelled = True
        self._function.cancel()

    def close(self) -> None:
        """End the function."""
        self.cancel()
        if self._thread is None:
            self.finish()
        else:
            self._thread.close()

    def finish(self) -> None:
        """Close the function, in the thread in which it runs."""
        close = getattr(self._elements, "close", None)
        if close is not None:
            close()
        self._function.close()
