"""What a sink is to the loop: one writer per task, which takes part in the commit of a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.metrics import MetricGroup


@dataclass(frozen=True)
class SubtaskInfo:
    """Which of the parallel instances of an operator this is, and what it may know.

    :param name: of the operator
    :param index: from 0
    :param parallelism: how many there are
    :param attempt: from 0, one more for each restart
    :param max_parallelism: how many there can ever be
    :param job_parameters: what the program gives to its functions
    :param metrics: where its metrics are made
    """

    name: str
    index: int
    parallelism: int
    attempt: int = 0
    max_parallelism: int = 1
    job_parameters: Mapping[str, str] = field(default_factory=dict, compare=False)
    metrics: MetricGroup = field(default_factory=MetricGroup, compare=False)

    @property
    def name_with_subtasks(self) -> str:
        """The name as in ``Map (2/4)``."""
        return f"{self.name} ({self.index + 1}/{self.parallelism})"


class SinkWriter(ABC):
    """Writes what one task gives to a sink.

    What :meth:`write` got since the last commit belongs to the next one: a checkpoint calls :meth:`prepare`, keeps what it
    gives, and calls :meth:`commit` when the
    checkpoint is durable. After a restart :meth:`commit` is called again for what was prepared, since the first call may not
    have happened.
    """

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Take elements.

        :param batch: the elements, which are the writer's own
        """

    def watermark(self, timestamp: int) -> None:  # noqa: B027
        """Event time has come so far.

        :param timestamp: in ms
        """

    def prepare(self) -> Any | None:
        """Make all that was written ready to be committed.

        :returns: what :meth:`commit` needs, to be pickled; None for nothing
        """
        return None

    def commit(self, prepared: Any) -> None:  # noqa: B027
        """Make visible what was prepared. Must have no effect when it was done before.

        :param prepared: what :meth:`prepare` gave
        """

    def close(self) -> None:  # noqa: B027
        """Let go of files and connections. What was not committed is dropped."""


class Sink(ABC):
    """Where elements go. Travels by value, so it holds no open files or connections."""

    def references(self) -> Sequence[str]:
        """The references, as ``${secret:NAME}``, that :meth:`open` asks the values of.

        :returns: none by default
        """
        return ()

    @abstractmethod
    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Begin to write.

        :param subtask: which task writes
        :returns: its writer
        """
