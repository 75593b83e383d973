"""The operator that asks a person about a plan, for DAGs that make the change with tasks of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID
from airflow_pipelines.links.pipeline import PipelineChangeLink, PipelineLink
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.dag_test import await_answer, end_task_of_dag_test
from airflow_pipelines.operators.diff import change_fingerprint, review_xcom
from airflow_pipelines.operators.request import REVIEW_KEY, Answer, check_request, write_request

if TYPE_CHECKING:
    from airflow.sdk import Context


class ReviewPlanOperator(ApprovalOperator):  # type: ignore[misc,unused-ignore]
    """The operator that shows a plan to a person, in Airflow's Required Actions, and returns the decision.

    It does not touch the pipeline.

    On rejection tasks downstream are skipped. A plan without changes asks nobody. Airflow keeps the text of a request from the task
    instance's first try. If the task is cleared and the plan differs by then, the task fails, because people would read the old
    plan.

    XCom: ``{"pipeline", "approved", "decided_by", "programs"}``. ``programs`` is the value that the person saw, and None if nothing
    would change; give it to the tasks that make the change. After a rejection the XCom ``decision`` has the same content.

    :param pipeline_name: the pipeline
    :param pipeline_conn_id: the Airflow connection
    :param plan: the XCom of PlanPipelineOperator, or a template of it in JSON
    :param kwargs: arguments of ApprovalOperator, such as ``assigned_users``, ``notifiers``, ``response_timeout`` and ``defaults``
    """

    operator_extra_links = (PipelineLink(), PipelineChangeLink())
    template_fields: Sequence[str] = ("subject", "body", "pipeline_name", "pipeline_conn_id", "plan")
    template_fields_renderers = {"plan": "json"}
    ui_color = "#cfe3f5"

    def __init__(self, *, pipeline_name: str, plan: Any, pipeline_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        kwargs.setdefault("subject", "Approve the change of a running pipeline")
        super().__init__(**kwargs)
        self.pipeline_name = pipeline_name
        self.pipeline_conn_id = pipeline_conn_id
        self.plan = plan

    def on_kill(self) -> None:
        """Log that nothing was done to the pipeline, because the task was cleared or marked."""
        self.log.info("The task ends, pipeline %s is left as it is", self.pipeline_name)
        end_task_of_dag_test()

    def execute(self, context: Context) -> Any:
        """Ask for a decision, if the plan has changes."""
        self.pipeline_name = arguments.text("pipeline_name", self.pipeline_name)
        self.pipeline_conn_id = arguments.text("pipeline_conn_id", self.pipeline_conn_id)
        plan = arguments.mapping("plan", self.plan)
        if not plan.get("programs") or not plan.get("markdown") or plan.get("pipeline") != self.pipeline_name:
            raise AirflowFailException(
                f"plan is no plan for pipeline {self.pipeline_name!r}: give it what PlanPipelineOperator returned for that pipeline"
            )
        if not plan.get("changes"):
            self.log.info("Nothing would change on pipeline %s", self.pipeline_name)
            return {"pipeline": self.pipeline_name, "approved": False, "decided_by": None, "programs": None}
        change = PendingChange.from_dict({**plan, "approval_diff": plan["diff"]})
        fingerprint = change_fingerprint(change, self.pipeline_name)
        write_request(self, self.pipeline_name, str(plan["markdown"]), fingerprint)
        review = review_xcom(self.pipeline_name, self.pipeline_conn_id, change, planned=True)
        context["ti"].xcom_push(key=REVIEW_KEY, value=review)
        try:
            return super().execute(context)
        except TaskAwaitingInput as wait:
            check_request(context, self, fingerprint)
            # The task continues in another process, so the plan that was shown is passed on.
            wait.kwargs = {"shown": {"pipeline": self.pipeline_name, "programs": change.programs}}
            return await_answer(context, self, wait)

    def execute_complete(self, context: Context, event: dict[str, Any], shown: dict[str, Any] | None = None) -> Any:
        """Return the decision.

        :param context: the task's context
        :param event: the person's answer, in Airflow's form
        :param shown: the pipeline and the programs that the person saw
        :returns: the XCom
        """
        if not shown:
            raise AirflowFailException("The task does not know what was shown any more: start a new DAG run")
        answer = Answer.of(super(ApprovalOperator, self).execute_complete(context, event))
        result = {**shown, "approved": answer.approved, "decided_by": answer.decided_by}
        if not answer.approved:
            # The base class drops the result of a rejected task, so it is pushed before.
            context["ti"].xcom_push(key="decision", value=result)
        super().execute_complete(context, event)
        return result
