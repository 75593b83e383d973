"""The state of a program as it is stored outside of its process. It is assembled when the process begins, and its changes are
collected at checkpoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from airflow_pipelines.streams.graph.chains import Plan
from airflow_pipelines.streams.loop import TaskPart
from airflow_pipelines.streams.snapshots import Snapshot, TaskSnapshot
from airflow_pipelines.streams.state.description import BROADCAST_PREFIX, StateDescription, describe_state
from airflow_pipelines.streams.state.pages import PageId, StoredPage
from airflow_pipelines.streams.worker.dropping import without_broadcast_states, without_states
from airflow_pipelines.streams.worker.messages import PageKey, StateChanges, StoredPages
from airflow_pipelines.streams.worker.rest import KeptOperator, Rest, StateHeader


class StoredState:
    """The stored state from which a program resumes.

    :param rest: the state besides pages; None for a program that begins
    :param pages: all pages; each is read only once
    :param dropped: uids of operators, or these with the name of a state, whose state is dropped
    """

    def __init__(self, rest: Rest | None, pages: Iterable[StoredPages], dropped: frozenset[str | tuple[str, str]]) -> None:
        self._rest = rest
        self._pages = pages
        self._dropped_operators = frozenset(each for each in dropped if isinstance(each, str))
        self._dropped_states: dict[str, set[str]] = {}
        for each in dropped:
            if isinstance(each, tuple):
                self._dropped_states.setdefault(each[0], set()).add(each[1])
        self.gone: set[PageKey] = set()
        """The pages that were read and of which nothing is left."""
        self.written: set[PageKey] = set()
        """The pages that were read and have changed, because some of their state was dropped."""

    def pages(self) -> Iterator[tuple[str, PageId, StoredPage]]:
        """Read the pages. Pages that change or vanish because of dropped state are recorded.

        :returns: uid of the operator, id of the page, and the page
        """
        for stored in self._pages:
            uid = stored.uid
            names = self._dropped_states.get(uid, ())
            for page_id, (data, event, processing) in stored.pages.items():
                key = (uid, *page_id)
                page: StoredPage | None = StoredPage(data, (event, processing))
                if uid in self._dropped_operators:
                    page = None
                elif page is not None and names:
                    page = without_states(page, names)
                if page is None:
                    self.gone.add(key)
                    continue
                if page.data is not data:
                    self.written.add(key)
                yield uid, page_id, page

    def snapshot(self) -> Snapshot | None:
        """Return the state besides pages, for a runner.

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


class StateChangeLog:
    """A log of the changes since the last time.

    :param plan: the program
    :param start: the state from which it resumed, after all pages were read
    """

    def __init__(self, plan: Plan, start: StoredState) -> None:
        self._steps = {step.uid: (chain, step) for chain in plan.chains for step in chain.steps}
        self._states = start.states()
        self._shares = start.shares()
        self._gone_at_start = start.gone

    def changes(self, changed: Snapshot, parts: Iterable[TaskPart], now_ms: int) -> StateChanges:
        """Return the changes since the last call.

        :param changed: the state of the program, with only those pages that changed
        :param parts: its operators
        :param now_ms: processing time of the last step
        :returns: the changes
        """
        pages: dict[str, dict[PageId, tuple[bytes, int | None, int | None]]] = {}
        gone, self._gone_at_start = self._gone_at_start, set()
        tasks = [task for tasks in changed.tasks.values() for task in tasks]
        for task in tasks:
            gone |= {(uid, *page_id) for uid, ids in task.gone.items() for page_id in ids}
        for task in tasks:
            for uid, written in task.pages.items():
                for page_id, page in written.items():
                    pages.setdefault(uid, {})[page_id] = (page.data, *page.due)
                    gone.discard((uid, *page_id))
        rest = Rest(StateHeader(now_ms, self._operators(parts, tasks)), _remove_pages(changed))
        return StateChanges([StoredPages(uid, each) for uid, each in pages.items()], sorted(gone), rest.to_bytes())

    def note_states(self, states: Mapping[str, tuple[StateDescription, ...]]) -> None:
        """Record states that functions have asked for in another process.

        :param states: the states by uid of the operator
        """
        for uid, each in states.items():
            known = {state.name: state for state in (*self._states.get(uid, ()), *each)}
            self._states[uid] = tuple(known.values())

    def _operators(self, parts: Iterable[TaskPart], tasks: Collection[TaskSnapshot]) -> Mapping[str, KeptOperator]:
        parts = list(parts)
        self._shares |= _compute_shares(parts)
        # States that functions no longer ask for still exist, until they are dropped.
        kept = {uid: {state.name: state for state in states} for uid, states in self._states.items()}
        for uid, (_, step) in self._steps.items():
            kept.setdefault(uid, {}).update((state.name, state) for state in step.node.operator.own_states())
        for part in parts:
            if part.store is not None:
                kept[part.uid].update((name, describe_state(each)) for name, each in part.store.declared.items())
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


def _remove_pages(snapshot: Snapshot) -> dict[str, list[TaskSnapshot]]:
    return {uid: [replace(task, pages={}, gone={}) for task in tasks] for uid, tasks in snapshot.tasks.items()}
