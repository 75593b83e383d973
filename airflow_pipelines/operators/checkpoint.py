"""Operators that save a pipeline's state: in a checkpoint, and in a copy of it in an object store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.hooks.conditions import CheckpointCopiedCondition, CheckpointTakenCondition, Condition
from airflow_pipelines.hooks.wait_metrics import WaitOutcome
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import WaitingPipelineOperator
from airflow_pipelines.sdk.errors import PipelineFailedError

if TYPE_CHECKING:
    from airflow.sdk import Context


class CheckpointRequestOperator(WaitingPipelineOperator):
    """The base class of operators that ask a pipeline to save its state and wait until it is saved.

    A full disk or an unavailable object store may recover, and a restart forgets the request. Such a failure is left to ``retries``
    if the pipeline did not go down with an error.
    """

    def wait_and_finish(self, context: Context, condition: Condition, **carried: Any) -> Any:
        """See the base class."""
        with _worth_a_retry():
            return super().wait_and_finish(context, condition, **carried)

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None, carried: dict[str, Any] | None = None) -> Any:
        """See the base class."""
        if event and event.get("outcome") == WaitOutcome.FAILED and not event["result"].get("deployment_error"):
            raise RuntimeError(event["message"])
        return super().execute_complete(context, event, carried)


class CheckpointPipelineOperator(CheckpointRequestOperator):
    """The operator that takes a checkpoint of a running or paused pipeline and waits until it is complete.

    XCom: ``{"pipeline", "checkpoint", "sequence", "steps", "processed_records"}`` with the checkpoint's UUID. The assets in
    ``outlets`` get the same as ``extra``, so that DAGs scheduled on them know the checkpoint.
    """

    def act(self, context: Context) -> Any:
        """Request the checkpoint and wait."""
        asked = self.hook.pipeline(self.pipeline_name).checkpoint_response()
        sequence = int(asked["checkpoint_sequence_number"])
        condition = CheckpointTakenCondition(sequence, str(asked["incarnation_uuid"]))
        return self.wait_and_finish(context, condition, sequence=sequence)

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the checkpoint."""
        checkpoint = self.hook.newest_checkpoint(self.pipeline_name)
        return {
            "pipeline": self.pipeline_name,
            "checkpoint": checkpoint.get("uuid"),
            "sequence": carried["sequence"],
            "steps": checkpoint.get("steps"),
            "processed_records": checkpoint.get("processed_records"),
        }


class SyncCheckpointOperator(CheckpointRequestOperator):
    """The operator that copies a checkpoint to the object store of the pipeline's storage configuration, and waits for the copy.

    Only files that are not there yet are copied. Afterwards outdated copies are removed.

    XCom: ``{"pipeline", "checkpoint"}`` with the checkpoint's UUID. The assets in ``outlets`` get the same as ``extra``.

    :param checkpoint: UUID of the checkpoint to copy; default the newest one
    :param retention_min_count: the number of newest copies to keep; default as in the storage configuration
    :param retention_min_age: the age in days up to which all copies are kept; default as in the storage configuration
    """

    template_fields: Sequence[str] = (
        *WaitingPipelineOperator.template_fields,
        "checkpoint",
        "retention_min_count",
        "retention_min_age",
    )

    def __init__(
        self,
        *,
        checkpoint: str | None = None,
        retention_min_count: int | str | None = None,
        retention_min_age: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.given = arguments.collect_given(
            checkpoint=checkpoint, retention_min_count=retention_min_count, retention_min_age=retention_min_age
        )
        self.checkpoint = checkpoint
        self.retention_min_count = retention_min_count
        self.retention_min_age = retention_min_age

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        if "checkpoint" in self.given:
            self.checkpoint = str(checkpoint_uuid("checkpoint", self.checkpoint))
        if "retention_min_count" in self.given:
            self.retention_min_count = arguments.whole_number("retention_min_count", self.retention_min_count, least=0)
        if "retention_min_age" in self.given:
            self.retention_min_age = arguments.number("retention_min_age", self.retention_min_age, least=0)

    def act(self, context: Context) -> Any:
        """Request the copy and wait."""
        asked = self.hook.pipeline(self.pipeline_name).sync_checkpoint_response(
            checkpoint=None if self.checkpoint is None else UUID(self.checkpoint),
            retention_min_count=None if self.retention_min_count is None else int(self.retention_min_count),
            retention_min_age=None if self.retention_min_age is None else float(self.retention_min_age),
        )
        uuid = str(asked["checkpoint_uuid"])
        condition = CheckpointCopiedCondition(uuid, str(asked["incarnation_uuid"]))
        return self.wait_and_finish(context, condition, checkpoint=uuid)

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the checkpoint."""
        return {"pipeline": self.pipeline_name, "checkpoint": carried["checkpoint"]}


def checkpoint_uuid(name: str, value: Any) -> UUID:
    """Return the value as the UUID of a checkpoint.

    :param name: the argument's name
    :param value: the rendered value
    :raises AirflowFailException: if it is empty, lost or no UUID
    """
    text = arguments.text(name, value)
    try:
        return UUID(text)
    except ValueError:
        raise AirflowFailException(f"{name} is {text!r}, which is no UUID of a checkpoint") from None


@contextmanager
def _worth_a_retry() -> Iterator[None]:
    try:
        yield
    except PipelineFailedError as error:
        if error.deployment_error is None:
            raise RuntimeError(str(error)) from error
        raise
