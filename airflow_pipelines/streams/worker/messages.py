"""The messages between the process of a program and its parent.

An :class:`Open` is followed by any number of :class:`StoredPages` and an :class:`OpenEnd`, and answered after these. Then come
:class:`Step`, :class:`TakeChanges`, :class:`Committed`, :class:`AskMetrics` and at last :class:`Close`. Each is answered by what
it asks for, else by :class:`Done`, or by a :class:`Failure`. During a step, a program may ask for tasks that run elsewhere: a
:class:`RunJobs` is answered by :class:`JobReplies`.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias


class FeedKind(IntEnum):
    """The kind of a message of a source."""

    SPLITS = 0
    """The number of splits: the source has ``records`` splits. Comes first, and once."""
    ELEMENTS = 1
    """Elements: a split gave ``records`` elements. ``payload`` is a pickle of their values, and of their timestamps or None."""
    ENDED = 2
    """The end of a split: nothing follows in it."""
    NO_INPUT = 3
    """A split without input: it has had nothing to read yet, and does not hold event time back until it gives something."""


@dataclass(frozen=True, slots=True)
class SourceFeed:
    """A message of a source.

    :param uid: the uid of the source
    :param split: the number of the split; -1 if none is meant
    :param kind: the kind of the message
    :param records: the number of elements, or of splits
    :param payload: the elements
    """

    uid: str
    split: int
    kind: FeedKind
    records: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class RelationFeed:
    """The rows that a relation gained and lost in one step.

    :param uid: the uid of the operator that reads the relation
    :param rows: a stream of Arrow record batches with the relation's columns, and last a column ``__weight``: 1 for a row that was
        added, -1 for one that was removed; in the order in which the program gets them
    """

    uid: str
    rows: bytes


Feed: TypeAlias = SourceFeed | RelationFeed


def elements_payload(values: list[Any], timestamps: list[int | None] | None) -> bytes:
    """Return elements as a payload.

    :param values: their values
    :param timestamps: their timestamps, None if no element has one
    :returns: bytes
    """
    return pickle.dumps((values, timestamps), 5)


@dataclass(frozen=True, slots=True)
class StoredPages:
    """Pages of state, in which releases before the database kept it.

    :param uid: the uid of the operator
    :param pages: the pages by id (key group, depth, bits): the bytes, and the timestamps of the next timers in event time and in
        processing time
    """

    uid: str
    pages: Mapping[tuple[int, int, int], tuple[bytes, int | None, int | None]]


@dataclass(frozen=True, slots=True)
class OutputRows:
    """Rows for a relation that the program makes.

    :param uid: the uid of the operator that gives them
    :param rows: the number of rows
    :param data: a stream of Arrow record batches with the relation's columns, and last a column ``__kind``: the number of the kind
        of each row (0 inserted, 1 before an update, 2 after it, 3 deleted); in the order in which they were given
    """

    uid: str
    rows: int
    data: bytes


@dataclass(frozen=True, slots=True)
class TaskMetrics:
    """The metrics of one task of an operator.

    :param watermark: the watermark in ms, None before anything is known of event time
    :param bytes: the size of its keyed state at rest
    :param counted: the metrics of its functions, by name
    :param waiting_keys: the number of keys that have event-time timers; None while that changes, and if counting would take long
    :param has_keys: True if it has keyed state
    """

    watermark: int | None = None
    bytes: int = 0
    counted: Mapping[str, Any] = field(default_factory=dict)
    waiting_keys: int | None = None
    has_keys: bool = False


@dataclass(frozen=True, slots=True)
class Stepped:
    """The reply to a step.

    :param outputs: the rows for relations, in order
    :param read: the number of elements that came in
    :param next_due: the time at which the program needs another call even without input: processing time in ms, None for never
    :param has_ended: True if all inputs have ended and have been processed completely
    :param metrics: metrics by uid of the operator and number of the task; empty if they were sent less than a second ago
    :param warnings: warnings for the user, such as an input that holds event time back
    """

    outputs: Sequence[OutputRows] = ()
    read: int = 0
    next_due: int | None = None
    has_ended: bool = False
    metrics: Mapping[tuple[str, int], TaskMetrics] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StateChanges:
    """The state of a program for a checkpoint.

    :param rest: the state besides that by key, as bytes
    :param has_files: True if the folder of the request has the files of the database with the state by key; otherwise there is none
    """

    rest: bytes
    has_files: bool


@dataclass(frozen=True, slots=True)
class Open:
    """A request to open a program, at its beginning or from stored state.

    :param program: a :class:`~airflow_pipelines.streams.worker.bound.BoundProgram` as bytes
    :param database: the folder for the database with the state by key, which may have the files of the last checkpoint
    :param rest: the ``rest`` of the last :class:`StateChanges`, None for a program that begins
    :param dropped: state that the program no longer has and that may be dropped: uids of operators, or these with the name of a
        state
    :param schemas: the Arrow schemas in IPC format of the relations that the program makes, by uid of the operator
    :param now_ms: processing time; None to continue at the time of the last step
    :param folders: the folders of the program's files, so that places in them can be shown
    :param memory_bytes: the memory limit of the process in bytes; None for no limit
    :param attempt: the number of the attempt, from 0, one more for each restart
    :param references: the values of the references of the program
    """

    program: bytes
    database: str
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
    """The end of the pages that follow an :class:`Open`."""


@dataclass(frozen=True, slots=True)
class Step:
    """A request to run one step.

    :param now_ms: processing time
    :param feeds: the feeds, in the order in which they arrived
    :param jobs_from: the minimum number of elements of a chain in this step for which it may run elsewhere, by :class:`RunJobs`;
        None if no chain may
    """

    now_ms: int
    feeds: Sequence[Feed] = ()
    jobs_from: int | None = None


@dataclass(frozen=True, slots=True)
class JobReplies:
    """The replies to a :class:`RunJobs`.

    :param replies: the replies, in the order of the jobs
    """

    replies: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class TakeChanges:
    """A request for the state of a checkpoint, and to prepare the written output for commit.

    :param folder: the folder, which does not exist, for links to the files of the database
    """

    folder: str


@dataclass(frozen=True, slots=True)
class Committed:
    """A notice that the changes that were taken last are durable."""


@dataclass(frozen=True, slots=True)
class AskMetrics:
    """A request for all current metrics. A step reports only those that have changed, and at most once a second."""


@dataclass(frozen=True, slots=True)
class Close:
    """A request to end."""


Request: TypeAlias = Open | Step | TakeChanges | Committed | AskMetrics | Close


@dataclass(frozen=True, slots=True)
class AllMetrics:
    """The metrics of all tasks.

    :param metrics: metrics by uid of the operator and number of the task
    """

    metrics: Mapping[tuple[str, int], TaskMetrics]


@dataclass(frozen=True, slots=True)
class RunJobs:
    """A request to run tasks elsewhere, sent during a step, which continues with the :class:`JobReplies`.

    :param jobs: the jobs, each a :class:`~airflow_pipelines.streams.worker.chain_jobs.ChainJob` as bytes
    """

    jobs: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Done:
    """A reply without content: the request was carried out."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A reply that says that the program has failed.

    After it the program answers every request but :class:`Close` with the same failure.

    :param type: the type of the error
    :param message: its text
    :param notes: the operator in which it was raised, and the element
    :param operator: the name of the operator; empty if there is none
    :param place: file and line of the user's code, as in ``program.py:12``; empty if no user code is involved
    :param traceback: the traceback without the frames of this package
    """

    type: str
    message: str
    notes: tuple[str, ...] = ()
    operator: str = ""
    place: str = ""
    traceback: str = ""


Reply: TypeAlias = Done | RunJobs | Stepped | StateChanges | AllMetrics | Failure
