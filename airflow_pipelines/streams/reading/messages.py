"""The messages between the process that reads sources and its parent.

Requests are a :class:`Begin`, and then for each source an :class:`OpenSource`, any number of :class:`ReadSource` and
:class:`CommitSource`, and a :class:`CloseSource`. Only reading is answered: by :class:`Given` when there is something to give, or
by :class:`SourceFailed`. A source that knows its number of unread elements reports it in between (:class:`SourceLeft`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from airflow_pipelines.streams.worker.messages import Failure, SourceFeed


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message.

    :param program: a :class:`~airflow_pipelines.streams.worker.bound.BoundProgram` as bytes
    :param folders: the folders of the program's files, for places in tracebacks
    :param references: the values of the references of the program
    """

    program: bytes = field(repr=False)
    folders: tuple[str, ...] = ()
    references: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A request to start reading a source.

    :param uid: the uid of the source
    :param position: the position of a :class:`Given`, None for the beginning
    """

    uid: str
    position: bytes | None = None


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A request for elements of a source, as soon as it has some. The source is read only as far as requested.

    :param uid: the uid of the source
    :param most: the maximum number of elements
    """

    uid: str
    most: int


@dataclass(frozen=True, slots=True)
class CommitSource:
    """A notice that everything up to a position is durable, with all results that follow from it.

    :param uid: the uid of the source
    :param position: the position of a :class:`Given`
    """

    uid: str
    position: bytes


@dataclass(frozen=True, slots=True)
class CloseSource:
    """A request to stop reading a source.

    :param uid: the uid of the source
    """

    uid: str


Request: TypeAlias = Begin | OpenSource | ReadSource | CommitSource | CloseSource


@dataclass(frozen=True, slots=True)
class Given:
    """A reply with the elements of a source.

    :param uid: the uid of the source
    :param feeds: the messages for the process in which the program runs
    :param position: the position after them
    :param has_ended: True if nothing follows
    """

    uid: str
    feeds: tuple[SourceFeed, ...]
    position: bytes
    has_ended: bool = False

    @property
    def records(self) -> int:
        """The number of elements in the messages."""
        return sum(feed.records for feed in self.feeds if feed.payload)


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """A reply that says that reading a source has failed.

    :param uid: the uid of the source
    :param failure: the failure
    """

    uid: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class SourceLeft:
    """The number of unread elements of a source. It is sent unasked, when it has changed.

    :param uid: the uid of the source
    :param elements: the number of elements
    """

    uid: str
    elements: int


Answer: TypeAlias = Given | SourceFailed
Reply: TypeAlias = Answer | SourceLeft
