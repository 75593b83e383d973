"""Conditions on the status of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions.condition import Condition, Outcome, Verdict, down, missing, pending
from airflow_pipelines.hooks.conditions.observation import Observation


@dataclass(frozen=True)
class StatusCondition(Condition):
    """The pipeline has one of ``statuses`` (names of PipelineStatus). A pipeline that went down with an error fails the wait."""

    kind = "status"
    statuses: tuple[str, ...]

    def __post_init__(self) -> None:
        names = tuple(PipelineStatus.from_str(status).name for status in self.statuses)
        if not names:
            raise ValueError("a status to wait for is needed")
        object.__setattr__(self, "statuses", names)

    @property
    def goal(self) -> str:
        """The statuses."""
        return f"status {' or '.join(self.statuses)}"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status."""
        if seen.status.name in self.statuses:
            return Verdict(Outcome.REACHED, seen.status.name, {"status": seen.status.name})
        if seen.descriptor is None:
            return missing()
        if seen.is_down and seen.deployment_error:
            return down(seen)
        return pending(seen)


@dataclass(frozen=True)
class StartedCondition(StatusCondition):
    """Like StatusCondition, for one who has just asked the pipeline to start: that it is stopped on request fails the wait too."""

    kind = "started"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status, and give up on a pipeline nobody wants to run any more."""
        verdict = super().judge(seen, memory)
        return down(seen) if verdict.outcome is Outcome.PENDING and seen.is_down else verdict
