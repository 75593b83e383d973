"""Conditions on requests that take time: a checkpoint, a copy of one, a commit, clearing the storage, compiling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.hooks.conditions.condition import Condition, PollOutcome, RuntimeCondition, Verdict, missing, pending
from airflow_pipelines.hooks.conditions.observation import Observation, Request


@dataclass(frozen=True)
class CheckpointTakenCondition(RuntimeCondition):
    """The condition that the checkpoint with a sequence number, or a newer one, is complete.

    :param sequence: the sequence number, from the answer to the request for the checkpoint
    :param incarnation: the run of the pipeline in which the number counts; after a restart the request is forgotten
    """

    kind = "checkpoint_taken"
    sequence: int
    incarnation: str

    @property
    def goal(self) -> str:
        """The goal, with the checkpoint."""
        return f"checkpoint {self.sequence}"

    def request(self) -> Request:
        """Request the outcomes of the newest checkpoint requests."""
        return Request("/checkpoint_status", {"incarnation_uuid": self.incarnation})

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        failure = answer.get("failure")
        if failure and failure.get("sequence_number") == self.sequence:
            return Verdict(PollOutcome.FAILED, f"it failed: {failure.get('error')}", {"status": seen.status.name})
        success = answer.get("success")
        if success is not None and success >= self.sequence:
            return Verdict(PollOutcome.REACHED, "complete", {"status": seen.status.name})
        return pending(seen, "the checkpoint is being written")


@dataclass(frozen=True)
class CheckpointCopiedCondition(RuntimeCondition):
    """The condition that a checkpoint is in the object store.

    :param checkpoint: the checkpoint's UUID
    :param incarnation: the run of the pipeline that was asked to copy it; after a restart the request is forgotten
    """

    kind = "checkpoint_copied"
    checkpoint: str
    incarnation: str

    @property
    def goal(self) -> str:
        """The goal, with the checkpoint."""
        return f"the copy of checkpoint {self.checkpoint}"

    def request(self) -> Request:
        """Request the outcomes of the newest copies."""
        return Request("/checkpoint/sync_status", {"incarnation_uuid": self.incarnation})

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        ended = next((copy for copy in answer["copies"] if copy["uuid"] == self.checkpoint), None)
        if ended is None:
            return pending(seen, "the copy is being made")
        if ended["error"] is not None:
            return Verdict(PollOutcome.FAILED, f"it failed: {ended['error']}", {"status": seen.status.name})
        return Verdict(PollOutcome.REACHED, "copied", {"status": seen.status.name})


@dataclass(frozen=True)
class TransactionEndedCondition(RuntimeCondition):
    """The condition that a transaction is no longer in progress: the step that takes the rows it collected is done.

    :param transaction: the transaction's number
    :param incarnation: the run of the pipeline in which the number counts; a restart rolls a transaction back
    """

    kind = "transaction_ended"
    transaction: int
    incarnation: str

    @property
    def goal(self) -> str:
        """The goal, with the transaction."""
        return f"the commit of transaction {self.transaction}"

    def request(self) -> Request:
        """Request the statistics."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        metrics = answer["global_metrics"]
        if metrics.get("incarnation_uuid") != self.incarnation:
            text = "the pipeline was restarted meanwhile, which may have undone the transaction"
            return Verdict(PollOutcome.FAILED, text, {"status": seen.status.name})
        if metrics.get("transaction_id") != self.transaction:
            steps = {name: metrics.get(name) for name in ("total_processed_records", "total_completed_steps")}
            return Verdict(PollOutcome.REACHED, "committed", {"status": seen.status.name, **steps})
        progress = metrics.get("commit_progress") or {}
        done = f", {progress['completed']} operators done, {progress['remaining']} to go" if "remaining" in progress else ""
        return pending(seen, f"{metrics.get('transaction_records')} records to commit{done}")


@dataclass(frozen=True)
class StorageClearedCondition(Condition):
    """The condition that nothing of the pipeline is stored any more."""

    kind = "storage_cleared"

    @property
    def goal(self) -> str:
        """The goal: clearing of the storage."""
        return "clearing of the storage"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status of the storage."""
        if seen.descriptor is None:
            return missing()
        storage = seen.descriptor["storage_status"]
        if storage == "Cleared":
            return Verdict(PollOutcome.REACHED, "cleared", {"status": seen.status.name})
        return pending(seen, f"storage {storage}")


@dataclass(frozen=True)
class CompilerDoneCondition(Condition):
    """The condition that the compiler is done with a version of the pipeline's program, or with a later one.

    It holds whether the program compiles or not.

    :param program_version: the version
    """

    kind = "compiler_done"
    program_version: int

    @property
    def goal(self) -> str:
        """The goal, with the version."""
        return f"the compiler with version {self.program_version} of the program"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status of the program."""
        if seen.descriptor is None:
            return missing()
        status = str(seen.descriptor["program_status"])
        if int(seen.descriptor["program_version"]) < self.program_version or not (status == "Success" or status.endswith("Error")):
            return pending(seen, f"program {status}")
        return Verdict(PollOutcome.REACHED, status, {"status": seen.status.name, "program_status": status})
