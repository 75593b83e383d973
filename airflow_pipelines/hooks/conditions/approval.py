"""The condition that a change waits for approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions.condition import Condition, Outcome, Verdict, down, missing, pending
from airflow_pipelines.hooks.conditions.observation import Observation


@dataclass(frozen=True)
class ApprovalCondition(Condition):
    """A changed program waits for approval. A pipeline that runs or is stopped may come to that later; one that went down with an
    error fails the wait.
    """

    kind = "approval"

    @property
    def goal(self) -> str:
        """Approval."""
        return "a change to approve"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Look at the status, and at what the host says of the change."""
        if seen.descriptor is None:
            return missing()
        if seen.status is PipelineStatus.AWAITINGAPPROVAL:
            # The status may be there before the host has said what waits.
            details = seen.descriptor.get("deployment_runtime_status_details") or {}
            change = PendingChange.from_dict(details)
            if change.programs:
                found = {"diff": change.diff, "programs": change.programs, "views_evaluated_anew": change.views_evaluated_anew}
                return Verdict(Outcome.REACHED, "a change waits", {"status": seen.status.name, **found})
        if seen.is_down and seen.deployment_error:
            return down(seen)
        return pending(seen)
