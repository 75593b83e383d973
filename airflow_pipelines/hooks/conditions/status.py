"""Conditions on the status of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions.condition import Condition, PollOutcome, Verdict, down, missing, pending
from airflow_pipelines.hooks.conditions.observation import Observation

_BEFORE_RUNNING: Final = frozenset(
    {
        PipelineStatus.PROVISIONING,
        PipelineStatus.STANDBY,
        PipelineStatus.AWAITINGAPPROVAL,
        PipelineStatus.INITIALIZING,
        PipelineStatus.BOOTSTRAPPING,
        PipelineStatus.CONCURRENTBOOTSTRAPPING,
        PipelineStatus.SYNCHRONIZING,
        PipelineStatus.REPLAYING,
    }
)
_STARTED: Final = frozenset({PipelineStatus.RUNNING, PipelineStatus.PAUSED, PipelineStatus.SUSPENDED})
_WHILE_UP: Final = _BEFORE_RUNNING | {PipelineStatus.RUNNING, PipelineStatus.PAUSED}


@dataclass(frozen=True)
class StatusCondition(Condition):
    """The condition that the pipeline has one of ``statuses`` (names of PipelineStatus).

    A status that can no longer come fails the wait in three cases. The pipeline went down with an error. Somebody stopped it while
    a status of a running pipeline was awaited. It has started already and only statuses of the start are awaited.
    """

    kind = "status"
    statuses: tuple[str, ...]

    def __post_init__(self) -> None:
        names = tuple(PipelineStatus.from_str(status).name for status in self.statuses)
        if not names:
            raise ValueError("a status to wait for is needed")
        object.__setattr__(self, "statuses", names)

    @property
    def _awaited(self) -> frozenset[PipelineStatus]:
        return frozenset(PipelineStatus[status] for status in self.statuses)

    @property
    def goal(self) -> str:
        """The goal, with the statuses."""
        return f"status {' or '.join(self.statuses)}"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status."""
        if seen.status.name in self.statuses:
            return Verdict(PollOutcome.REACHED, seen.status.name, {"status": seen.status.name})
        if seen.descriptor is None:
            return missing()
        was_up = bool((memory or {}).get("was_up"))
        if seen.is_down and (seen.deployment_error or (was_up and self._awaited <= _WHILE_UP)):
            return down(seen)
        if seen.status in _STARTED and self._awaited <= _BEFORE_RUNNING:
            text = f"the pipeline is {seen.status.name} already: it has {' or '.join(self.statuses)} only while it starts"
            return Verdict(PollOutcome.FAILED, text, {"status": seen.status.name})
        return pending(seen, memory={"was_up": was_up or not _is_to_be_down(seen)})


def _is_to_be_down(seen: Observation) -> bool:
    return seen.descriptor is None or seen.descriptor.get("deployment_desired_status") == "Stopped"


@dataclass(frozen=True)
class StoppedCondition(Condition):
    """The condition that the pipeline is stopped, with an error or without, for tasks that go on from there in either case."""

    kind = "stopped"

    @property
    def goal(self) -> str:
        """The goal: the end of the stop."""
        return "the end of the stop"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status."""
        if seen.descriptor is None:
            return missing()
        if seen.status is PipelineStatus.STOPPED:
            return Verdict(PollOutcome.REACHED, seen.status.name, {"status": seen.status.name})
        return pending(seen)


@dataclass(frozen=True)
class StartedCondition(StatusCondition):
    """The condition of :class:`StatusCondition` after a request to start the pipeline: a stop on request fails the wait too."""

    kind = "started"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status, and fail if nobody wants the pipeline to run any more."""
        verdict = super().judge(seen, memory)
        return down(seen) if verdict.outcome is PollOutcome.PENDING and seen.is_down else verdict
