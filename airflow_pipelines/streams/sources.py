"""What a source is to the loop: splits, each read in order by one reader, from a position that can be kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.values import isolate_all


@dataclass(frozen=True)
class Polled:
    """What a reader had.

    :param values: the values, in order; may be empty when nothing has arrived
    :param timestamps: the timestamp that the source knows of each, in ms; None when it knows none
    :param finished: nothing will follow
    """

    values: list[Any]
    timestamps: list[int | None] | None = None
    finished: bool = False


class SourceReader(ABC):
    """Reads one split in order. The same position gives the same values again."""

    has_input = True
    """Whether there is, or was, something to read. A split that has had nothing yet holds nobody's event time back."""

    @abstractmethod
    def poll(self, limit: int) -> Polled:
        """What comes next. Does not wait for more to arrive.

        :param limit: how many values at most
        :returns: the values
        """

    @abstractmethod
    def position(self) -> Any:
        """How far the reader has come: the place after the last value that it gave.

        :returns: something that can be pickled and given to :meth:`Source.open`
        """

    def left(self) -> int | None:
        """How many values there are that were not read, as far as is known without asking anybody.

        :returns: None when the source does not say
        """
        return None

    def cancel(self) -> None:  # noqa: B027
        """Nothing more is wanted: come back from :meth:`poll`. May be called from another thread."""

    def commit(self, position: Any) -> None:  # noqa: B027
        """All that was read up to a position is durable, with all that follows from it.

        :param position: what :meth:`position` gave
        """

    def close(self) -> None:  # noqa: B027
        """Let go of files and connections."""


class Source(ABC):
    """Where elements come from. Travels by value, so it holds no open files or connections."""

    gives_timestamps = True
    """Whether it may know timestamps of its elements."""

    look_interval: float | None = None
    """Seconds between two looks for splits that have appeared. Such a source never ends; None for one whose splits stay."""

    @property
    @abstractmethod
    def is_bounded(self) -> bool:
        """Whether it ends by itself."""

    @property
    def position_kind(self) -> str:
        """What makes its positions: another kind of source cannot go on from them."""
        return type(self).__qualname__

    @property
    def places(self) -> Sequence[str]:
        """The places that its positions are in, for people: paths, topics, a table. A position in one place is none in another, so
        a source that has none of the places that it had begins anew.

        :returns: none by default, for a source that goes on from its positions whatever it reads
        """
        return ()

    def references(self) -> Sequence[str]:
        """The references, as ``${secret:NAME}``, that :meth:`open` asks the values of.

        :returns: none by default
        """
        return ()

    @abstractmethod
    def splits(self, parallelism: int) -> Sequence[Any] | None:
        """The parts that are read independently. Elements keep their order within a part.

        :param parallelism: how many tasks will read
        :returns: descriptions that can be pickled; called once, when a program starts without a checkpoint. None when they are
            not known yet: the loop is told of them later
        """

    def more_splits(self, known: Sequence[Any]) -> Sequence[Any]:
        """Look for splits that have appeared. Called between two readings, which wait for it.

        :param known: descriptions of those that there are
        :returns: those of others; none by default
        """
        del known
        return ()

    @abstractmethod
    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Read a split.

        :param split: one of :meth:`splits`
        :param position: what :meth:`SourceReader.position` gave, None for the beginning
        :returns: the reader
        """

    def open_in(self, subtask: SubtaskInfo, split: Any, position: Any | None) -> SourceReader:
        """Read a split, and know which task reads it. Calls :meth:`open` unless a source does more.

        :param subtask: which of the parallel instances reads it
        :param split: see :meth:`open`
        :param position: see :meth:`open`
        :returns: the reader
        """
        del subtask
        return self.open(split, position)


@dataclass(frozen=True)
class CollectionSource(Source):
    """The elements of a collection, in order.

    :param values: the elements
    """

    values: Sequence[Any]
    gives_timestamps = False

    @property
    def is_bounded(self) -> bool:
        """It ends after the last element."""
        return True

    def splits(self, parallelism: int) -> Sequence[Any]:
        """One split: a collection keeps its order.

        :param parallelism: without effect
        :returns: one description
        """
        return (0,)

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Read the collection.

        :param split: the only one
        :param position: how many elements were read, None for none
        :returns: the reader
        """
        return _CollectionReader(self.values, position or 0)


class _CollectionReader(SourceReader):
    def __init__(self, values: Sequence[Any], start: int) -> None:
        self._values = values
        self._next = start

    def poll(self, limit: int) -> Polled:
        # Functions may change what they get; the collection is read again after a restart.
        values = isolate_all(list(self._values[self._next : self._next + limit]))
        self._next += len(values)
        return Polled(values, finished=self._next >= len(self._values))

    def position(self) -> Any:
        return self._next

    def left(self) -> int:
        return len(self._values) - self._next
