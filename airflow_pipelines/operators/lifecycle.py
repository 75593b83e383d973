"""Operators that start, pause, resume, stop and delete pipelines.

All are idempotent: a pipeline in the desired state is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.contract.change_text import change_text
from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineStatus
from airflow_pipelines.hooks.conditions import (
    Observation,
    StartedCondition,
    StatusCondition,
    describe_deployment_error,
)
from airflow_pipelines.lineage.openlineage import TellsLineage
from airflow_pipelines.links.pipeline import PipelineChangeLink, PipelineLink, SparkApplicationLink
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import PipelineOperator, WaitingPipelineOperator
from airflow_pipelines.operators.diff import change_xcom
from airflow_pipelines.operators.going_back import loss_text

if TYPE_CHECKING:
    from airflow.sdk import Context

_INITIAL = {"running": PipelineStatus.RUNNING, "paused": PipelineStatus.PAUSED, "standby": PipelineStatus.STANDBY}
STOP_MODES = ("checkpoint", "force")


class StartPipelineOperator(WaitingPipelineOperator, TellsLineage):
    """The operator that starts a pipeline and waits until it runs, or until its changed program waits for approval.

    The task attaches to a pipeline that is starting or running already in the same way, so a retry never starts a second one. A
    pipeline that somebody PAUSED is not resumed: the task fails and says so.

    With ``from_checkpoint`` a stopped pipeline goes back to an older checkpoint, which loses everything after it; the log has the
    amount. Each run of the task that finds the pipeline stopped goes back again. A pipeline that is up and was not started from
    that checkpoint is left alone, and the task fails.

    XCom: ``{"pipeline", "status", "deployment_id", "attached", "diff", "programs", "views_evaluated_anew"}``; the last three are
    the change that waits for approval, the identity of its programs, and the unchanged views that are re-evaluated; they are None
    if no change is pending.

    :param initial: ``running``, ``paused``, or ``standby``: it pulls checkpoints of another pipeline until ActivatePipelineOperator
        lets it take over
    :param bootstrap_policy: the policy if the program differs from that of the checkpoint: ``await_approval``, ``allow`` or
        ``reject``
    :param from_checkpoint: UUID of the checkpoint to go back to; None or an empty text starts from the newest
    """

    operator_extra_links = (PipelineLink(), PipelineChangeLink(), SparkApplicationLink())
    template_fields: Sequence[str] = (*WaitingPipelineOperator.template_fields, "initial", "bootstrap_policy", "from_checkpoint")

    def __init__(
        self,
        *,
        initial: str = "running",
        bootstrap_policy: str | BootstrapPolicy = BootstrapPolicy.AWAIT_APPROVAL,
        from_checkpoint: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        arguments.refuse_when_parsed(arguments.choice, "initial", initial, tuple(_INITIAL))
        arguments.refuse_when_parsed(arguments.bootstrap_policy, "bootstrap_policy", bootstrap_policy)
        self.initial = initial
        self.bootstrap_policy = bootstrap_policy
        self.from_checkpoint = from_checkpoint

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.initial = arguments.choice("initial", self.initial, tuple(_INITIAL))
        self.bootstrap_policy = arguments.bootstrap_policy("bootstrap_policy", self.bootstrap_policy)

    def act(self, context: Context) -> Any:
        """Start the pipeline, or attach to it."""
        wanted = _INITIAL[self.initial]
        back_to = self._checkpoint()
        seen = Observation(self.hook.descriptor(self.pipeline_name), time.time())
        if seen.status is PipelineStatus.STOPPING:
            self.log.info("Pipeline %s is still stopping; it is started after that", self.pipeline_name)
            stopped = StatusCondition((PipelineStatus.STOPPED.name,))
            self.hook.wait(self.pipeline_name, stopped, timeout_s=self.timeout, poll_interval_s=self.poke_interval)
            seen = Observation(self.hook.descriptor(self.pipeline_name), time.time())
        attached = seen.descriptor is not None and seen.descriptor.get("deployment_desired_status") != "Stopped"
        if attached and seen.status is PipelineStatus.PAUSED and wanted is PipelineStatus.RUNNING:
            raise AirflowFailException(
                f"Pipeline {self.pipeline_name!r} is PAUSED, so starting it changes nothing: resume it with ResumePipelineOperator"
            )
        if attached and seen.status is wanted and back_to is None:
            self.log.info("Pipeline %s is %s already", self.pipeline_name, wanted.name)
        else:
            if back_to is not None and not attached:
                self.log.warning("%s (pipeline %s)", loss_text(seen.descriptor or {}, back_to), self.pipeline_name)
            # While the pipeline is up, this request has no effect, or is refused because it was started in another way.
            policy = arguments.bootstrap_policy("bootstrap_policy", self.bootstrap_policy)
            self.hook.start(self.pipeline_name, initial=self.initial, bootstrap_policy=policy, from_checkpoint=back_to)
        return self.wait_and_finish(context, StartedCondition(_select_end_statuses(wanted)), attached=attached)

    def _checkpoint(self) -> UUID | None:
        """Return the checkpoint of the rendered ``from_checkpoint``, or None if it is empty."""
        if not self.from_checkpoint:
            return None
        try:
            return UUID(self.from_checkpoint)
        except ValueError:
            raise AirflowFailException(
                f"from_checkpoint is {self.from_checkpoint!r}, which is no UUID of a checkpoint; nothing was started"
            ) from None

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the status and the change that waits for approval, if there is one."""
        descriptor = self.hook.descriptor(self.pipeline_name) or {}
        change = None
        if outcome["status"] == PipelineStatus.AWAITINGAPPROVAL.name:
            change = self.hook.pending_change(self.pipeline_name)
            self.log.info("Pipeline %s waits for the approval of:\n%s", self.pipeline_name, change_text(change))
        elif not carried["attached"]:
            self.log.info("Pipeline %s is %s", self.pipeline_name, outcome["status"])
        return {
            "pipeline": self.pipeline_name,
            "status": outcome["status"],
            "deployment_id": descriptor.get("deployment_id"),
            "attached": carried["attached"],
            **change_xcom(change),
        }


