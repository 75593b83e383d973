"""Operators that let a changed program take over: by the DAG itself, or after a person has seen the change and agreed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from airflow_pipelines.enums import PipelineStatus
from airflow_pipelines.hooks.conditions import StartedCondition
from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID, PipelineHook
from airflow_pipelines.operators.base import WaitingPipelineOperator, airflow_errors
from airflow_pipelines.operators.diff import diff_fingerprint, diff_markdown, diff_text

if TYPE_CHECKING:
    from airflow.sdk import Context

_UP = (PipelineStatus.RUNNING.name, PipelineStatus.PAUSED.name)
_SETTLED = (
    *_UP,
    PipelineStatus.AWAITINGAPPROVAL.name,
    # Past the approval already.
    PipelineStatus.BOOTSTRAPPING.name,
    PipelineStatus.REPLAYING.name,
)
_ON_REJECT = ("stop", "leave")


class ApprovePipelineOperator(WaitingPipelineOperator):
    """Approves the change that a pipeline waits with, and waits until the pipeline runs (or is paused, if it was started so).

    The change is written to the log and to the XCom before it is approved. With ``expected_diff`` only that very change is
    approved: give it what an earlier task, such as StartPipelineOperator, returned, and whatever a person decided about is what
    runs, or nothing does. A pipeline that waits for nothing is left alone.

    XCom: ``{"pipeline", "approved", "status", "diff", "diff_text"}``.

    Args:
        expected_diff: the change to approve, None for whatever waits.
    """

    template_fields: Sequence[str] = (*WaitingPipelineOperator.template_fields, "expected_diff")
    template_fields_renderers = {"expected_diff": "json"}

    def __init__(self, *, expected_diff: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.expected_diff = expected_diff

    def act(self, context: Context) -> Any:
        """Show, compare, approve, wait."""
        diff = waiting_diff(self.hook, self.pipeline_name, self.timeout)
        if diff is not None:
            self.log.info("Approving on pipeline %s:\n%s", self.pipeline_name, diff_text(diff))
            # A template gives text, an XComArg the object.
            expected = json.loads(self.expected_diff) if isinstance(self.expected_diff, str) else self.expected_diff
            if expected and expected != diff:
                raise AirflowFailException(
                    f"The change that waits on pipeline {self.pipeline_name!r} is not the expected one. It is:\n{diff_text(diff)}\n"
                    f"Expected was:\n{diff_text(expected)}"
                )
            self.hook.approve(self.pipeline_name)
        else:
            self.log.info("Nothing waits for approval on pipeline %s", self.pipeline_name)
        return self.wait_and_finish(context, StartedCondition(_UP), diff=diff)

    def finish(self, context: Context, found: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Report what was approved."""
        return approval_xcom(self.pipeline_name, found["status"], carried["diff"])


