"""Sources that programs write themselves."""

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
"""Seconds after which what is there goes on, however quickly more comes: the first element waits for the last."""


class SourceContext:
    """What a source function is given."""

    def __init__(self) -> None:
        self.is_cancelled = False

    @staticmethod
    def with_timestamp(value: Any, timestamp: int) -> Timestamped:
        """An element with its event time, to be yielded.

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
    """Gives elements. It is read in one task.

    To go on after a restart where it was, keep the position in the object: change it before each ``yield``, return it from
    :meth:`snapshot_state`, and begin there in :meth:`run` after :meth:`restore_state`. ``yield None`` says that nothing is there
    now. While the function itself waits, a program that runs in one process waits with it: no timer fires and no checkpoint is
    taken. In a pipeline the others go on, and this function hears of checkpoints when it gives something again.
    """

    is_bounded = False
    """Whether it ends by itself."""

    def __new__(cls, *_arguments: Any, **_named: Any) -> Self:
        """Refuse to wrap a class of the JVM, which is what PyFlink's class of this name does."""
        if cls is SourceFunction:
            raise StreamProgramError(wraps_nothing("SourceFunction", "run(ctx)", "yields the elements"))
        return super().__new__(cls)

    @abstractmethod
    def run(self, ctx: SourceContext) -> Iterable[Any]:
        """Yield elements.

        :param ctx: whether the program was cancelled, and elements with timestamps
        :returns: the elements
        """

    def cancel(self) -> None:
        """The program ends."""

    def snapshot_state(self) -> Any:
        """The position after the element that was yielded last.

        :returns: something that can be pickled
        """
        return None

    def restore_state(self, state: Any) -> None:
        """Go on from a position.

        :param state: what :meth:`snapshot_state` returned
        """

    def notify_checkpoint_complete(self, state: Any) -> None:
        """All elements up to a position are durable, with all that follows from them.

        :param state: what :meth:`snapshot_state` returned
        """


@dataclass(frozen=True)
class FunctionSource(Source):
    """Reads a source function.

    :param function: the function
    """

    function: SourceFunction

    @property
    def is_bounded(self) -> bool:
        """Whether it ends by itself."""
        return self.function.is_bounded

    @property
    def position_kind(self) -> str:
        """The class of the function, which makes them."""
        return type(self.function).__qualname__

    def splits(self, parallelism: int) -> Sequence[Any]:
        """One split."""
        return (0,)

    def open(self, split: Any, position: Any | None) -> FunctionReader:
        """Read the function, which is told of nothing but its class."""
        return self.open_in(SubtaskInfo(type(self.function).__name__, 0, 1), split, position)

    def open_in(self, subtask: SubtaskInfo, split: Any, position: Any | None) -> FunctionReader:
        """Read the function."""
        return FunctionReader(own_copy(self.function), subtask, position)


class FunctionReader(SourceReader):
    """Reads a source function.

    :param function: the function, which is the reader's own
    :param subtask: where it runs
    :param position: where it goes on, None for the beginning
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
        """What the function gives, until it says that nothing is there now or has waited for something."""
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
            # A function that has just waited may wait again: what is there does not wait with it.
            return self._quick_ones >= _MANY and now - began < _LONGEST_POLL

        has_ended = self.hand_over(limit, take)
        if time.monotonic() - before > _QUICK:
            self._quick_ones = 0
        return Polled(values, timestamps, has_ended)

    def hand_over(self, limit: int, take: Callable[[Any, int | None], bool]) -> bool:
        """As :meth:`poll`, but each element is handed over before the function is asked for the next, for which it may wait.

        :param limit: how many elements at most
        :param take: is given an element and its timestamp, and says whether there may be another
        :returns: whether nothing follows
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
        """What the function says after the element that it gave last."""
        return self._function.snapshot_state()

    def commit(self, position: Any) -> None:
        """Tell the function."""
        self._function.notify_checkpoint_complete(position)

    def cancel(self) -> None:
        """Tell the function."""
        self._context.is_cancelled = True
        self._function.cancel()

    def close(self) -> None:
        """End the function."""
        self.cancel()
        close = getattr(self._elements, "close", None)
        if close is not None:
            close()
        self._function.close()
