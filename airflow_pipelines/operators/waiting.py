"""Waits of a task for a pipeline: in place, or in the triggerer."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Protocol

from airflow.sdk.exceptions import TaskDeferred

from airflow_pipelines.hooks.conditions import Condition, PollOutcome
from airflow_pipelines.hooks.configuration import first_delay_s, outage_budget_s
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.hooks.waiting import Wait
from airflow_pipelines.sdk.errors import PipelinesError, PipelineTimeoutError
from airflow_pipelines.triggers.pipeline import PipelineTrigger, backstop


class WaitingTask(Protocol):
    """The attributes that a task needs to wait for a pipeline."""

    pipeline_name: str
    pipeline_conn_id: str
    deferrable: bool
    timeout: float
    poke_interval: float

    @property
    def hook(self) -> PipelineHook:
        """The hook for the connection."""


def reached_or_deferred(
    task: WaitingTask, condition: Condition, *, method_name: str, kwargs: dict[str, Any], patience_s: float = 0.0
) -> dict[str, Any]:
    """Wait for a condition in the worker or in the triggerer.

    :param task: the task that waits
    :param condition: the condition to wait for
    :param method_name: the method in which a deferred task continues
    :param kwargs: the arguments of that method besides ``context`` and ``event``; JSON values, because they travel through the
        deferral
    :param patience_s: seconds to wait in the worker before the task defers
    :returns: the result of the condition
    :raises TaskDeferred: if the task is deferrable and has to wait
    :raises PipelineFailedError: if the condition cannot be reached any more
    :raises PipelineTimeoutError: if it was not reached in time
    """
    if not task.deferrable:
        return _wait_here(task, condition, task.timeout)
    if 0 < patience_s < task.timeout:
        with suppress(PipelineTimeoutError):
            return _wait_here(task, condition, patience_s)
    wait = Wait(task.pipeline_name, condition, outage_budget_s=outage_budget_s())
    try:
        verdict = wait.evaluate(task.hook.observe(task.pipeline_name, condition))
    except PipelinesError as error:
        wait.poll_failed(error, time.time())
    else:
        if verdict.outcome is PollOutcome.REACHED:
            return verdict.result
        if verdict.outcome is PollOutcome.FAILED:
            raise wait.failure(verdict)
    raise TaskDeferred(
        trigger=PipelineTrigger(
            pipeline_name=task.pipeline_name,
            condition=condition.to_wire(),
            pipeline_conn_id=task.pipeline_conn_id,
            poll_interval_s=task.poke_interval,
            first_delay_s=first_delay_s(),
            deadline=time.time() + task.timeout,
            outage_budget_s=outage_budget_s(),
            memory=dict(wait.memory) if wait.memory else None,
        ),
        method_name=method_name,
        kwargs=kwargs,
        timeout=backstop(task.timeout),
    )


def _wait_here(task: WaitingTask, condition: Condition, timeout_s: float) -> dict[str, Any]:
    return task.hook.wait(
        task.pipeline_name,
        condition,
        timeout_s=timeout_s,
        poll_interval_s=task.poke_interval,
    )
