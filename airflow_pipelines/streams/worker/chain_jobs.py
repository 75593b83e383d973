"""Jobs that run one task of a chain in another process, and their results.

A job and its reply are bytes that any process may carry and store. Values of the program's classes in them are nested bytes, which
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
    :param schemas: the Arrow schemas in IPC format of the relations that it makes, by uid of the operator
    :param place: the surroundings that its functions see
    :param attempt: the number of the attempt, from 0, one more for each restart
    """

    program: bytes
    schemas: Mapping[str, bytes]
    place: JobPlace
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class ChainJob:
    """A job with all rounds of one task.

    :param program: the program
    :param chain: the number of the chain
    :param index: the number of the task
    :param rounds: the rounds
    :param snapshot: the state from which it resumes, with all rows
    :param metrics: its metrics by uid of the operator
    :param inputs: its input in each round
    :param feeds: the feeds for the source that it reads
    :param most_bytes: the maximum size of the reply in bytes; a larger result is rejected
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
    """The result of a task.

    :param given: its output in each round: position of the link, number of the reading task, and the elements
    :param outputs: the rows for relations, by round
    :param snapshot: its state, with only those rows that changed
    :param metrics: its metrics by uid of the operator
    :param states: the states that its functions have asked for, by uid of the operator
    :param has_ended: True if nothing follows
    :param read: the number of elements that it has read as a source
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
        """The approximate size in bytes."""
        given = sum(len(packed.data) for each in self.given for _, _, packed in each)
        rows = sum(len(output.data) for each in self.outputs for output in each)
        return given + rows + sum(len(row or b"") for kept in self.snapshot.rows.values() for row in kept.values())


@dataclass(frozen=True, slots=True)
class MustStay:
    """A reply that says that the chain can only run in the process of its program.

    :param reason: the reason
    """

    reason: str


@dataclass(frozen=True, slots=True)
class JobReply:
    """The reply to a job.

    :param outcome: the result
    :param stdout: the text that was printed to ``stdout``
    :param stderr: the text that was printed to ``stderr``, and logged
    """

    outcome: ChainDone | MustStay | Failure
    stdout: str = ""
    stderr: str = ""
