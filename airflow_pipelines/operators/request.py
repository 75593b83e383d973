"""What Airflow's Required Actions show to people about a pipeline, and what people answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context


REVIEW_KEY: Final = "review"
"""The key of the XCom in which a task says which change it waits with."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered to a request.

    :param approved: whether it was approved
    :param decided_by: who did it; None when nobody did and the time was up
    """

    approved: bool
    decided_by: str | None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Answer:
        """Read the answer as Airflow gives it to the operator."""
        user = answer.get("responded_by_user") or {}
        return cls(answer["chosen_options"][0] == ApprovalOperator.APPROVE, user.get("name"))


def write_request(operator: ApprovalOperator, pipeline: str, shown: str, fingerprint: str) -> None:
    """Set what people will read.

    :param operator: the operator that asks
    :param pipeline: the pipeline that it asks about
    :param shown: what it asks, in Markdown
    :param fingerprint: a text that is the same only for the same question; it becomes part of what people read
    """
    operator.subject = f"Pipeline {pipeline}: {operator.subject}"
    note = f"{operator.body}\n\n" if operator.body else ""
    operator.body = f"{note}{shown}\n\n{_mark(fingerprint)}"


def check_request(context: Context, operator: ApprovalOperator, fingerprint: str) -> None:
    """Make sure that people read this question. Airflow keeps a request's text as it was at the task instance's first try.

    :param context: the task's context
    :param operator: the operator that asked
    :param fingerprint: the fingerprint that the request was written with
    :raises AirflowFailException: people read another question
    """
    stored = stored_request_body(context, operator)
    if stored is not None and _mark(fingerprint) not in stored:
        raise AirflowFailException(
            "The request that people see was written for another change, and Airflow does not let it be replaced: "
            "start a new DAG run, so that this change is shown"
        )


def stored_request_body(context: Context, operator: ApprovalOperator) -> str | None:
    """The text that Airflow keeps for a task instance's request, None where this Airflow does not tell.

    Airflow's helper that writes a request throws away the reply, which holds what is kept; so the request is written once more
    with the message itself. These modules are Airflow's own and may change: without them the check is left out.

    :param context: the task's context
    :param operator: the operator that asked
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
