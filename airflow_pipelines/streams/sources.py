"""The interface of sources to the loop: splits, each read in order by one reader, from a position that can be stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.values import isolate_all


@dataclass(frozen=True)
class Polled:
    """The result of one poll of a reader.

    :param values: the values, in order; may be empty if nothing has arrived
    :param timestamps: the timestamp that the source knows for each value, in ms; None if it knows none
    :param finished: True if nothing will follow
    """

    values: list[Any]
    timestamps: list[int | None] | None = None
    finished: bool = False


class SourceReader(ABC):
    """A reader of one split, in order. The same position gives the same values again."""

    has_input = True
    """True if there is, or was, something to read. A split that has had nothing yet does not hold event time back."""

    @abstractmethod
    def poll(self, limit: int) -> Polled:
        """Return the next values, without waiting for more to arrive.

        :param limit: the maximum number of values
        :returns: the values
        """

    @abstractmethod
    def position(self) -> Any:
        """Return the position after the last value that was read.

        :returns: a value that can be pickled and passed to :meth:`Source.open`
        """

    def left(self) -> int | None:
        """Return the number of values that are still unread, as far as it is known without a request.

        :returns: None if the source does not say
        """
        return None

    def cancel(self) -> None:  # noqa: B027
        """Make :meth:`poll` return: no more values are wanted. May be called from another thread."""

    def commit(self, position: Any) -> None:  # noqa: B027
        """Handle that everything up to a position is durable, with all results that follow from it.

        :param position: the result of :meth:`position`
        """

    def close(self) -> None:  # noqa: B027
        """Release files and connections."""


class Source(ABC):
    """An origin of elements. It is sent by value, so it holds no open files or connections."""

    gives_timestamps = True
    """True if the source may know timestamps of its elements."""

    look_interval: float | None = None
    """The number of seconds between two searches for new splits. A source that has such an interval never ends. None if the splits
    are fixed.
    """

    @property
    @abstractmethod
    def is_bounded(self) -> bool:
        """True if the source ends by itself."""

    @property
    def position_kind(self) -> str:
        """The kind of its positions. Another kind of source cannot resume from them."""
        return type(self).__qualname__

    @property
    def places(self) -> Sequence[str]:
        """The places that its positions refer to, for people: paths, topics, a table.

        A position in one place is not valid in another, so a source that has none of its former places starts anew.

        :returns: none by default, for a source that resumes from its positions whatever it reads
        """
        return ()

    def references(self) -> Sequence[str]:
        """Return the references, as ``${secret:NAME}``, whose values :meth:`open` needs.

        :returns: none by default
        """
        return ()

    @abstractmethod
    def splits(self, parallelism: int) -> Sequence[Any] | None:
        """Return the splits that are read independently. Elements keep their order within a split.

        :param parallelism: the number of tasks that will read
        :returns: descriptions that can be pickled; called once, when a program starts without a checkpoint. None if they are not
            known yet: the loop is told of them later
        """

    def more_splits(self, known: Sequence[Any]) -> Sequence[Any]:
        """Search for new splits. Called between two polls, which wait for it.

        :param known: the descriptions of the known splits
        :returns: the descriptions of new splits; none by default
        """
        del known
        return ()

    @abstractmethod
    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Open a reader of a split.

        :param split: one of :meth:`splits`
        :param position: the result of :meth:`SourceReader.position`, None for the beginning
        :returns: the reader
        """

    def open_in(self, subtask: SubtaskInfo, split: Any, position: Any | None) -> SourceReader:
        """Open a reader of a split, given the task that reads it. Calls :meth:`open` unless a source overrides it.

        :param subtask: the parallel instance that reads it
        :param split: see :meth:`open`
        :param position: see :meth:`open`
        :returns: the reader
        """
        del subtask
        return self.open(split, position)


@dataclass(frozen=True)
class CollectionSource(Source):
    """A source of the elements of a collection, in order.

    :param values: the elements
    """

    values: Sequence[Any]
    gives_timestamps = False

    @property
    def is_bounded(self) -> bool:
        """True: the source ends after the last element."""
        return True

    def splits(self, parallelism: int) -> Sequence[Any]:
        """Return a single split, since a collection keeps its order.

        :param parallelism: without effect
        :returns: one description
        """
        return (0,)

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Open a reader of the collection.

        :param split: the only split
        :param position: the number of elements that were read, None for none
        :returns: the reader
        """
        return _CollectionReader(self.values, position or 0)


class _CollectionReader(SourceReader):
    def __init__(self, values: Sequence[Any], start: int) -> None:
        self._values = values
        self._next = start

    def poll(self, limit: int) -> Polled:
        # Give copies: functions may change them, and the collection is read again after a restart.
        values = isolate_all(list(self._values[self._next : self._next + limit]))
        self._next += len(values)
        return Polled(values, finished=self._next >= len(self._values))

    def position(self) -> Any:
        return self._next

    def left(self) -> int:
        return len(self._values) - self._next
