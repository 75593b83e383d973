"""The operator that restarts pipelines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions import Observation, StatusCondition, describe_deployment_error
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.lifecycle import STOP_MODES, StartPipelineOperator
from airflow_pipelines.operators.task_memory import TaskMemory

if TYPE_CHECKING:
    from airflow.sdk import Context

STOPPING: Final = "stopping"
"""The key under which a task remembers the deployment that it stops."""


class RestartPipelineOperator(StartPipelineOperator):
    """The operator that restarts a pipeline and waits until it runs, or until its changed program waits for approval.

    A pipeline that is stopped is started.

    A retry does not stop it a second time if an earlier try has started it again. If the final checkpoint cannot be written, the
    pipeline stays stopped and the task fails: a start would resume from an older checkpoint.

    XCom: that of StartPipelineOperator.

    :param mode: ``checkpoint`` takes a checkpoint before it stops; ``force`` stops at once, and the start resumes from the last
        existing checkpoint
    """

    template_fields: Sequence[str] = (*StartPipelineOperator.template_fields, "mode")

    def __init__(self, *, mode: str = "checkpoint", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        arguments.refuse_when_parsed(arguments.choice, "mode", mode, STOP_MODES)
        self.mode = mode

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.mode = arguments.choice("mode", self.mode, STOP_MODES)

    def act(self, context: Context) -> Any:
        """Stop and start the pipeline, or continue an earlier try."""
        seen = Observation(self.hook.descriptor(self.pipeline_name), time.time())
        deployment = (seen.descriptor or {}).get("deployment_id")
        before = TaskMemory(context).recall(STOPPING)
        if deployment is None or (before is not None and before != deployment):
            # It is stopped, or an earlier try has started it again.
            return super().act(context)
        TaskMemory(context).remember(STOPPING, deployment)
        if self.mode == "force":
            self.hook.force_stop(self.pipeline_name)
        else:
            self.hook.stop(self.pipeline_name)
        return self.wait_and_finish(context, StatusCondition((PipelineStatus.STOPPED.name,)), stopped=True)

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> Any:
        """Start the pipeline after the stop, and return the XCom after the start."""
        if not carried.get("stopped"):
            TaskMemory(context).forget(STOPPING)
            return super().finish(context, outcome, **carried)
        error = (self.hook.descriptor(self.pipeline_name) or {}).get("deployment_error")
        if error and self.mode == "checkpoint":
            raise AirflowFailException(
                f"Pipeline {self.pipeline_name!r} stopped with an error and was not started again: "
                f"{describe_deployment_error(error)}"
            )
        return super().act(context)
