"""A load of several tasks that becomes visible as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk import TaskGroup, TriggerRule

from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID
from airflow_pipelines.operators.transaction import CommitTransactionOperator, StartTransactionOperator, UndoTransactionOperator
from airflow_pipelines.task_groups.outcome import GroupOutcomeOperator

_ON_FAILURE = ("leave", "undo")


@contextmanager
def pipeline_transaction(
    group_id: str = "transaction",
    *,
    pipeline_name: str,
    pipeline_conn_id: str = DEFAULT_CONN_ID,
    on_failure: str = "leave",
    **task_arguments: Any,
) -> Iterator[TaskGroup]:
    """Put the tasks of a ``with`` block into one transaction of a pipeline: ``start`` before them, ``commit`` after them.

    Views, queries and listeners show nothing of their pushes before the commit, and then all of them as one step.

    A pipeline cannot drop the input of a transaction and continue. So ``on_failure`` sets the action if a task of the block has
    failed for good:

    * ``leave``: the transaction stays open, and nothing is shown. The collected input is kept: clear the failed task, and it
      continues in the same transaction to the commit. Until then views do not change, and checkpoints and graceful stops wait.
    * ``undo``: the pipeline is force-stopped and started again, from the checkpoint that ``start`` has taken. The collected input
      is lost, also the pushes of others meanwhile; declared connectors read their input again. Clearing a task of the block then
      clears ``start`` and ``undo`` with it, so clear all tasks of the block to load again. ``undo`` is a teardown, whose success
      Airflow would take for the run's. So the group ends with one more task, ``outcome``, which fails if the load has failed.

    The DAG run fails either way, unless a task after the group changes that. Skipped tasks of the block are no failure: the pushes
    of the others are committed. If all are skipped, ``leave`` commits an empty transaction, and ``undo`` undoes it. A push in a
    transaction may not wait until its rows are processed.

    :param group_id: the group's name
    :param pipeline_name: the pipeline
    :param pipeline_conn_id: the Airflow connection
    :param on_failure: ``leave`` or ``undo``
    :param task_arguments: arguments of the tasks that the group adds, such as ``timeout``, ``deferrable`` and ``retries``
    :returns: the group
    :raises ValueError: if ``on_failure`` is neither, or the block has no task
    """
    if on_failure not in _ON_FAILURE:
        raise ValueError(f"on_failure is {on_failure!r}; known: {', '.join(_ON_FAILURE)}")
    common = {"pipeline_name": pipeline_name, "pipeline_conn_id": pipeline_conn_id, **task_arguments}
    with TaskGroup(group_id) as group:
        yield group
        first, last = list(group.get_roots()), list(group.get_leaves())
        if not first:
            raise ValueError(f"the transaction {group_id!r} has no task: put those that load into its with block")
        start = StartTransactionOperator(task_id="start", checkpoint=on_failure == "undo", **common)
        # A template, because a task that reads a setup's output directly may not run if a task of the block was skipped.
        transaction = f"{{{{ ti.xcom_pull(task_ids='{start.task_id}') | tojson }}}}"
        # Skipped tasks have not failed; but a group that is skipped as a whole has nothing to commit.
        rule = TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
        commit = CommitTransactionOperator(task_id="commit", transaction=transaction, trigger_rule=rule, **common)
        start >> first
        last >> commit
        if on_failure == "leave":
            # The transaction is ended also if all tasks of the block are skipped.
            start >> commit
        else:
            undo = UndoTransactionOperator(task_id="undo", transaction=transaction, **common)
            commit >> undo.as_teardown(setups=start)
            # A run that is marked as failed still runs the teardown, and Airflow would call it a success then.
            GroupOutcomeOperator(task_id="outcome").put_behind(undo, setups=[start])
