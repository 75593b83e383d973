"""The parts of a snapshot from which tasks resume, and the refusal of state that no task can take."""

from __future__ import annotations

import pickle

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.chains import Chain, Plan
from airflow_pipelines.streams.snapshots import Snapshot, TaskSnapshot, owned_rows
from airflow_pipelines.streams.state.rows import Row, RowKey


def refuse_unclaimed(snapshot: Snapshot, plan: Plan) -> None:
    """Refuse a snapshot with state that no operator of a program takes.

    :param snapshot: the snapshot
    :param plan: the program
    :raises StreamProgramError: if there is such state; the message has the uids of its operators
    """
    claimed = {step.uid for chain in plan.chains for step in chain.steps}
    kept = {
        uid for tasks in snapshot.tasks.values() for task in tasks for uid in (*task.rows, *task.operators) if uid not in claimed
    }
    with_state = sorted(uid for uid in kept if _has_state(snapshot, uid))
    if with_state:
        raise make_unclaimed_error(with_state)


def make_unclaimed_error(uids: list[str]) -> StreamProgramError:
    """Return the error for state that no operator takes.

    :param uids: the uids of the operators that had the state
    :returns: the error
    """
    return StreamProgramError(
        f"The snapshot has state of the operators {uids}, which the program does not have. Give the operators that shall"
        " go on with it these names with uid(), or start without the snapshot."
    )


def _has_state(snapshot: Snapshot, uid: str) -> bool:
    return any(task.rows.get(uid) or uid in task.operators for tasks in snapshot.tasks.values() for task in tasks)


def task_snapshot(snapshot: Snapshot, chain: Chain, index: int) -> TaskSnapshot:
    """Return the part of a snapshot from which one task resumes.

    :param snapshot: the snapshot of the whole program
    :param chain: the chain that the task runs
    :param index: the number of the task
    :returns: its part, also if another number of tasks made the snapshot
    :raises StreamProgramError: if the maximum parallelism has changed
    """
    for step in chain.steps:
        known = snapshot.max_parallelism.get(step.uid, chain.max_parallelism)
        if step.node.operator.is_keyed and known != chain.max_parallelism:
            raise StreamProgramError(
                f"The operator {step.name!r} has the maximum parallelism {chain.max_parallelism}, and its state was kept with"
                f" {known}."
                f" It cannot change: set_max_parallelism({known})."
            )
    tasks = snapshot.tasks.get(chain.head.uid, [])
    if len(tasks) == chain.parallelism and set(tasks[index].watermarks) == {step.uid for step in chain.steps}:
        return tasks[index]
    return _regroup(snapshot, chain, index)


def _regroup(snapshot: Snapshot, chain: Chain, index: int) -> TaskSnapshot:
    """Return the part of a task if the number of tasks, or the operators of the chain, have changed since the snapshot."""
    regrouped = TaskSnapshot()
    for step in chain.steps:
        tasks = next((tasks for tasks in snapshot.tasks.values() if step.uid in tasks[0].watermarks), None)
        if tasks is None:
            continue
        rows: dict[RowKey, Row | None] = {}
        for task in tasks:
            rows.update(task.rows.get(step.uid, {}))
        regrouped.rows[step.uid] = owned_rows(rows, index, chain.parallelism, chain.max_parallelism)
        regrouped.watermarks[step.uid] = min(task.watermarks[step.uid] for task in tasks)
        states = [pickle.loads(task.operators[step.uid]) for task in tasks if step.uid in task.operators]  # noqa: S301
        if states:
            merged = step.node.operator.state_of_task(states, index, chain.parallelism)
            regrouped.operators[step.uid] = pickle.dumps(merged, 5)
    return regrouped
