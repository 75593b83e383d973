"""The state of a program after a step: all of it, or only the changes."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_pipelines.streams.keys import group_to_task
from airflow_pipelines.streams.state.rows import Row, RowKey


@dataclass
class TaskSnapshot:
    """The state of a task, as bytes where it can be large. It has all rows, those that changed, or none.

    :param rows: rows of state by key, by uid of the operator; None for a row that no longer exists
    :param operators: the state of operators besides rows, by uid, pickled
    :param channels: the event time of the inputs, pickled; None to let it start anew
    :param turns: the position in the order of turns of each exchange
    :param watermarks: the watermarks of the operators, by uid
    """

    rows: dict[str, dict[RowKey, Row | None]] = field(default_factory=dict)
    operators: dict[str, bytes] = field(default_factory=dict)
    channels: bytes | None = None
    turns: list[int] = field(default_factory=list)
    watermarks: dict[str, int] = field(default_factory=dict)


def owned_rows(rows: Mapping[RowKey, Row | None], index: int, parallelism: int, max_parallelism: int) -> dict[RowKey, Row | None]:
    """Return the rows of one task.

    :param rows: the rows of all tasks
    :param index: the number of the task
    :param parallelism: the number of tasks
    :param max_parallelism: the number of key groups
    :returns: the rows whose key group belongs to the task
    """
    return {key: row for key, row in rows.items() if group_to_task(key[0], parallelism, max_parallelism) == index}


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
