"""Operators that approve a changed program: by the DAG itself, or after a person has seen the change and agreed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from airflow_pipelines.contract.change_text import change_markdown, change_text, diff_text
from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.hooks.conditions import StartedCondition, StatusCondition
from airflow_pipelines.hooks.configuration import is_deferrable
from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID, PipelineHook
from airflow_pipelines.links.pipeline import PipelineChangeLink, PipelineLink
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import WaitingPipelineOperator, airflow_errors
from airflow_pipelines.operators.dag_test import await_answer, end_task_of_dag_test
from airflow_pipelines.operators.diff import change_fingerprint, change_xcom, review_xcom
from airflow_pipelines.operators.request import REVIEW_KEY, Answer, check_request, write_request
from airflow_pipelines.operators.task_memory import TaskMemory
from airflow_pipelines.operators.waiting import reached_or_deferred
from airflow_pipelines.sdk.approval import NOT_GIVEN
from airflow_pipelines.sdk.errors import PipelineAPIError
from airflow_pipelines.triggers.pipeline import result_of

if TYPE_CHECKING:
    from airflow.sdk import Context

_UP = (PipelineStatus.RUNNING.name, PipelineStatus.PAUSED.name)
_SETTLED = (
    *_UP,
    PipelineStatus.AWAITINGAPPROVAL.name,
    # These follow the approval.
    PipelineStatus.BOOTSTRAPPING.name,
    PipelineStatus.REPLAYING.name,
)
_ON_REJECT = ("stop", "leave")
_APPROVAL = "approval"
"""The key of the approval in the task's memory."""


