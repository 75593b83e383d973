"""The state of a program after a step: all of it, or only the changes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain as chained

from airflow_pipelines.streams.keys import group_to_task
from airflow_pipelines.streams.state.pages import PageId, StoredPage


@dataclass
class TaskSnapshot:
    """The state of a task, as bytes where it can be large. It has all pages, or only those that changed.

    :param pages: stored pages of state, by uid of the operator
    :param gone: the ids of pages that no longer exist, by uid of the operator; only in changes
    :param operators: the state of operators besides pages, by uid, pickled
    :param channels: the event time of the inputs, pickled; None to let it start anew
    :param turns: the position in the order of turns of each exchange
    :param watermarks: the watermarks of the operators, by uid
    """

    pages: dict[str, dict[PageId, StoredPage]] = field(default_factory=dict)
    operators: dict[str, bytes] = field(default_factory=dict)
    channels: bytes | None = None
    turns: list[int] = field(default_factory=list)
    watermarks: dict[str, int] = field(default_factory=dict)
    gone: dict[str, set[PageId]] = field(default_factory=dict)


def owned_pages(pages: Mapping[PageId, StoredPage], index: int, parallelism: int, max_parallelism: int) -> dict[PageId, StoredPage]:
    """Return the pages of one task.

    :param pages: the pages of all tasks
    :param index: the number of the task
    :param parallelism: the number of tasks
    :param max_parallelism: the number of key groups
    :returns: the pages whose key group belongs to the task
    """
    return {page_id: page for page_id, page in pages.items() if group_to_task(page_id[0], parallelism, max_parallelism) == index}


@dataclass
class Snapshot:
    """The complete state of a program, after a step.

    :param parallelism: the number of tasks, by uid of the operator
    :param max_parallelism: the number of key groups, by uid of the operator
    :param tasks: the state of the tasks, by the uid of the chain's head and the number of the task
    """

    parallelism: dict[str, int] = field(default_factory=dict)
    max_parallelism: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, list[TaskSnapshot]] = field(default_factory=dict)

    def changed(self, changes: Snapshot) -> Snapshot:
        """Return the snapshot that results from some changes.

        :param changes: the result of :meth:`~airflow_pipelines.streams.local.LocalRunner.changes` of a runner that resumed from
            this snapshot
        :returns: the complete state; this snapshot stays unchanged
        """
        before: dict[str, dict[PageId, StoredPage]] = {}
        for task in _iterate_tasks(self):
            for uid, kept in task.pages.items():
                before.setdefault(uid, {}).update(kept)
        for task in _iterate_tasks(changes):
            for uid, gone in task.gone.items():
                for page_id in gone:
                    before.get(uid, {}).pop(page_id, None)
            for uid, written in task.pages.items():
                before.setdefault(uid, {}).update(written)
        tasks = {}
        for head, changed in changes.tasks.items():
            tasks[head] = [
                replace(
                    task,
                    pages={
                        uid: owned_pages(before[uid], index, changes.parallelism[uid], changes.max_parallelism[uid])
                        for uid in task.pages
                    },
                    gone={},
                )
                for index, task in enumerate(changed)
            ]
        return replace(changes, tasks=tasks)

    def to_bytes(self) -> bytes:
        """Return the snapshot as bytes.

        :returns: bytes for :meth:`from_bytes`
        """
        return pickle.dumps(self, 5)

    @staticmethod
    def from_bytes(data: bytes) -> Snapshot:
        """Read a snapshot from bytes.

        :param data: the result of :meth:`to_bytes`
        :returns: the snapshot
        """
        snapshot: Snapshot = pickle.loads(data)  # noqa: S301 (the program's own storage)
        return snapshot


def _iterate_tasks(snapshot: Snapshot) -> Iterator[TaskSnapshot]:
    return chained.from_iterable(snapshot.tasks.values())
