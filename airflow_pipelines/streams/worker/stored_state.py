"""The state of a program as it is stored outside of its process: by key in a database, and the rest as bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from airflow_pipelines.streams.graph.chains import Plan
from airflow_pipelines.streams.loop import TaskPart
from airflow_pipelines.streams.restoring import make_unclaimed_error
from airflow_pipelines.streams.snapshots import Snapshot, TaskSnapshot
from airflow_pipelines.streams.state.database import DatabaseRows, StateDatabase
from airflow_pipelines.streams.state.description import BROADCAST_PREFIX, StateDescription, describe_state
from airflow_pipelines.streams.state.old_pages import rows_of_page
from airflow_pipelines.streams.state.rows import Row, RowKey, StateRows
from airflow_pipelines.streams.worker.dropping import without_broadcast_states, without_states
from airflow_pipelines.streams.worker.messages import StateChanges, StoredPages
from airflow_pipelines.streams.worker.rest import KeptOperator, Rest, StateHeader

_ROWS_AT_ONCE = 5_000
_MOST_GROUPS = 1 << 15
"""The maximum number of key groups of an operator."""


class StoredState:
    """The stored state from which a program resumes.

    :param rest: the state besides that by key; None for a program that begins
    :param database: the database with the state by key
    :param dropped: uids of operators, or these with the name of a state, whose state is dropped
    """

    def __init__(self, rest: Rest | None, database: StateDatabase, dropped: frozenset[str | tuple[str, str]] = frozenset()) -> None:
        self._rest = rest
        self._database = database
        self._dropped_operators = frozenset(each for each in dropped if isinstance(each, str))
        self._dropped_states: dict[str, set[str]] = {}
        for each in dropped:
            if isinstance(each, tuple):
                self._dropped_states.setdefault(each[0], set()).add(each[1])
        self._numbers = {} if rest is None else dict(rest.header.numbers)

    @property
    def database(self) -> StateDatabase:
        """The database with the state by key."""
        return self._database

    @property
    def numbers(self) -> Mapping[str, int]:
        """The numbers of the operators in the database, by uid."""
        return self._numbers

    def rows_of(self, uid: str, groups: range, max_parallelism: int) -> StateRows:
        """Return the rows at rest of an operator.

        :param uid: the uid of the operator
        :param groups: the key groups of the task
        :param max_parallelism: the number of all key groups
        :returns: its rows
        """
        number = self._numbers.setdefault(uid, 1 + max(self._numbers.values(), default=-1))
        return DatabaseRows(self._database, number, groups, max_parallelism)

    def _all_rows_of(self, uid: str) -> StateRows:
        return self.rows_of(uid, range(_MOST_GROUPS), _MOST_GROUPS)

    def prepare(self, plan: Plan, pages: Iterable[StoredPages]) -> None:
        """Bring the database to the form in which the program takes it.

        :param plan: the program
        :param pages: the state of a release that kept it in pages
        :raises StreamProgramError: if there is state of an operator that the program does not have, or the class of a value that
            stays is gone
        """
        self._convert(pages)
        keyed = {step.uid for chain in plan.chains for step in chain.steps if step.node.operator.is_keyed}
        for uid in list(self._numbers):
            rows = self._all_rows_of(uid)
            if uid in self._dropped_operators:
                rows.clear()
                del self._numbers[uid]
            elif uid in self._dropped_states:
                _drop_states(rows, self._dropped_states[uid])
            elif uid not in keyed and next(rows.scan(), None) is not None:
                raise make_unclaimed_error([uid])

    def _convert(self, pages: Iterable[StoredPages]) -> None:
        for stored in pages:
            rows = self._all_rows_of(stored.uid)
            for (group, _, _), (data, *_) in stored.pages.items():
                rows.write({(group, key): row for key, row in rows_of_page(data)})

    def snapshot(self) -> Snapshot | None:
        """Return the state besides that by key, for a runner.

        :returns: the snapshot; None for a program that begins
        """
        if self._rest is None:
            return None
        operators = {uid: each for uid, each in self._rest.header.operators.items() if uid not in self._dropped_operators}
        return Snapshot(
            {uid: each.parallelism for uid, each in operators.items()},
            {uid: each.max_parallelism for uid, each in operators.items()},
            {head: [self._remove_dropped(task) for task in tasks] for head, tasks in self._rest.tasks.items()},
        )

    def _remove_dropped(self, task: TaskSnapshot) -> TaskSnapshot:
        dropped = self._dropped_operators
        return replace(
            task,
            operators={uid: self._remove_broadcast(uid, state) for uid, state in task.operators.items() if uid not in dropped},
            watermarks={uid: watermark for uid, watermark in task.watermarks.items() if uid not in dropped},
        )

    def _remove_broadcast(self, uid: str, kept: bytes) -> bytes:
        names = {name for name in self._dropped_states.get(uid, ()) if name.startswith(BROADCAST_PREFIX)}
        return without_broadcast_states(kept, names) if names else kept

    @property
    def now_ms(self) -> int | None:
        """The processing time of the last step; None for a program that begins."""
        return None if self._rest is None else self._rest.header.now_ms

    def shares(self) -> dict[str, Mapping[str, float]]:
        """Return the shares of the states in the size of the stored state.

        :returns: shares by the names of the states, by uid of the operator
        """
        return {} if self._rest is None else {uid: each.shares for uid, each in self._rest.header.operators.items()}

    def states(self) -> dict[str, tuple[StateDescription, ...]]:
        """Return descriptions of the stored states.

        :returns: descriptions by uid of the operator, without the states that are dropped
        """
        if self._rest is None:
            return {}
        return {
            uid: tuple(state for state in each.states if state.name not in self._dropped_states.get(uid, ()))
            for uid, each in self._rest.header.operators.items()
            if uid not in self._dropped_operators
        }


def _drop_states(rows: StateRows, names: Collection[str]) -> None:
    changes: dict[RowKey, Row | None] = {}
    for key, row in rows.scan():
        left = without_states(row, names)
        if left is not row:
            changes[key] = left
        if len(changes) >= _ROWS_AT_ONCE:
            rows.write(changes)
            changes.clear()
    rows.write(changes)


class StateChangeLog:
    """The description of a program's state for its checkpoints.

    :param plan: the program
    :param start: the state from which it resumed
    """

    def __init__(self, plan: Plan, start: StoredState) -> None:
        self._steps = {step.uid: (chain, step) for chain in plan.chains for step in chain.steps}
        self._start = start
        self._states = start.states()
        self._shares = start.shares()

    def changes(self, flushed: Snapshot, parts: Iterable[TaskPart], now_ms: int, folder: Path) -> StateChanges:
        """Return the state for a checkpoint.

        :param flushed: the state of the program, whose state by key was written to the database
        :param parts: its operators
        :param now_ms: processing time of the last step
        :param folder: the folder for links to the files of the database
        :returns: the state
        """
        tasks = [task for tasks in flushed.tasks.values() for task in tasks]
        header = StateHeader(now_ms, self._operators(list(parts), tasks), self._start.numbers)
        database = self._start.database
        if database.is_open:
            database.checkpoint(folder)
        return StateChanges(Rest(header, flushed.tasks).to_bytes(), database.is_open)

    def note_states(self, states: Mapping[str, tuple[StateDescription, ...]]) -> None:
        """Record states that functions have asked for in another process.

        :param states: the states by uid of the operator
        """
        for uid, each in states.items():
            known = {state.name: state for state in (*self._states.get(uid, ()), *each)}
            self._states[uid] = tuple(known.values())

    def _operators(self, parts: Collection[TaskPart], tasks: Collection[TaskSnapshot]) -> Mapping[str, KeptOperator]:
        self._shares |= _compute_shares(parts)
        sizes: Counter[str] = Counter()
        # States that functions no longer ask for still exist, until they are dropped.
        kept = {uid: {state.name: state for state in states} for uid, states in self._states.items()}
        for uid, (_, step) in self._steps.items():
            kept.setdefault(uid, {}).update((state.name, state) for state in step.node.operator.own_states())
        for part in parts:
            if part.store is not None:
                kept[part.uid].update((name, describe_state(each)) for name, each in part.store.declared.items())
                sizes[part.uid] += part.store.estimated_bytes()
        self._states = {uid: tuple(states.values()) for uid, states in kept.items()}
        return {
            uid: KeptOperator(
                step.name,
                step.node.operator.is_keyed,
                chain.parallelism,
                chain.max_parallelism,
                states := self._states.get(uid, ()),
                _count_broadcast_bytes(uid, states, tasks),
                {state.name: share for state in states if (share := self._shares.get(uid, {}).get(state.name)) is not None},
                sizes[uid],
            )
            for uid, (chain, step) in self._steps.items()
        }


def _compute_shares(parts: Iterable[TaskPart]) -> dict[str, Mapping[str, float]]:
    """Return the shares of the states in the size of the state, for operators that have stored entries."""
    sampled: dict[str, Counter[str]] = {}
    for part in parts:
        if part.store is not None and part.store.sampled_bytes:
            sampled.setdefault(part.uid, Counter()).update(part.store.sampled_bytes)
    return {uid: {name: round(size / sizes.total(), 4) for name, size in sizes.items()} for uid, sizes in sampled.items()}


def _count_broadcast_bytes(uid: str, states: Iterable[StateDescription], tasks: Collection[TaskSnapshot]) -> int:
    """Return the size of the broadcast state of an operator in bytes."""
    if not any(state.name.startswith(BROADCAST_PREFIX) for state in states):
        return 0
    return max((len(task.operators.get(uid, b"")) for task in tasks), default=0)