def _select_end_statuses(wanted: PipelineStatus) -> tuple[str, ...]:
    """Return the statuses that end the wait for a start."""
    # A pipeline that was activated once resumes from its storage and is not in standby any more.
    others = (PipelineStatus.RUNNING,) if wanted is PipelineStatus.STANDBY else ()
    return tuple(status.name for status in (wanted, PipelineStatus.AWAITINGAPPROVAL, *others))


class PausePipelineOperator(WaitingPipelineOperator):
    """The operator that pauses a running pipeline: it takes no input, and can still be queried.

    XCom: ``{"pipeline", "status"}``.
    """

    def act(self, context: Context) -> Any:
        """Request the pause and wait."""
        self.hook.pause(self.pipeline_name)
        return self.wait_and_finish(context, StartedCondition((PipelineStatus.PAUSED.name,)))

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the status."""
        return {"pipeline": self.pipeline_name, "status": outcome["status"]}


class ResumePipelineOperator(WaitingPipelineOperator):
    """The operator that resumes a paused pipeline. XCom: ``{"pipeline", "status"}``."""

    def act(self, context: Context) -> Any:
        """Request the resumption and wait."""
        self.hook.resume(self.pipeline_name)
        return self.wait_and_finish(context, StartedCondition((PipelineStatus.RUNNING.name,)))

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the status."""
        return {"pipeline": self.pipeline_name, "status": outcome["status"]}


class StopPipelineOperator(WaitingPipelineOperator):
    """The operator that stops a pipeline and waits until it is stopped. One that is stopped already is left alone.

    XCom: ``{"pipeline", "status", "checkpoint"}``; ``checkpoint`` is the newest one's UUID, from which the next start resumes,
    or None.

    :param mode: ``checkpoint`` takes a checkpoint first, so that nothing is lost; if that cannot be written, the pipeline stops as
        with ``force`` and the task fails. ``force`` stops at once, so that the next start resumes from the last existing
        checkpoint.
    """

    template_fields: Sequence[str] = (*WaitingPipelineOperator.template_fields, "mode")

    def __init__(self, *, mode: str = "checkpoint", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        arguments.refuse_when_parsed(arguments.choice, "mode", mode, STOP_MODES)
        self.mode = mode

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.mode = arguments.choice("mode", self.mode, STOP_MODES)

    def act(self, context: Context) -> Any:
        """Request the stop and wait."""
        seen = Observation(self.hook.descriptor(self.pipeline_name), time.time())
        if seen.is_down and seen.status is PipelineStatus.STOPPED:
            # An old error does not belong to this stop: waits on the pipeline report it, and the next start dismisses it.
            self.log.info("Pipeline %s is stopped already", self.pipeline_name)
            return self.finish(context, {"status": seen.status.name}, was_down=True)
        if self.mode == "force":
            self.hook.force_stop(self.pipeline_name)
        else:
            self.hook.stop(self.pipeline_name)
        return self.wait_and_finish(context, StatusCondition((PipelineStatus.STOPPED.name,)))

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the checkpoint, or fail if the checkpoint failed during the stop."""
        descriptor = self.hook.descriptor(self.pipeline_name) or {}
        error = descriptor.get("deployment_error")
        if error and self.mode == "checkpoint" and not carried.get("was_down"):
            raise AirflowFailException(f"Pipeline {self.pipeline_name!r} stopped with an error: {describe_deployment_error(error)}")
        checkpoint = self.hook.newest_checkpoint(self.pipeline_name).get("uuid")
        return {"pipeline": self.pipeline_name, "status": outcome["status"], "checkpoint": checkpoint}


class DeletePipelineOperator(PipelineOperator):
    """The operator that clears the storage of a stopped pipeline and deletes it. A pipeline that does not exist is ignored.

    XCom: ``{"pipeline", "deleted"}``; ``deleted`` is False if there was nothing to delete.
    """

    def act(self, context: Context) -> dict[str, Any]:
        """Delete the pipeline."""
        exists = self.hook.descriptor(self.pipeline_name) is not None
        if exists:
            self.hook.delete(self.pipeline_name)
        return {"pipeline": self.pipeline_name, "deleted": exists}
