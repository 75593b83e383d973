"""The base class of sensors: poking, rescheduling and deferring use the same conditions, so every mode gives the same answer."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferralTimeout,
)
from airflow.triggers.base import StartTriggerArgs

from airflow_pipelines.hooks.conditions import Condition, PollOutcome, is_stopped_on_purpose, is_transient
from airflow_pipelines.hooks.configuration import first_delay_s, is_deferrable, outage_budget_s
from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID, PipelineHook
from airflow_pipelines.hooks.wait_log import WaitLog
from airflow_pipelines.hooks.wait_metrics import WaitOutcome, wait_ended
from airflow_pipelines.hooks.waiting import Wait
from airflow_pipelines.links.pipeline import PipelineLink
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.dag_test import end_task_of_dag_test
from airflow_pipelines.operators.outlets import tell_outlets
from airflow_pipelines.sdk.errors import PipelineConnectionError, PipelinesError
from airflow_pipelines.triggers.pipeline import (
    PipelineTrigger,
    StoppedOnPurposeError,
    UnseenTimeoutError,
    backstop,
    sensor_result_of,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

_WAIT_KEY = "airflow_pipelines.wait"


class PipelineSensor(BaseSensorOperator):
    """The base class of sensors that wait until a condition holds on a pipeline.

    A pipeline that fails, or a wait that cannot succeed any more, fails the task at once and without retries, with the deployment
    error and the host's last log lines. If the service is away, the sensor waits for it for up to ``[airflow_pipelines]
    outage_budget`` seconds. With ``soft_fail`` the task is skipped if somebody has stopped the pipeline, and if the time is up
    while the pipeline was visible. It still fails if the pipeline has failed or does not exist, if the service refuses or is away,
    and if an argument is wrong. Clearing or killing the task leaves the pipeline as it is. XCom: the result of the condition, a
    small JSON object. The assets in ``outlets`` get its figures as ``extra``.

    :param pipeline_name: the pipeline
    :param pipeline_conn_id: the Airflow connection
    :param deferrable: True to wait in the triggerer; default ``[operators] default_deferrable``
    :param poke_interval: seconds between polls
    :param timeout: maximum seconds to wait, in every mode
    :param start_from_trigger: True to begin in the triggerer, so that no worker is needed until the wait is over. It needs
        arguments without templates, and does not support mapped tasks
    """

    template_fields: Sequence[str] = ("pipeline_name", "pipeline_conn_id")
    operator_extra_links = (PipelineLink(),)
    ui_color = "#dcefe4"

    def __init__(
        self,
        *,
        pipeline_name: str,
        pipeline_conn_id: str = DEFAULT_CONN_ID,
        deferrable: bool | None = None,
        poke_interval: float | timedelta = 10.0,
        start_from_trigger: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.pipeline_name = pipeline_name
        self.pipeline_conn_id = pipeline_conn_id
        self.deferrable = is_deferrable(deferrable)
        self.start_from_trigger = start_from_trigger

    def complete_construction(self) -> None:
        """Complete the construction. The constructor of each sensor calls it last, after all arguments are set.

        :raises ValueError: if the wait starts in the triggerer, and its condition cannot be built yet
        """
        if self.start_from_trigger:
            self.start_trigger_args = self._start_trigger_args()

    @cached_property
    def hook(self) -> PipelineHook:
        """The hook for the connection."""
        return PipelineHook(self.pipeline_conn_id)

    def check_arguments(self) -> None:
        """Validate the rendered arguments, and replace texts by the values that they stand for. Overriding methods call this one.

        :raises AirflowFailException: if an argument is invalid; the message has its name
        """
        self.pipeline_name = arguments.text("pipeline_name", self.pipeline_name)
        self.pipeline_conn_id = arguments.text("pipeline_conn_id", self.pipeline_conn_id)

    def condition(self) -> Condition:
        """Return the condition of this sensor, from its rendered and checked fields."""
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        """Check the arguments and wait. The error of a timeout has the goal and the last observation."""
        self.check_arguments()
        try:
            result = self._wait_and_count(context)
        except AirflowSensorTimeout as error:
            raise AirflowSensorTimeout(f"{self._wait.subject}: {error} Last seen: {self._wait.last_seen}") from error
        except (AirflowNotFoundException, ValueError) as error:
            raise AirflowFailException(str(error)) from error
        tell_outlets(self, context, self.pipeline_name, result)
        return result

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Continue after the triggerer's wait; ``soft_fail`` has the same meaning as in a worker."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except AirflowSkipException as skip:
            raise self._choose_error(skip) from skip

    def _wait_and_count(self, context: Context) -> Any:
        """Wait, and count the outcome unless the wait continues elsewhere or later."""
        since = self._since(context)
        try:
            result = super().execute(context)
        except (AirflowSensorTimeout, AirflowFailException, AirflowSkipException) as error:
            # With soft_fail a task is skipped because of a failure, which is the cause then, or because the time is up.
            cause = error.__cause__ if isinstance(error, AirflowSkipException) else error
            timed_out = not isinstance(cause, AirflowFailException)
            wait_ended(self._wait.condition.kind, WaitOutcome.TIMEOUT if timed_out else WaitOutcome.FAILED, time.time() - since)
            if isinstance(error, AirflowSkipException):
                raise self._choose_error(error) from error
            raise
        wait_ended(self._wait.condition.kind, WaitOutcome.REACHED, time.time() - since)
        return result

    def _choose_error(self, skip: AirflowSkipException) -> Exception:
        """Choose the error if Airflow wants to skip the task: the skip with its reason, or the failure that must not skip it.

        :param skip: the exception of Airflow's own sensor; its cause is the failure, none if the time was up in a worker
        """
        failure = skip.__cause__
        if not isinstance(failure, Exception):
            if self._wait.away_since is not None:
                return UnseenTimeoutError(str(skip))
            failure = AirflowSensorTimeout(f"{self._wait.subject}: {skip} Last seen: {self._wait.last_seen}")
        # No triggerer has worked on a deferral that Airflow itself had to end.
        was_seen = not isinstance(failure, UnseenTimeoutError) and not isinstance(failure.__cause__, TaskDeferralTimeout)
        if (
            self.never_fail
            or isinstance(failure, StoppedOnPurposeError)
            or (isinstance(failure, AirflowSensorTimeout) and was_seen)
        ):
            self.log.warning("This task is skipped: %s", failure)
            return AirflowSkipException(str(failure))
        return failure

    def _since(self, context: Context) -> float:
        """Return the start of the wait, which with rescheduling was in another process."""
        first: datetime | None = context["ti"].get_first_reschedule_date(context) if self.reschedule and "ti" in context else None
        return time.time() if first is None else first.timestamp()

    def poke(self, context: Context) -> PokeReturnValue | bool:
        """Poll once. If the condition does not hold yet, a deferrable sensor defers here; otherwise the base class polls again."""
        wait = self._wait
        if self.reschedule:
            earlier = context["task_state_store"].get(_WAIT_KEY)
            if isinstance(earlier, dict):
                wait.go_on_from(earlier)
        try:
            verdict = wait.evaluate(self.hook.observe(self.pipeline_name, wait.condition))
        except PipelineConnectionError as error:
            wait.poll_failed(error, time.time())
        except PipelinesError as error:
            if not is_transient(error):
                raise AirflowFailException(f"{wait.subject}: {error}") from error
            wait.poll_failed(error, time.time())
        else:
            if verdict.outcome is PollOutcome.REACHED:
                return PokeReturnValue(is_done=True, xcom_value=verdict.result)
            if verdict.outcome is PollOutcome.FAILED:
                failure = StoppedOnPurposeError if is_stopped_on_purpose(verdict.result) else AirflowFailException
                raise failure(str(wait.failure(verdict)))
        if self.reschedule:
            context["task_state_store"].set(_WAIT_KEY, wait.to_json())
        if self.deferrable:
            self._defer(wait)
        return False

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the trigger's event."""
        result = sensor_result_of(event)
        tell_outlets(self, context, self.pipeline_name, result)
        return result

    def on_kill(self) -> None:
        """Log that the wait ends, because the task was cleared or marked. The pipeline is left as it is."""
        self.log.info("No longer waiting on pipeline %s; it is left as it is", self.pipeline_name)
        end_task_of_dag_test()

    @cached_property
    def _wait(self) -> Wait:
        return Wait(self.pipeline_name, self.condition(), outage_budget_s=outage_budget_s(), story=WaitLog(self.log))

    def _defer(self, wait: Wait) -> NoReturn:
        memory = dict(wait.memory) if wait.memory else None
        self.defer(
            trigger=self._trigger(
                wait.condition, first_delay_s=first_delay_s(), deadline=time.time() + self.timeout, memory=memory
            ),
            method_name="execute_complete",
            timeout=backstop(self.timeout),
        )

    def _trigger(
        self, condition: Condition, *, first_delay_s: float, deadline: float | None, memory: dict[str, Any] | None
    ) -> PipelineTrigger:
        return PipelineTrigger(
            pipeline_name=self.pipeline_name,
            condition=condition.to_wire(),
            pipeline_conn_id=self.pipeline_conn_id,
            poll_interval_s=self.poke_interval,
            first_delay_s=first_delay_s,
            deadline=deadline,
            outage_budget_s=outage_budget_s(),
            memory=memory,
        )

    def _start_trigger_args(self) -> StartTriggerArgs:
        """Return the arguments from which Airflow makes the trigger without the task."""
        if self.execution_timeout is not None:
            raise ValueError(
                f"task {self.task_id!r}: a wait that starts in the triggerer is limited by timeout, not execution_timeout"
            )
        try:
            self.check_arguments()
            condition = self.condition()
        except (AirflowFailException, TypeError, ValueError) as error:
            raise ValueError(f"task {self.task_id!r}, whose wait starts in the triggerer: {error}") from error
        # No worker is about to leave the task, so there is nothing to wait for before the first poll. The trigger takes its
        # deadline from Airflow's limit, which counts from when the task starts.
        path, kwargs = self._trigger(condition, first_delay_s=0.0, deadline=None, memory=None).serialize()
        if any(mark in json.dumps(kwargs) for mark in ("{{", "{%")):
            raise ValueError(f"task {self.task_id!r}: a wait that starts in the triggerer takes no templates")
        return StartTriggerArgs(
            trigger_cls=path, trigger_kwargs=kwargs, next_method="execute_complete", timeout=backstop(self.timeout)
        )