class ReviewPipelineChangeOperator(ApprovalOperator):  # type: ignore[misc,unused-ignore]
    """Shows the change that a pipeline waits with to a person, in Airflow's Required Actions, and does what they decide.

    While the person thinks, neither a worker nor the triggerer is used. On approval the change that was shown is approved and,
    once the pipeline runs, the task succeeds; when another change waits by then, the task fails and nothing is approved. On
    rejection the pipeline is stopped (its checkpoint is kept) and tasks downstream are skipped. A pipeline that waits for
    nothing asks nobody.

    Airflow keeps the text of a request as it was at the task instance's first try. When the task is cleared after the change has
    changed, the person would see the old text; this is noticed and refused: start a new DAG run for a new change.

    XCom: ``{"pipeline", "approved", "status", "diff", "diff_text"}``, and ``decided_by`` when a person decided.

    Args:
        pipeline_name: the pipeline.
        pipeline_conn_id: the Airflow connection.
        on_reject: ``stop`` the pipeline, or ``leave`` it waiting.
        timeout: seconds to wait for the pipeline after the approval.
        poke_interval: seconds between looks after the approval.
        kwargs: as of ApprovalOperator, such as ``assigned_users``, ``notifiers``, ``response_timeout`` and ``defaults``.
    """

    template_fields: Sequence[str] = ("subject", "body", "pipeline_name", "pipeline_conn_id")

    def __init__(
        self,
        *,
        pipeline_name: str,
        pipeline_conn_id: str = DEFAULT_CONN_ID,
        on_reject: str = "stop",
        timeout: float = 600.0,
        poke_interval: float = 1.0,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("subject", "Approve the change of a pipeline")
        super().__init__(**kwargs)
        if on_reject not in _ON_REJECT:
            raise ValueError(f"on_reject is {on_reject!r}; known: {', '.join(_ON_REJECT)}")
        self.pipeline_name = pipeline_name
        self.pipeline_conn_id = pipeline_conn_id
        self.on_reject = on_reject
        self.timeout = timeout
        self.poke_interval = poke_interval

    @cached_property
    def hook(self) -> PipelineHook:
        """The hook for the connection."""
        return PipelineHook(self.pipeline_conn_id)

    def execute(self, context: Context) -> Any:
        """Ask, if there is something to ask."""
        with airflow_errors():
            diff = waiting_diff(self.hook, self.pipeline_name, self.timeout)
            if diff is None:
                self.log.info("Nothing waits for approval on pipeline %s", self.pipeline_name)
                return approval_xcom(self.pipeline_name, self.hook.status(self.pipeline_name).name, None)
        self.log.info("Asking for the approval of:\n%s", diff_text(diff))
        self.subject = f"Pipeline {self.pipeline_name}: {self.subject}"
        note = f"{self.body}\n\n" if self.body else ""
        self.body = f"{note}{diff_markdown(diff)}\n\nchange `{diff_fingerprint(diff)}`"
        try:
            return super().execute(context)
        except TaskAwaitingInput as wait:
            stored = stored_request_body(context, self)
            if stored is not None and stored != self.body:
                raise AirflowFailException(
                    "The request that people see was written for another change, and Airflow does not let it be replaced: "
                    "start a new DAG run, so that this change is shown"
                ) from None
            # The task goes on in another process: what was shown travels with it.
            wait.kwargs = {"shown": diff}
            raise

    def execute_complete(self, context: Context, event: dict[str, Any], shown: dict[str, Any] | None = None) -> Any:
        """Do what was decided."""
        answer = cast("dict[str, Any]", self._decision(context, event))
        approved = answer["chosen_options"][0] == self.APPROVE
        result = approval_xcom(self.pipeline_name, "", shown, approved=approved)
        result["decided_by"] = (answer.get("responded_by_user") or {}).get("name")
        with airflow_errors():
            if approved:
                self._approve(shown)
                found = self.hook.wait(
                    self.pipeline_name, StartedCondition(_UP), timeout_s=self.timeout, poll_interval_s=self.poke_interval
                )
                return {**result, "status": found["status"]}
            if self.on_reject == "stop":
                # Nothing is lost: the checkpoint that the pipeline started from stays.
                self.hook.force_stop(self.pipeline_name)
            result["status"] = self.hook.status(self.pipeline_name).name
        # The base class ends a rejected task in a way that drops its result, so it is pushed before.
        context["ti"].xcom_push(key="decision", value=result)
        super().execute_complete(context, event)
        return result

    def _decision(self, context: Context, event: dict[str, Any]) -> Any:
        """The validated answer, without the skipping of the base class."""
        return super(ApprovalOperator, self).execute_complete(context, event)

    def _approve(self, shown: Mapping[str, Any] | None) -> None:
        diff = waiting_diff(self.hook, self.pipeline_name, self.timeout)
        if diff is None:
            # Somebody approved it elsewhere, or this is a second try after the approval went through.
            self.log.info("Nothing waits for approval on pipeline %s any more", self.pipeline_name)
            return
        if diff != shown:
            raise AirflowFailException(
                f"What was approved no longer waits on pipeline {self.pipeline_name!r}; nothing was done. "
                f"What waits now:\n{diff_text(diff)}"
            )
        self.hook.approve(self.pipeline_name)


def waiting_diff(hook: PipelineHook, name: str, timeout_s: float) -> dict[str, Any] | None:
    """The change that waits for approval on a pipeline, None when none does. A pipeline that is still starting is waited for.

    Args:
        hook: the hook.
        name: the pipeline's name.
        timeout_s: seconds to wait for a pipeline that is still starting.

    Raises:
        PipelineFailedError: there is no such pipeline, or it is not running at all.
        PipelineTimeoutError: it did not come up in time.
    """
    found = hook.wait(name, StartedCondition(_SETTLED), timeout_s=timeout_s, poll_interval_s=1.0)
    return hook.approval_diff(name) if found["status"] == PipelineStatus.AWAITINGAPPROVAL.name else None


def approval_xcom(name: str, status: str, diff: Mapping[str, Any] | None, *, approved: bool | None = None) -> dict[str, Any]:
    """The result of both operators."""
    return {
        "pipeline": name,
        "approved": diff is not None if approved is None else approved,
        "status": status,
        "diff": None if diff is None else dict(diff),
        "diff_text": "" if diff is None else diff_text(diff),
    }


def stored_request_body(context: Context, operator: ApprovalOperator) -> str | None:
    """The text that Airflow keeps for a task instance's request, None where this Airflow does not tell.

    Airflow's helper that writes a request throws away the reply, which holds what is kept; so the request is written once more
    with the message itself. These modules are Airflow's own and may change: without them the check is left out.
    """
    try:
        from airflow.sdk.api.datamodels._generated import HITLUser
        from airflow.sdk.execution_time.comms import CreateHITLDetailPayload
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS
    except ImportError:
        return None
    reply = SUPERVISOR_COMMS.send(
        CreateHITLDetailPayload(
            ti_id=context["ti"].id,
            options=operator.options,
            subject=operator.subject,
            body=operator.body,
            defaults=operator.defaults,
            multiple=operator.multiple,
            params=operator.serialized_params,
            assigned_users=[HITLUser(id=user["id"], name=user["name"]) for user in operator.assigned_users or ()],
        )
    )
    return cast("str | None", getattr(reply, "body", None))
