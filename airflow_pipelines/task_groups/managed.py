"""A pipeline for the tasks of one group only: deployed and started before them, stopped or deleted after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.sdk import TaskGroup

from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID
from airflow_pipelines.operators.base import PipelineOperator
from airflow_pipelines.operators.change import DeployPipelineOperator
from airflow_pipelines.operators.lifecycle import DeletePipelineOperator, StartPipelineOperator, StopPipelineOperator
from airflow_pipelines.sensors.pipeline import PipelineCompletionSensor
from airflow_pipelines.task_groups.outcome import GroupOutcomeOperator

_AFTERWARDS = ("stop", "delete")


@contextmanager
def managed_pipeline(
    group_id: str = "pipeline",
    *,
    pipeline_name: str,
    pipeline_conn_id: str = DEFAULT_CONN_ID,
    bootstrap_policy: str = "reject",
    until_completion: bool = False,
    afterwards: str = "stop",
    task_arguments: Mapping[str, Any] | None = None,
    **program: Any,
) -> Iterator[TaskGroup]:
    """Run a pipeline for the tasks of a ``with`` block.

    ``deploy`` and ``start`` set it up before them, ``stop`` tears it down after them, whether they fail or not. It is for batch
    use: load, wait, read the result, and leave nothing running.

    A DAG run whose setup, block or teardown has failed is failed, also if somebody marked the task or the run so. Airflow does not
    see all of these failures behind a teardown; the last task, ``outcome``, reports the others. Clearing a task of the block clears
    setup and teardown with it.

    :param group_id: the group's name
    :param pipeline_name: the pipeline
    :param pipeline_conn_id: the Airflow connection
    :param bootstrap_policy: the policy of ``start`` if the program differs from that of the last checkpoint: ``reject`` fails it,
        ``allow`` evaluates the changed parts, ``await_approval`` lets a ReviewPipelineChangeOperator in the block ask
    :param until_completion: True to wait after the block until every input connector has reached its end and all is processed
    :param afterwards: ``stop`` keeps the state, with a checkpoint, for the next run; ``delete`` also deletes the pipeline with it
    :param task_arguments: arguments of the tasks that the group adds, such as ``retries``
    :param program: the other arguments of DeployPipelineOperator: ``sql``, ``stream_program``, ``runtime_config``, ``if_exists``
        ...
    :returns: the group
    :raises ValueError: if ``afterwards`` is neither, or there is nothing to do between setup and teardown
    """
    if afterwards not in _AFTERWARDS:
        raise ValueError(f"afterwards is {afterwards!r}; known: {', '.join(_AFTERWARDS)}")
    common = {"pipeline_name": pipeline_name, "pipeline_conn_id": pipeline_conn_id, **(task_arguments or {})}
    with TaskGroup(group_id) as group:
        yield group
        first, last = list(group.get_roots()), list(group.get_leaves())
        if until_completion:
            completed = PipelineCompletionSensor(task_id="completed", **common)
            if last:
                last >> completed
            first, last = first or [completed], [completed]
        if not first:
            raise ValueError(f"the group {group_id!r} does nothing: put tasks into its with block, or set until_completion")
        deploy = DeployPipelineOperator(task_id="deploy", **common, **program)
        start = StartPipelineOperator(task_id="start", bootstrap_policy=bootstrap_policy, **common)
        stop = StopPipelineOperator(task_id="stop", **common)
        setups = [deploy.as_setup(), start.as_setup()]  # type: ignore[no-untyped-call]
        deploy >> start >> first
        # The deployment is a setup too. So a pipeline that did not start in time but comes up later is stopped, and a cleared task
        # finds a pipeline although an earlier teardown has deleted it.
        last >> stop.as_teardown(setups=setups)
        tear_downs: list[PipelineOperator] = [stop]
        if afterwards == "delete":
            tear_downs.append(DeletePipelineOperator(task_id="delete", **common))
            stop >> tear_downs[-1].as_teardown(setups=setups)
        outcome = GroupOutcomeOperator(task_id="outcome", tear_downs=[task.task_id for task in tear_downs])
        outcome.put_behind(tear_downs[-1], setups=setups)
