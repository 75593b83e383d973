"""What the process of a program is asked, and what it answers.

An :class:`Open` is followed by any number of :class:`StoredPages` and an :class:`OpenEnd`, and answered after these; then come
:class:`Step`, :class:`TakeChanges`, :class:`Committed`, :class:`AskMetrics` and at last :class:`Close`. Each is answered by what
it asks for, else by :class:`Done`, or by a :class:`Failure`. :class:`StateChanges` come after any number of :class:`StoredPages`.
While it works on a step, a program may ask for tasks that run elsewhere: a :class:`RunJobs` is answered by :class:`JobReplies`.
"""

from __future__ import annotations

import pickle
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
    NO_INPUT = 3
    """This split has had nothing to read yet, and holds nobody's event time back until it gives something."""


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


def elements_payload(values: list[Any], timestamps: list[int | None] | None) -> bytes:
    """The payload of elements.

    :param values: their values
    :param timestamps: their timestamps, None when no element has one
    :returns: bytes
    """
    return pickle.dumps((values, timestamps), 5)


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
class TaskMetrics:
    """What one task of an operator can say of itself.

    :param watermark: how far event time has come in ms, None before anything is known of it
    :param pages: how many pages of state it has at rest
    :param bytes: how large they are
    :param counted: what its functions have counted, by the names of the metrics
    :param waiting_keys: how many keys have timers of event time; None while that changes, and where counting would take long
    :param has_keys: whether it keeps something by key
    """

    watermark: int | None = None
    pages: int = 0
    bytes: int = 0
    counted: Mapping[str, Any] = field(default_factory=dict)
    waiting_keys: int | None = None
    has_keys: bool = False


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step gave.

    :param outputs: rows for relations, in order
    :param read: how many elements came in
    :param next_due: when the program wants to be called again without input: processing time in ms, None for never
    :param has_ended: whether all inputs have ended, and all that follows was done
    :param metrics: by uid of the operator and number of the task; empty when it is less than a second since they were told last
    :param warnings: what the user should know, such as an input that holds event time back
    """

    outputs: Sequence[OutputRows] = ()
    read: int = 0
    next_due: int | None = None
    has_ended: bool = False
    metrics: Mapping[tuple[str, int], TaskMetrics] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StateChanges:
    """What has changed in a program's state since the last time.

    :param pages: the pages that have changed; none in a message, before which they are sent
    :param gone: the pages that are no more
    :param rest: all that is kept besides pages, as bytes
    """

    pages: Sequence[StoredPages]
    gone: Sequence[PageKey]
    rest: bytes


@dataclass(frozen=True, slots=True)
class Open:
    """Begin, or go on.

    :param program: a :class:`~airflow_pipelines.streams.worker.bound.BoundProgram` as bytes
    :param rest: what :class:`StateChanges` had last, None for a program that begins
    :param dropped: state that the program no longer has and that may go: uids of operators, or these with the name of a state
    :param schemas: Arrow schemas in IPC format of the relations that the program makes, by uid of the operator
    :param now_ms: processing time; None goes on at the time of the last step
    :param folders: where the program's files are, so that places in them can be shown
    :param memory_bytes: how much memory the process may have; None for no limit
    :param attempt: from 0, one more for each restart
    :param references: what references of the program stand for
    """

    program: bytes
    rest: bytes | None = None
    dropped: frozenset[str | tuple[str, str]] = frozenset()
    schemas: Mapping[str, bytes] = field(default_factory=dict)
    now_ms: int | None = None
    folders: tuple[str, ...] = ()
    memory_bytes: int | None = None
    attempt: int = 0
    references: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """All pages were sent."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    :param now_ms: processing time
    :param feeds: what has come in, in the order in which it came
    :param jobs_from: chains that get at least so many elements in it may run elsewhere, by :class:`RunJobs`; None where none may
    """

    now_ms: int
    feeds: Sequence[Feed] = ()
    jobs_from: int | None = None


@dataclass(frozen=True, slots=True)
class JobReplies:
    """What came of :class:`RunJobs`.

    :param replies: in the order of the jobs
    """

    replies: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class TakeChanges:
    """Give what has changed in the state, and make ready to commit what was written."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The changes that were taken last are durable."""


@dataclass(frozen=True, slots=True)
class AskMetrics:
    """Give all metrics as they are now: a step tells those that have changed, and does so at most once a second."""


@dataclass(frozen=True, slots=True)
class Close:
    """End."""


Request: TypeAlias = Open | Step | TakeChanges | Committed | AskMetrics | Close


@dataclass(frozen=True, slots=True)
class AllMetrics:
    """The metrics of all tasks.

    :param metrics: by uid of the operator and number of the task
    """

    metrics: Mapping[tuple[str, int], TaskMetrics]


@dataclass(frozen=True, slots=True)
class RunJobs:
    """A step needs tasks that run elsewhere, and goes on with :class:`JobReplies`.

    :param jobs: each a :class:`~airflow_pipelines.streams.worker.chain_jobs.ChainJob` as bytes
    """

    jobs: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Done:
    """It was done, and there is nothing to say."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The program has failed. It answers nothing more but :class:`Close`.

    :param type: of the error
    :param message: its text
    :param notes: in which operator it was raised, and for which element
    :param operator: name of the operator; empty when it is none
    :param place: file and line of the user's code, as in ``program.py:12``; empty when there is none of it
    :param traceback: without the frames of this package
    """

    type: str
    message: str
    notes: tuple[str, ...] = ()
    operator: str = ""
    place: str = ""
    traceback: str = ""


Reply: TypeAlias = Done | RunJobs | Stepped | StateChanges | AllMetrics | Failure
