"""The operator that activates a pipeline in standby."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.contract.change_text import change_text
from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions import Observation, StartedCondition
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import WaitingPipelineOperator
from airflow_pipelines.operators.diff import change_xcom
from airflow_pipelines.operators.lifecycle import StartPipelineOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

_INITIAL = {"running": PipelineStatus.RUNNING, "paused": PipelineStatus.PAUSED}


class ActivatePipelineOperator(WaitingPipelineOperator):
    """The operator that lets a pipeline in standby pull the newest checkpoint once more and run from there.

    It waits until the pipeline runs, or until its changed program waits for approval. A pipeline that is being activated already,
    or runs, is left alone: a retry activates nothing twice.

    The operator does not stop the pipeline that is replaced: do that before.

    XCom: ``{"pipeline", "status", "deployment_id", "diff", "programs", "views_evaluated_anew"}``; the last three are the change
    that waits for approval, None if no change is pending.

    :param initial: ``running`` or ``paused``
    """

    template_fields: Sequence[str] = (*WaitingPipelineOperator.template_fields, "initial")
    operator_extra_links = StartPipelineOperator.operator_extra_links

    def __init__(self, *, initial: str = "running", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        arguments.refuse_when_parsed(arguments.choice, "initial", initial, tuple(_INITIAL))
        self.initial = initial

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.initial = arguments.choice("initial", self.initial, tuple(_INITIAL))

    def act(self, context: Context) -> Any:
        """Activate the pipeline, or continue an earlier try."""
        wanted = _INITIAL[self.initial]
        seen = Observation(self.hook.descriptor(self.pipeline_name), time.time())
        if seen.descriptor is None or seen.is_down:
            raise AirflowFailException(
                f"Pipeline {self.pipeline_name!r} is {seen.status.name}, so there is nothing to activate: start it with "
                'StartPipelineOperator(initial="standby")'
            )
        if seen.status is PipelineStatus.STANDBY:
            self.hook.activate(self.pipeline_name, initial=self.initial)
        else:
            self.log.info("Pipeline %s is %s, not in standby any more", self.pipeline_name, seen.status.name)
        return self.wait_and_finish(context, StartedCondition((wanted.name, PipelineStatus.AWAITINGAPPROVAL.name)))

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the status and the change that waits for approval, if there is one."""
        change = None
        if outcome["status"] == PipelineStatus.AWAITINGAPPROVAL.name:
            change = self.hook.pending_change(self.pipeline_name)
            self.log.info("Pipeline %s waits for the approval of:\n%s", self.pipeline_name, change_text(change))
        deployment = (self.hook.descriptor(self.pipeline_name) or {}).get("deployment_id")
        return {"pipeline": self.pipeline_name, "status": outcome["status"], "deployment_id": deployment, **change_xcom(change)}
