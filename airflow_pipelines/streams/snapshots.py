"""What a program keeps, after some step: all of it, or what has changed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain as chained

from airflow_pipelines.streams.keys import group_to_task
from airflow_pipelines.streams.state.pages import PageId, StoredPage


@dataclass
class TaskSnapshot:
    """What a task keeps, as bytes where it can be large: all of it, or of the pages only those that changed.

    :param pages: pages of state at rest, by uid of the operator
    :param gone: where only changes are given, ids of pages that are no more, by uid of the operator
    :param operators: what operators keep besides, by uid, pickled
    :param channels: how far the inputs have come, pickled; None for a source
    :param turns: whose turn it is at each exchange
    :param watermarks: how far the operators have come, by uid
    """

    pages: dict[str, dict[PageId, StoredPage]] = field(default_factory=dict)
    operators: dict[str, bytes] = field(default_factory=dict)
    channels: bytes | None = None
    turns: list[int] = field(default_factory=list)
    watermarks: dict[str, int] = field(default_factory=dict)
    gone: dict[str, set[PageId]] = field(default_factory=dict)


def owned_pages(pages: Mapping[PageId, StoredPage], index: int, parallelism: int, max_parallelism: int) -> dict[PageId, StoredPage]:
    """The pages of one task.

    :param pages: of all tasks
    :param index: number of the task
    :param parallelism: number of tasks
    :param max_parallelism: number of key groups
    :returns: those whose key group is the task's
    """
    return {page_id: page for page_id, page in pages.items() if group_to_task(page_id[0], parallelism, max_parallelism) == index}


@dataclass
class Snapshot:
    """All that a program keeps, after some step.

    :param parallelism: number of tasks, by uid of the operator
    :param max_parallelism: number of key groups, by uid of the operator
    :param tasks: by the uid of the chain's head, and the number of the task
    """

    parallelism: dict[str, int] = field(default_factory=dict)
    max_parallelism: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, list[TaskSnapshot]] = field(default_factory=dict)

    def changed(self, changes: Snapshot) -> Snapshot:
        """What the program keeps after some changes.

        :param changes: what :meth:`~airflow_pipelines.streams.local.LocalRunner.changes` gave, of a runner that went on from this
            snapshot
        :returns: all of it; this snapshot stays as it is
        """
        before: dict[str, dict[PageId, StoredPage]] = {}
        for task in _all_tasks(self):
            for uid, kept in task.pages.items():
                before.setdefault(uid, {}).update(kept)
        for task in _all_tasks(changes):
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
        """The snapshot as bytes.

        :returns: what :meth:`from_bytes` reads
        """
        return pickle.dumps(self, 5)

    @staticmethod
    def from_bytes(data: bytes) -> Snapshot:
        """Read a snapshot.

        :param data: what :meth:`to_bytes` gave
        :returns: the snapshot
        """
        snapshot: Snapshot = pickle.loads(data)  # noqa: S301 (the program's own storage)
        return snapshot


def _all_tasks(snapshot: Snapshot) -> Iterator[TaskSnapshot]:
    return chained.from_iterable(snapshot.tasks.values())
