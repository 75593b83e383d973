"""Snapshots for programs in which some sources start anew. A position is only valid for the place that the source reads, and event
time follows from the elements of the source.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Set
from dataclasses import replace

from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from airflow_pipelines.streams.graph.chains import Chain, Plan
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.snapshots import Snapshot, TaskSnapshot


def without_moved_sources(snapshot: Snapshot, plan: Plan, warn: Callable[[str], None]) -> Snapshot:
    """Return a snapshot without the positions of sources that now read another place.

    :param snapshot: the snapshot
    :param plan: the program that resumes from it
    :param warn: a function that receives a warning for each source that starts anew
    :returns: the rest of the snapshot
    """
    moved = set()
    for chain in plan.chains:
        operator, uid = chain.head.node.operator, chain.head.uid
        if isinstance(operator, Read) and operator.source.places:
            before = _find_places(snapshot, uid)
            if before and set(before).isdisjoint(operator.source.places):
                moved.add(uid)
                warn(
                    f"The source {chain.head.name!r} reads {operator.source.places[0]}, and its position in the snapshot is one in"
                    f" {before[0]}: it begins anew."
                )
    return _change_tasks(snapshot, lambda task: _without_operators(task, moved)) if moved else snapshot


def with_event_time_of(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return a snapshot in which event time starts anew downstream of sources that the snapshot does not know.

    Event time is reset for an operator if all sources that it reads are unknown, and also if it reads at least one such source and
    its event time had reached the end of time: every element of the new source would be late there.

    :param snapshot: the snapshot
    :param plan: the program that resumes from it
    :returns: the snapshot, otherwise unchanged
    """
    known = {uid for tasks in snapshot.tasks.values() for task in tasks for uid in task.watermarks}
    ended = {
        uid
        for tasks in snapshot.tasks.values()
        for task in tasks
        for uid, watermark in task.watermarks.items()
        if watermark == MAX_TIMESTAMP
    }
    only_fresh: set[int] = set()
    some_fresh: set[int] = set()
    anew: list[Chain] = []
    for chain in plan.chains:
        upstream = {link.source for link in plan.into(chain)}
        is_fresh_source = not upstream and chain.head.uid not in known
        if is_fresh_source or (upstream and upstream <= only_fresh):
            only_fresh.add(chain.number)
        if is_fresh_source or not upstream.isdisjoint(some_fresh):
            some_fresh.add(chain.number)
            if chain.number in only_fresh or any(step.uid in ended for step in chain.steps):
                anew.append(chain)
    return _reset_event_time(snapshot, anew) if anew else snapshot


def _reset_event_time(snapshot: Snapshot, chains: Collection[Chain]) -> Snapshot:
    uids = {step.uid for chain in chains for step in chain.steps}
    heads = {chain.head.uid for chain in chains}
    # The only state of these operators is their event time.
    strategies = {step.uid for chain in chains for step in chain.steps if step.node.operator.has_watermark_strategy}

    def begun_anew(task: TaskSnapshot) -> TaskSnapshot:
        watermarks = {uid: MIN_TIMESTAMP if uid in uids else watermark for uid, watermark in task.watermarks.items()}
        operators = {uid: state for uid, state in task.operators.items() if uid not in strategies}
        channels = None if heads.intersection(task.watermarks) else task.channels
        return replace(task, watermarks=watermarks, operators=operators, channels=channels)

    return _change_tasks(snapshot, begun_anew)


def _find_places(snapshot: Snapshot, uid: str) -> tuple[str, ...]:
    """Return the places that the positions of a source refer to; empty if they are not known."""
    for task in snapshot.tasks.get(uid, ()):
        if uid in task.operators:
            _, _, *places = pickle.loads(task.operators[uid])  # noqa: S301 (the program's own storage)
            return places[0] if places else ()
    return ()


def _without_operators(task: TaskSnapshot, uids: Set[str]) -> TaskSnapshot:
    return replace(
        task,
        operators={uid: state for uid, state in task.operators.items() if uid not in uids},
        watermarks={uid: watermark for uid, watermark in task.watermarks.items() if uid not in uids},
    )


def _change_tasks(snapshot: Snapshot, change: Callable[[TaskSnapshot], TaskSnapshot]) -> Snapshot:
    return replace(snapshot, tasks={head: [change(task) for task in tasks] for head, tasks in snapshot.tasks.items()})
