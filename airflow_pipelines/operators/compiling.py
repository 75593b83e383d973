"""Waiting for the compiler in the triggerer: if no host runs, the service has to start one, which takes longer than compiling."""

from __future__ import annotations

import time
from typing import Final, Protocol

from airflow.sdk.exceptions import TaskDeferred

from airflow_pipelines.hooks.conditions import is_transient
from airflow_pipelines.hooks.configuration import first_delay_s, outage_budget_s
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.sdk.errors import PipelinesError
from airflow_pipelines.sdk.wire import path_of
from airflow_pipelines.triggers.compiler import PROBE, CompilerTrigger
from airflow_pipelines.triggers.pipeline import backstop

PATIENCE_S: Final = 3.0
"""The seconds to wait for the compiler in the worker. A running compiler answers within them, and a deferral would take longer."""
_POLL_S: Final = 2.0


class CompilingTask(Protocol):
    """The attributes that a task needs to wait for the compiler."""

    pipeline_name: str
    pipeline_conn_id: str
    compile_timeout: float

    @property
    def hook(self) -> PipelineHook:
        """The hook for the connection."""


def defer_until_compiler(task: CompilingTask) -> None:
    """Return when the service can compile; defer the task if that takes a while.

    :param task: a task that is deferrable
    :raises TaskDeferred: if the compiler is not there yet. The task continues in ``execute_complete``
    """
    try:
        path, program = path_of("validate_program"), {"program_code": PROBE}
        task.hook.get_conn().request("POST", path, json=program, timeout_s=PATIENCE_S, outage_budget_s=0)
    except PipelinesError as error:
        if not is_transient(error):
            raise
    else:
        return
    raise TaskDeferred(
        trigger=CompilerTrigger(
            pipeline_name=task.pipeline_name,
            pipeline_conn_id=task.pipeline_conn_id,
            poll_interval_s=_POLL_S,
            first_delay_s=first_delay_s(),
            deadline=time.time() + task.compile_timeout,
            outage_budget_s=outage_budget_s(),
        ),
        method_name="execute_complete",
        timeout=backstop(task.compile_timeout),
    )