class ApprovePipelineOperator(WaitingPipelineOperator):
    """The operator that approves the pending change of a pipeline, and waits until the pipeline runs.

    If the pipeline was started as paused, it waits until it is paused.

    The change is written to the log and to the XCom before it is approved. With ``expected_programs`` only the change from that
    saved program to that new one is approved, with ``expected_diff`` only exactly that difference. Give them the values that an
    earlier task returned, such as StartPipelineOperator: then the program that a person approved is the one that runs, or nothing
    is approved. Without them any pending change is approved. An expectation that is given but empty (a template that found nothing)
    fails the task if a change is pending. A pipeline without a pending change is left alone.

    XCom: ``{"pipeline", "approved", "status", "diff", "diff_text", "programs", "views_evaluated_anew"}``.

    :param expected_diff: the difference to approve
    :param expected_programs: hash and version of the two programs to approve the change between
    """

    operator_extra_links = (PipelineLink(), PipelineChangeLink())
    template_fields: Sequence[str] = (*WaitingPipelineOperator.template_fields, "expected_diff", "expected_programs")
    template_fields_renderers = {"expected_diff": "json", "expected_programs": "json"}

    def __init__(self, *, expected_diff: Any = NOT_GIVEN, expected_programs: Any = NOT_GIVEN, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Template fields must be values that Airflow can store, so separate flags say that they were given.
        self.expects_diff = expected_diff is not NOT_GIVEN
        self.expects_programs = expected_programs is not NOT_GIVEN
        self.expected_diff = expected_diff if self.expects_diff else None
        self.expected_programs = expected_programs if self.expects_programs else None

    def act(self, context: Context) -> Any:
        """Show, compare and approve the change, then wait."""
        change = waiting_change(self.hook, self.pipeline_name, self.timeout)
        if change is not None:
            self.log.info("Approving on pipeline %s:\n%s", self.pipeline_name, change_text(change))
            self._approve(change)
        else:
            self.log.info("Nothing waits for approval on pipeline %s", self.pipeline_name)
        return self.wait_and_finish(context, StartedCondition(_UP), change=change_xcom(change))

    def _approve(self, change: PendingChange) -> None:
        if self.expects_diff:
            expected = self._parse_expectation("expected_diff", self.expected_diff)
            if expected != change.diff:
                raise AirflowFailException(
                    f"The change that waits on pipeline {self.pipeline_name!r} is not the expected one. It is:\n"
                    f"{diff_text(change.diff)}\nExpected was:\n{diff_text(expected)}"
                )
        if self.expects_programs:
            self.hook.approve(self.pipeline_name, self._parse_expectation("expected_programs", self.expected_programs))
        elif change.programs:
            # With the programs, only the change that was shown and compared here is approved, and not a later one.
            self.hook.approve(self.pipeline_name, change.programs)
        else:
            self.hook.approve(self.pipeline_name)

    def _parse_expectation(self, name: str, value: Any) -> dict[str, Any]:
        """Parse the rendered value of a template (text) or an XComArg (an object)."""
        try:
            expected = json.loads(value) if isinstance(value, str) else value
        except ValueError as error:
            raise AirflowFailException(f"{name} is no JSON ({error}): it is {value!r}") from error
        if not expected or not isinstance(expected, dict):
            raise AirflowFailException(
                f"{name} is {value!r}, but a change waits on pipeline {self.pipeline_name!r}; nothing was approved. Give it what "
                "the task that started the pipeline returned, or leave it out to approve whatever waits"
            )
        return expected

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the approved change."""
        return approval_xcom(self.pipeline_name, outcome["status"], carried["change"])


class ReviewPipelineChangeOperator(ApprovalOperator):  # type: ignore[misc,unused-ignore]
    """The operator that asks a person about a pipeline's pending change, in Airflow's Required Actions, and acts on the answer.

    The request for a decision takes neither a worker nor the triggerer. On approval the change that was shown is approved and, once
    the pipeline runs, the task succeeds. If another change is pending by then, the task fails and nothing is approved. On rejection
    the pipeline is stopped (its checkpoint is kept) and tasks downstream are skipped. A pipeline without a pending change asks
    nobody.

    Airflow keeps the text of a request from the task instance's first try. If the task is cleared after the change has changed, the
    person would see the old text. The task detects this and fails: start a new DAG run for a new change. A task that is retried
    after the approval (the pipeline took longer than ``timeout``, the worker was lost) continues with it and asks nobody.

    XCom: ``{"pipeline", "approved", "status", "diff", "diff_text", "programs", "views_evaluated_anew"}``, and ``decided_by`` if a
    person decided.

    :param pipeline_name: the pipeline
    :param pipeline_conn_id: the Airflow connection
    :param on_reject: ``stop`` the pipeline, or ``leave`` it waiting
    :param deferrable: True to wait for the pipeline after the approval in the triggerer; default ``[operators] default_deferrable``
    :param timeout: seconds to wait for the pipeline after the approval
    :param poke_interval: seconds between polls after the approval
    :param kwargs: arguments of ApprovalOperator, such as ``assigned_users``, ``notifiers``, ``response_timeout`` and ``defaults``
    """

    operator_extra_links = (PipelineLink(), PipelineChangeLink())
    template_fields: Sequence[str] = ("subject", "body", "pipeline_name", "pipeline_conn_id", "on_reject")

    def __init__(
        self,
        *,
        pipeline_name: str,
        pipeline_conn_id: str = DEFAULT_CONN_ID,
        on_reject: str = "stop",
        deferrable: bool | None = None,
        timeout: float = 600.0,
        poke_interval: float = 1.0,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("subject", "Approve the change of a pipeline")
        super().__init__(**kwargs)
        arguments.refuse_when_parsed(arguments.choice, "on_reject", on_reject, _ON_REJECT)
        self.pipeline_name = pipeline_name
        self.pipeline_conn_id = pipeline_conn_id
        self.on_reject = on_reject
        self.deferrable = is_deferrable(deferrable)
        self.timeout = timeout
        self.poke_interval = poke_interval

    @cached_property
    def hook(self) -> PipelineHook:
        """The hook for the connection."""
        return PipelineHook(self.pipeline_conn_id)

    def on_kill(self) -> None:
        """Log that the pipeline keeps waiting, because the task was cleared or marked."""
        self.log.info("The task ends, pipeline %s is left as it is", self.pipeline_name)
        end_task_of_dag_test()

    def check_arguments(self) -> None:
        """Validate the rendered arguments.

        :raises AirflowFailException: if an argument is invalid; the message has its name
        """
        self.pipeline_name = arguments.text("pipeline_name", self.pipeline_name)
        self.pipeline_conn_id = arguments.text("pipeline_conn_id", self.pipeline_conn_id)
        self.on_reject = arguments.choice("on_reject", self.on_reject, _ON_REJECT)

    def execute(self, context: Context) -> Any:
        """Ask for a decision if a change is pending, or continue with the approval of an earlier try."""
        self.check_arguments()
        with airflow_errors():
            change = waiting_change(self.hook, self.pipeline_name, self.timeout)
            remembered = TaskMemory(context).recall(_APPROVAL)
            if remembered is not None and (change is None or _is_shown(change, remembered)):
                self.log.info("This change was approved already, going on with it")
                return self._approve(context, remembered)
            if change is None:
                self.log.info("Nothing waits for approval on pipeline %s", self.pipeline_name)
                return approval_xcom(self.pipeline_name, self.hook.status(self.pipeline_name).name, change_xcom(None))
        self.log.info("Asking for the approval of:\n%s", change_text(change))
        fingerprint = change_fingerprint(change)
        write_request(self, self.pipeline_name, change_markdown(change), fingerprint)
        review = review_xcom(self.pipeline_name, self.pipeline_conn_id, change, planned=False)
        context["ti"].xcom_push(key=REVIEW_KEY, value=review)
        try:
            return super().execute(context)
        except TaskAwaitingInput as wait:
            check_request(context, self, fingerprint)
            # The task continues in another process, so the change that was shown is passed on.
            wait.kwargs = {"shown": change_xcom(change)}
            return await_answer(context, self, wait)

    def execute_complete(self, context: Context, event: dict[str, Any], shown: dict[str, Any] | None = None) -> Any:
        """Carry out the decision of the person.

        :param context: the task's context
        :param event: the person's answer, in Airflow's form
        :param shown: the change that the person saw, as :func:`change_xcom` returns it
        :returns: the XCom
        :raises AirflowFailException: if another change is pending than the one that was shown
        """
        # The validated answer, without the skip of the base class.
        answer = Answer.of(super(ApprovalOperator, self).execute_complete(context, event))
        decided = {**(shown or change_xcom(None)), "decided_by": answer.decided_by}
        if answer.approved:
            # Stored before anything else, because a retry finds the answer nowhere else.
            TaskMemory(context).remember(_APPROVAL, decided)
        with airflow_errors():
            self.check_arguments()
            if answer.approved:
                return self._approve(context, decided)
            if self.on_reject == "stop":
                # Nothing is lost: the checkpoint of the start is kept, and a pipeline that runs after all takes a new one.
                self.hook.stop(self.pipeline_name)
                stopped = StatusCondition((PipelineStatus.STOPPED.name,))
                self.hook.wait(self.pipeline_name, stopped, timeout_s=self.timeout, poll_interval_s=self.poke_interval)
            result = self._xcom(self.hook.status(self.pipeline_name).name, decided, approved=False)
        # The base class drops the result of a rejected task, so it is pushed before.
        context["ti"].xcom_push(key="decision", value=result)
        super().execute_complete(context, event)
        return result

    def approved(self, context: Context, event: dict[str, Any] | None = None, decided: dict[str, Any] | None = None) -> Any:
        """Continue after the triggerer's wait for the pipeline.

        :param context: the task's context
        :param event: the event of the trigger
        :param decided: the change that was shown, as :func:`change_xcom` returns it, and ``decided_by``
        :returns: the XCom
        """
        with airflow_errors():
            self.check_arguments()
            return self._finish_approval(context, result_of(event), decided or change_xcom(None))

    def _approve(self, context: Context, decided: dict[str, Any]) -> Any:
        """Approve the change that was shown, and wait for the pipeline."""
        change = waiting_change(self.hook, self.pipeline_name, self.timeout)
        if change is None:
            # Somebody approved it elsewhere, or this is a second try after the approval went through.
            self.log.info("Nothing waits for approval on pipeline %s any more", self.pipeline_name)
        elif not _is_shown(change, decided):
            TaskMemory(context).forget(_APPROVAL)
            raise AirflowFailException(
                f"What was approved no longer waits on pipeline {self.pipeline_name!r}; nothing was done. "
                f"What waits now:\n{change_text(change)}"
            )
        try:
            if decided.get("programs"):
                # The service compares the programs again, also if no change is pending, because another program may run by now.
                self.hook.approve(self.pipeline_name, decided["programs"])
            elif change is not None:
                self.hook.approve(self.pipeline_name)
        except PipelineAPIError as error:
            if error.error_code == ErrorCode.UNEXPECTED_PROGRAM:
                TaskMemory(context).forget(_APPROVAL)
            raise
        outcome = reached_or_deferred(self, StartedCondition(_UP), method_name="approved", kwargs={"decided": decided})
        return self._finish_approval(context, outcome, decided)

    def _finish_approval(self, context: Context, outcome: dict[str, Any], decided: dict[str, Any]) -> dict[str, Any]:
        TaskMemory(context).forget(_APPROVAL)
        return self._xcom(outcome["status"], decided, approved=True)

    def _xcom(self, status: str, decided: dict[str, Any], *, approved: bool) -> dict[str, Any]:
        return approval_xcom(self.pipeline_name, status, decided, approved=approved)


def _is_shown(change: PendingChange, shown: Mapping[str, Any]) -> bool:
    """Return True if the pending change is the one that a person saw."""
    return (change.diff, change.programs) == (shown.get("diff"), shown.get("programs"))


def waiting_change(hook: PipelineHook, name: str, timeout_s: float) -> PendingChange | None:
    """Return the change that waits for approval on a pipeline, or None if there is none.

    A pipeline that is still starting is waited for.

    :param hook: the hook
    :param name: the pipeline's name
    :param timeout_s: seconds to wait for a pipeline that is still starting
    :raises PipelineFailedError: if there is no such pipeline, or it is not running at all
    :raises PipelineTimeoutError: if it did not come up in time
    """
    outcome = hook.wait(name, StartedCondition(_SETTLED), timeout_s=timeout_s, poll_interval_s=1.0)
    return hook.pending_change(name) if outcome["status"] == PipelineStatus.AWAITINGAPPROVAL.name else None


def approval_xcom(name: str, status: str, change: dict[str, Any], *, approved: bool | None = None) -> dict[str, Any]:
    """Return the XCom of both operators.

    :param name: the pipeline's name
    :param status: the pipeline's status
    :param change: the change, as :func:`change_xcom` returns it
    :param approved: True if the change was approved; None means that it was if there was one
    """
    diff = change["diff"]
    return {
        "pipeline": name,
        "approved": diff is not None if approved is None else approved,
        "status": status,
        "diff_text": "" if diff is None else diff_text(diff),
        **change,
    }
