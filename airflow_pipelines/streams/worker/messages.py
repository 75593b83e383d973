"""What the process of a program is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

PageKey: TypeAlias = tuple[str, int, int, int]
"""Uid of the operator, and the id of the page: key group, depth, bits."""


class FeedKind(IntEnum):
    """What a message of a source says."""

    SPLITS = 0
    """The source has ``records`` splits. Comes first, and once."""
    ELEMENTS = 1
    """A split gave ``records`` elements; ``payload`` is a pickle of their values, and of their timestamps or None."""
    ENDED = 2
    """Nothing follows in this split."""


@dataclass(frozen=True, slots=True)
class SourceFeed:
    """Something that a source gave.

    :param uid: of the source
    :param split: number of the split; -1 where none is meant
    :param kind: what it is
    :param records: number of elements, or of splits
    :param payload: the elements
    """

    uid: str
    split: int
    kind: FeedKind
    records: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class RelationFeed:
    """Rows that a relation gained and lost in one step.

    :param uid: of the operator that reads the relation
    :param rows: a stream of Arrow record batches with the relation's columns, and last a column ``__weight``: 1 for a row that was
        added, -1 for one that was removed; in the order in which the program gets them
    """

    uid: str
    rows: bytes


Feed: TypeAlias = SourceFeed | RelationFeed


@dataclass(frozen=True, slots=True)
class StoredPages:
    """Pages of state at rest.

    :param uid: of the operator
    :param pages: what is at rest by the ids of the pages, as :class:`~airflow_pipelines.streams.state.store.StoredPage` has it: the
        bytes, and when the next timers are due in event time and in processing time
    """

    uid: str
    pages: Mapping[tuple[int, int, int], tuple[bytes, int | None, int | None]]


@dataclass(frozen=True, slots=True)
class OutputRows:
    """Rows for a relation that the program makes.

    :param uid: of the operator that gives them
    :param rows: how many
    :param data: a stream of Arrow record batches with the relation's columns, and last a column ``__kind``: the number of the kind
        of each row (0 inserted, 1 before an update, 2 after it, 3 deleted); in the order in which they were given
    """

    uid: str
    rows: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step gave.

    :param outputs: rows for relations, in order
    :param read: how many elements came in
    :param next_due: when the program wants to be called again without input: processing time in ms, None for never
    :param has_ended: whether all inputs have ended, and all that follows was done
    :param metrics: what functions have counted, and how far event time has come, by uid of the operator and number of the task
    :param warnings: what the user should know, such as an input that holds event time back
    """

    outputs: Sequence[OutputRows] = ()
    read: int = 0
    next_due: int | None = None
    has_ended: bool = False
    metrics: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StateChanges:
    """What has changed in a program's state since the last time.

    :param pages: the pages that have changed
    :param gone: the pages that are no more
    :param rest: all that is kept besides pages, as bytes
    """

    pages: Sequence[StoredPages]
    gone: Sequence[PageKey]
    rest: bytes
