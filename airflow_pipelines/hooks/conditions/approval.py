"""The condition that a change of a pipeline's program waits for approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions.condition import Condition, PollOutcome, Verdict, down, missing, pending
from airflow_pipelines.hooks.conditions.observation import Observation


@dataclass(frozen=True)
class ApprovalCondition(Condition):
    """The condition that a changed program waits for approval.

    A pipeline that runs or is stopped may still get there. A pipeline that went down with an error fails the wait.
    """

    kind = "approval"

    @property
    def goal(self) -> str:
        """The goal: a change to approve."""
        return "a change to approve"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Check the status, and the pending change that the host reports."""
        if seen.descriptor is None:
            return missing()
        if seen.status is PipelineStatus.AWAITINGAPPROVAL:
            # The status may be set before the host has reported the change.
            details = seen.descriptor.get("deployment_runtime_status_details") or {}
            change = PendingChange.from_dict(details)
            if change.programs:
                fields = {"diff": change.diff, "programs": change.programs, "views_evaluated_anew": change.views_evaluated_anew}
                return Verdict(PollOutcome.REACHED, "a change waits", {"status": seen.status.name, **fields})
        if seen.is_down and seen.deployment_error:
            return down(seen)
        return pending(seen)
