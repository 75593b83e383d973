"""The requests about a pipeline in Airflow's Required Actions, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context


REVIEW_KEY: Final = "review"
"""The key of the XCom with the change for which a task waits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request.

    :param approved: True if it was approved
    :param decided_by: the person who answered; None if nobody did and the time was up
    """

    approved: bool
    decided_by: str | None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Answer:
        """Parse the answer that Airflow passes to the operator."""
        user = answer.get("responded_by_user") or {}
        return cls(answer["chosen_options"][0] == ApprovalOperator.APPROVE, user.get("name"))


def write_request(operator: ApprovalOperator, pipeline: str, shown: str, fingerprint: str) -> None:
    """Set the subject and body of a request.

    :param operator: the operator that makes the request
    :param pipeline: the pipeline that the request is about
    :param shown: the question, in Markdown
    :param fingerprint: a text that identifies the question; it becomes part of the body
    """
    operator.subject = f"Pipeline {pipeline}: {operator.subject}"
    note = f"{operator.body}\n\n" if operator.body else ""
    operator.body = f"{note}{shown}\n\n{_mark(fingerprint)}"


def check_request(context: Context, operator: ApprovalOperator, fingerprint: str) -> None:
    """Check that the stored request asks this question. Airflow keeps a request's text from the task instance's first try.

    :param context: the task's context
    :param operator: the operator that made the request
    :param fingerprint: the fingerprint that the request was written with
    :raises AirflowFailException: if the stored request asks another question
    """
    stored = stored_request_body(context, operator)
    if stored is not None and _mark(fingerprint) not in stored:
        raise AirflowFailException(
            "The request that people see was written for another change, and Airflow does not let it be replaced: "
            "start a new DAG run, so that this change is shown"
        )


def stored_request_body(context: Context, operator: ApprovalOperator) -> str | None:
    """Return the text that Airflow keeps for a task instance's request, or None if this version of Airflow does not provide it.

    Airflow's helper that writes a request drops the reply, which has the stored text. So the request is written once more with the
    message itself. These modules are internal to Airflow and may change: if they are missing, the check is skipped.

    :param context: the task's context
    :param operator: the operator that made the request
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


def _mark(fingerprint: str) -> str:
    return f"change `{fingerprint}`"
