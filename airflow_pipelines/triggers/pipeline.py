"""The trigger for every wait on a pipeline, and the translation of its event for the task that waited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException, AirflowSensorTimeout
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_pipelines.common.pins import SetupError
from airflow_pipelines.hooks.conditions import Condition, PollOutcome, is_stopped_on_purpose
from airflow_pipelines.hooks.observing import observe_async
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.hooks.wait_log import WaitLog
from airflow_pipelines.hooks.wait_metrics import WaitOutcome, wait_ended
from airflow_pipelines.hooks.waiting import Wait, add_jitter, spread
from airflow_pipelines.sdk.errors import PipelineConnectionError, PipelinesError, PipelineTimeoutError

_BACKSTOP = timedelta(seconds=60)
_AWAY = "service_is_away"


class StoppedOnPurposeError(AirflowFailException):
    """The error for a wait that cannot succeed because somebody has stopped the pipeline, without a failure."""


class UnseenTimeoutError(AirflowSensorTimeout):
    """The error for a wait whose time was up while the service was away, so that the state of the pipeline is unknown."""


class PipelineTrigger(BaseTrigger):
    """The trigger that polls a pipeline until a condition holds, cannot hold any more, or the time is up.

    It never changes a pipeline.

    It sleeps before the first poll, because the task has just polled, and because an event that comes while the worker is still
    leaving the deferred task can make Airflow fail the task. Waits that begin together poll at different times, and all waits of a
    triggerer on one connection share one client.

    :param pipeline_name: the pipeline
    :param condition: the condition in wire form
    :param pipeline_conn_id: the connection's id; the connection itself is read in the triggerer
    :param poll_interval_s: seconds between polls; up to a fifth is added at random
    :param first_delay_s: seconds before the first poll; up to ``poll_interval_s`` is added at random
    :param deadline: the time after which the wait fails, in seconds since the epoch. None: shortly before Airflow ends the wait,
        and never if that has no limit
    :param outage_budget_s: seconds for which the service may be away
    :param memory: the memory of the condition from the task's own poll
    """

    def __init__(
        self,
        *,
        pipeline_name: str,
        condition: dict[str, Any],
        pipeline_conn_id: str,
        poll_interval_s: float,
        first_delay_s: float,
        deadline: float | None,
        outage_budget_s: float,
        memory: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline_name = pipeline_name
        self.condition = condition
        self.pipeline_conn_id = pipeline_conn_id
        self.poll_interval_s = poll_interval_s
        self.first_delay_s = first_delay_s
        self.deadline = deadline
        self.outage_budget_s = outage_budget_s
        self.memory = memory

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments to make the trigger again."""
        names = (
            "pipeline_name",
            "condition",
            "pipeline_conn_id",
            "poll_interval_s",
            "first_delay_s",
            "deadline",
            "outage_budget_s",
            "memory",
        )
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll and yield exactly one event: ``{"outcome", "message", "result"}``."""
        condition = Condition.from_wire(self.condition)
        wait = Wait(self.pipeline_name, condition, self._deadline(), self.outage_budget_s, self.memory, story=WaitLog(self.log))
        since = time.monotonic()
        await asyncio.sleep(self.first_delay_s + spread(self.poll_interval_s))
        try:
            event = await self._event(wait)
        except PipelineTimeoutError as error:
            event = _event(WaitOutcome.TIMEOUT, str(error), {_AWAY: True} if wait.away_since is not None else None)
        except PipelineConnectionError as error:
            event = _event(WaitOutcome.UNREACHABLE, str(error))
        except (PipelinesError, AirflowNotFoundException, SetupError, ValueError) as error:
            event = _event(WaitOutcome.ERROR, f"{wait.subject}: {error}")
        wait_ended(condition.kind, WaitOutcome(event["outcome"]), time.monotonic() - since)
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Log that nobody waits any more, because a person cleared or marked the waiting task. The pipeline continues."""
        self.log.info("No longer waiting on pipeline %s; it is left as it is", self.pipeline_name)

    def _deadline(self) -> float | None:
        if self.deadline is not None:
            return self.deadline
        # Airflow's own limit, which the triggerer sets before it runs a trigger. A restart of the triggerer does not move it.
        limit: datetime | None = getattr(self, "timeout_after", None)
        return None if limit is None else (limit - _BACKSTOP).timestamp()

    async def _event(self, wait: Wait) -> dict[str, Any]:
        hook = PipelineHook(self.pipeline_conn_id)
        while True:
            try:
                async with hook.shared_async_conn() as client:
                    verdict = wait.evaluate(await observe_async(client, self.pipeline_name, wait.condition))
            except PipelinesError as error:
                wait.poll_failed(error, time.time())
            else:
                if verdict.outcome is PollOutcome.REACHED:
                    return _event(WaitOutcome.REACHED, verdict.message, verdict.result)
                if verdict.outcome is PollOutcome.FAILED:
                    return _event(WaitOutcome.FAILED, str(wait.failure(verdict)), verdict.result)
            wait.check_time(time.time())
            await asyncio.sleep(add_jitter(self.poll_interval_s))


def backstop(timeout_s: float | None) -> timedelta | None:
    """Return the time limit to give Airflow for a deferral whose trigger has its own.

    The trigger ends the wait itself, with a message that has the last observation. Airflow's limit is a minute longer and only
    ends waits whose trigger does not run.

    :param timeout_s: the trigger's limit in seconds, None for none
    """
    return None if timeout_s is None else timedelta(seconds=timeout_s) + _BACKSTOP


def result_of(event: Mapping[str, Any] | None, timeout_error: type[Exception] = PipelineTimeoutError) -> dict[str, Any]:
    """Return the result of a trigger's event, or raise its error.

    :param event: the event's payload
    :param timeout_error: the class of the error for a wait whose time is up
    :returns: the result of the condition
    :raises AirflowFailException: if the condition cannot be reached any more, or the service refused; a retry would not help
    :raises PipelineConnectionError: if the service was not reached; a retry may help
    :raises Exception: if the time is up: ``timeout_error``
    """
    if not event or "outcome" not in event:
        raise RuntimeError(f"the trigger sent an event this version does not know: {event!r}")
    outcome, message = WaitOutcome(event["outcome"]), str(event["message"])
    if outcome is WaitOutcome.REACHED:
        return dict(event["result"])
    if outcome is WaitOutcome.TIMEOUT:
        raise timeout_error(message)
    if outcome is WaitOutcome.UNREACHABLE:
        raise PipelineConnectionError(message)
    raise AirflowFailException(message)


def sensor_result_of(event: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the result like :func:`result_of`, with a sensor's errors.

    :raises AirflowSensorTimeout: if the time is up
    :raises StoppedOnPurposeError: if somebody has stopped the pipeline
    """
    result = (event or {}).get("result") or {}
    try:
        return result_of(event, UnseenTimeoutError if result.get(_AWAY) else AirflowSensorTimeout)
    except AirflowFailException as error:
        if is_stopped_on_purpose(result):
            raise StoppedOnPurposeError(str(error)) from error
        raise


def _event(outcome: WaitOutcome, message: str, result: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"outcome": outcome.value, "message": message, "result": result or {}}
