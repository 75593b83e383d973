"""The interface of sinks to the loop: one writer per task, which takes part in the commit of a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.metrics import MetricGroup


@dataclass(frozen=True)
class SubtaskInfo:
    """A parallel instance of an operator, and the facts that it may know.

    :param name: the name of the operator
    :param index: the number of the instance, from 0
    :param parallelism: the number of instances
    :param attempt: the number of the attempt, from 0, one more for each restart
    :param max_parallelism: the maximum number of instances
    :param job_parameters: the parameters that the program gives to its functions
    :param metrics: the group that creates its metrics
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
    """A writer of the output of one task to a sink.

    The elements that :meth:`write` got since the last commit belong to the next one: a checkpoint calls :meth:`prepare`, stores the
    result, and calls :meth:`commit` when the checkpoint is durable. After a restart :meth:`commit` is called again for what was
    prepared, since the first call may not have happened.
    """

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Write elements.

        :param batch: the elements, which belong to the writer
        """

    def watermark(self, timestamp: int) -> None:  # noqa: B027
        """Handle the progress of event time.

        :param timestamp: the watermark in ms
        """

    def prepare(self) -> Any | None:
        """Make all that was written ready to be committed.

        :returns: the argument for :meth:`commit`, which can be pickled; None for nothing
        """
        return None

    def commit(self, prepared: Any) -> None:  # noqa: B027
        """Make the prepared output visible. Must have no effect if it was done before.

        :param prepared: the result of :meth:`prepare` or :meth:`finish_commit`
        """

    def finish_commit(self) -> Any | None:
        """Handle that :meth:`commit` was called for everything that a checkpoint has.

        :returns: output of it that shall be committed with a later checkpoint, which can be pickled; None for nothing
        """
        return None

    def end(self) -> None:  # noqa: B027
        """Handle that no elements follow: the next commit is the last one."""

    def close(self) -> None:  # noqa: B027
        """Release files and connections. Output that was not committed is dropped."""


class Sink(ABC):
    """A destination of elements. It is sent by value, so it holds no open files or connections."""

    def references(self) -> Sequence[str]:
        """Return the references, as ``${secret:NAME}``, whose values :meth:`open` needs.

        :returns: none by default
        """
        return ()

    @abstractmethod
    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Create the writer of a task.

        :param subtask: the task that writes
        :returns: its writer
        """
