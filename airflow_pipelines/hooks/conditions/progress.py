"""Conditions on the progress of a running pipeline with its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.hooks.conditions.condition import PollOutcome, RuntimeCondition, Verdict, pending
from airflow_pipelines.hooks.conditions.observation import Observation, Request


@dataclass(frozen=True)
class TokenCondition(RuntimeCondition):
    """The condition that everything received before the completion ``token`` was made is processed and delivered.

    :param checkpoint: True if it must also survive a kill of the pipeline; a checkpoint is taken if that is needed
    """

    kind = "token"
    token: str
    checkpoint: bool = False

    @property
    def goal(self) -> str:
        """The goal, with the shortened token."""
        return f"completion token {self.token[:12]}..." if len(self.token) > 12 else f"completion token {self.token}"

    def request(self) -> Request:
        """Request the token's status."""
        return Request("/completion_status", {"token": self.token, **({"checkpoint": "true"} if self.checkpoint else {})})

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        if answer.get("status") == "complete":
            result = {"status": "complete", "step": answer.get("step"), "durable": answer.get("durable")}
            return Verdict(PollOutcome.REACHED, "complete", result)
        return pending(seen, "the token's input is still in progress")


def _select_figures(metrics: Mapping[str, Any]) -> dict[str, Any]:
    names = ("total_input_records", "total_processed_records", "total_completed_records", "total_completed_steps")
    return {name: metrics.get(name) for name in names}


@dataclass(frozen=True)
class IdleCondition(RuntimeCondition):
    """The condition that no record came in for ``idle_interval_s`` seconds and every record that ever came in is processed."""

    kind = "idle"
    idle_interval_s: float = 5.0

    @property
    def goal(self) -> str:
        """The goal, with the interval."""
        return f"{self.idle_interval_s:g} s of idleness"

    def request(self) -> Request:
        """Request the statistics."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        metrics = answer["global_metrics"]
        received, processed = metrics["total_input_records"], metrics["total_processed_records"]
        note = f"{processed} of {received} records processed"
        if received != processed:
            return pending(seen, note)
        # Counters only grow within an incarnation, so equal ones mean that nothing came in between, however long the polls were
        # apart.
        now = {"incarnation": metrics.get("incarnation_uuid"), "records": received, "since": seen.at}
        if memory and memory["incarnation"] == now["incarnation"] and memory["records"] == received:
            now["since"] = memory["since"]
        quiet = seen.at - float(now["since"])
        if quiet >= self.idle_interval_s:
            return Verdict(PollOutcome.REACHED, note, _select_figures(metrics), now)
        return pending(seen, f"{note}, idle for {quiet:.1f} s", now)


@dataclass(frozen=True)
class CompletionCondition(RuntimeCondition):
    """The condition that every input connector reached the end of its input and all of it is processed and delivered."""

    kind = "completion"

    @property
    def goal(self) -> str:
        """The goal: the end of all inputs."""
        return "the end of all inputs"

    def request(self) -> Request:
        """Request the statistics."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        metrics = answer["global_metrics"]
        if metrics["pipeline_complete"]:
            return Verdict(PollOutcome.REACHED, "complete", _select_figures(metrics))
        failed = {
            output["endpoint_name"]: output["fatal_error"] for output in answer.get("outputs", ()) if output.get("fatal_error")
        }
        if failed:
            reasons = "; ".join(f"output {name} has failed: {reason}" for name, reason in failed.items())
            return Verdict(
                PollOutcome.FAILED, reasons, {"status": seen.status.name, "failed_outputs": failed, **_select_figures(metrics)}
            )
        return pending(seen, f"{metrics['total_completed_records']} of {metrics['total_input_records']} records completed")
