"""Sensors on a pipeline's status, and on its progress with its input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions import (
    ApprovalCondition,
    CompletionCondition,
    Condition,
    IdleCondition,
    StatusCondition,
    TokenCondition,
)
from airflow_pipelines.operators import arguments
from airflow_pipelines.sensors.base import PipelineSensor


class PipelineStatusSensor(PipelineSensor):
    """The sensor that waits until the pipeline has one of some statuses. XCom: ``{"status"}``.

    A status that can no longer come fails the wait in three cases. The pipeline went down with an error. Somebody stopped it while
    a status of a running pipeline was awaited. It has started already and only statuses of the start are awaited. A pipeline that
    was down from the beginning may still be started by somebody.

    :param status: a status, or several: names such as ``RUNNING`` or members of PipelineStatus
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "status")

    def __init__(self, *, status: str | PipelineStatus | Sequence[str | PipelineStatus], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.status = status
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.status = arguments.statuses("status", self.status)

    def condition(self) -> Condition:
        """Return the condition on the status."""
        return StatusCondition(arguments.statuses("status", self.status))


class PipelineCompletionTokenSensor(PipelineSensor):
    """The sensor that waits until everything a completion token covers is processed and delivered.

    XCom: ``{"status", "step", "durable"}``.

    With the fault tolerance ``exactly_once`` the rows then survive a kill of the pipeline. With ``none`` and ``at_least_once``
    pushed rows are lost if it is killed before its next checkpoint, unless ``checkpoint`` is set; ``durable`` is True if they
    survive.

    :param token: the token, usually ``"{{ ti.xcom_pull('push_rows')['token'] }}"`` or the ``.output`` of a task that returns it
    :param checkpoint: True to wait until a kill cannot lose the rows; a checkpoint is taken if that is needed
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "token")

    def __init__(self, *, token: str, checkpoint: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.token = token
        self.checkpoint = checkpoint
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.token = arguments.text("token", self.token)

    def condition(self) -> Condition:
        """Return the condition on the token."""
        return TokenCondition(self.token, self.checkpoint)


class PipelineIdleSensor(PipelineSensor):
    """The sensor that waits until no record came in for a while and all that came in is processed.

    XCom: the counters of records and steps.

    :param idle_interval_s: the seconds without new input
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "idle_interval_s")

    def __init__(self, *, idle_interval_s: float | str = 5.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.idle_interval_s = idle_interval_s
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.idle_interval_s = arguments.number("idle_interval_s", self.idle_interval_s, least=0)

    def condition(self) -> Condition:
        """Return the condition on idleness."""
        return IdleCondition(float(self.idle_interval_s))


class PipelineCompletionSensor(PipelineSensor):
    """The sensor that waits until every input connector reached its end and all of it is processed and delivered.

    XCom: the counters.

    A pipeline with a connector that never ends, such as one that follows a folder, never completes: give a ``timeout``, or wait
    for one connector with :class:`~airflow_pipelines.sensors.inputs.PipelineConnectorEndSensor`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.complete_construction()

    def condition(self) -> Condition:
        """Return the condition on completion."""
        return CompletionCondition()


class PipelineApprovalSensor(PipelineSensor):
    """The sensor that waits until a changed program waits for approval, however long the pipeline runs or is stopped until then.

    XCom: ``{"status", "diff", "programs", "views_evaluated_anew"}``, the last three as for StartPipelineOperator.
    ApprovePipelineOperator takes ``programs`` as ``expected_programs``.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.complete_construction()

    def condition(self) -> Condition:
        """Return the condition on a pending change."""
        return ApprovalCondition()
