"""What one task of a chain needs to run in another process, and what comes of it.

A job and its reply are bytes that anybody may carry and keep: values of the program's classes in them are bytes once more, which
only the processes of the program read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_pipelines.streams.chain_by_chain import Packed, Rounds
from airflow_pipelines.streams.loop import Channel
from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.snapshots import TaskSnapshot
from airflow_pipelines.streams.state.description import StateDescription
from airflow_pipelines.streams.worker.job_place import JobPlace
from airflow_pipelines.streams.worker.messages import Failure, Feed, OutputRows


@dataclass(frozen=True, slots=True)
class JobProgram:
    """The program of a job.

    :param program: a :class:`~airflow_pipelines.streams.worker.bound.BoundProgram` as bytes
    :param schemas: Arrow schemas in IPC format of the relations that it makes, by uid of the operator
    :param place: what its functions see
    :param attempt: from 0, one more for each restart
    """

    program: bytes
    schemas: Mapping[str, bytes]
    place: JobPlace
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class ChainJob:
    """All rounds of one task.

    :param program: the program
    :param chain: number of the chain
    :param index: number of the task
    :param rounds: the rounds
    :param snapshot: what it goes on from, with all pages
    :param metrics: its metrics by uid of the operator
    :param inputs: what it gets in each round
    :param feeds: what has come in for the source that it reads
    :param most_bytes: a reply with more bytes is none
    """

    program: JobProgram
    chain: int
    index: int
    rounds: Rounds
    snapshot: TaskSnapshot
    metrics: Mapping[str, MetricGroup]
    inputs: Sequence[Sequence[tuple[Channel, Packed]]]
    feeds: Sequence[Feed]
    most_bytes: int


@dataclass(frozen=True, slots=True)
class ChainDone:
    """What came of a task.

    :param given: what it gave in each round: position of the link, number of the reading task, and the elements
    :param outputs: rows for relations, by round
    :param snapshot: what it keeps, and of its pages those that changed
    :param metrics: its metrics by uid of the operator
    :param states: states that its functions have asked for, by uid of the operator
    :param has_ended: whether nothing follows
    :param read: how many elements it has read as a source
    """

    given: Sequence[Sequence[tuple[int, int, Packed]]]
    outputs: Sequence[Sequence[OutputRows]]
    snapshot: TaskSnapshot
    metrics: Mapping[str, MetricGroup]
    states: Mapping[str, tuple[StateDescription, ...]]
    has_ended: bool
    read: int

    @property
    def bytes(self) -> int:
        """About how large it is."""
        given = sum(len(packed.data) for each in self.given for _, _, packed in each)
        rows = sum(len(output.data) for each in self.outputs for output in each)
        return given + rows + sum(len(page.data) for pages in self.snapshot.pages.values() for page in pages.values())


@dataclass(frozen=True, slots=True)
class MustStay:
    """The chain can only run in the process of its program.

    :param reason: why
    """

    reason: str


@dataclass(frozen=True, slots=True)
class JobReply:
    """What is answered to a job.

    :param found: what came of it
    :param stdout: what was printed
    :param stderr: what was printed there, and logged
    """

    found: ChainDone | MustStay | Failure
    stdout: str = ""
    stderr: str = ""
