"""What the process that reads sources is asked, and what it answers.

Requests are a :class:`Begin`, and then for each source an :class:`OpenSource`, any number of :class:`ReadSource` and
:class:`CommitSource`, and a :class:`CloseSource`. Only reading is answered: by :class:`Given` when there is something to give, or
by :class:`SourceFailed`. A source that knows how much it has left says so meanwhile (:class:`SourceLeft`).
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
    :param folders: where files of the program are, for places in tracebacks
    :param references: what references of the program stand for
    """

    program: bytes = field(repr=False)
    folders: tuple[str, ...] = ()
    references: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OpenSource:
    """Begin to read a source.

    :param uid: of the source
    :param position: what :class:`Given` had, None for its beginning
    """

    uid: str
    position: bytes | None = None


@dataclass(frozen=True, slots=True)
class ReadSource:
    """Give what a source has, as soon as it has something. The source is read only as far as it is asked.

    :param uid: of the source
    :param most: how many elements at most
    """

    uid: str
    most: int


@dataclass(frozen=True, slots=True)
class CommitSource:
    """All that was given up to a position is durable, with all that follows from it.

    :param uid: of the source
    :param position: what :class:`Given` had
    """

    uid: str
    position: bytes


@dataclass(frozen=True, slots=True)
class CloseSource:
    """Read a source no more.

    :param uid: of the source
    """

    uid: str


Request: TypeAlias = Begin | OpenSource | ReadSource | CommitSource | CloseSource


@dataclass(frozen=True, slots=True)
class Given:
    """What a source had.

    :param uid: of the source
    :param feeds: messages for the process in which the program runs
    :param position: the place after them
    :param has_ended: whether nothing follows
    """

    uid: str
    feeds: tuple[SourceFeed, ...]
    position: bytes
    has_ended: bool = False

    @property
    def records(self) -> int:
        """How many elements the messages bring."""
        return sum(feed.records for feed in self.feeds if feed.payload)


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """A source cannot be read any further.

    :param uid: of the source
    :param failure: why
    """

    uid: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class SourceLeft:
    """How much a source has that was not read. Comes without being asked for, when it has changed.

    :param uid: of the source
    :param elements: how many elements
    """

    uid: str
    elements: int


Answer: TypeAlias = Given | SourceFailed
Reply: TypeAlias = Answer | SourceLeft
