"""Input of a keyed operator in batch mode: one key after the other, each with all its elements."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.keys import canonical_bytes
from airflow_pipelines.streams.operators.base import Operator


class GroupedInput:
    """A buffer that collects the elements of all keys, and gives them to the operator at the end of the input.

    The elements of a key come in the order of their timestamps. Elements without a key (those of a broadcast side) come first.

    :param operator: the operator that gets the elements
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._groups: dict[bytes, list[tuple[int, int, Any, int | None, Any]]] = {}

    def process(self, batch: Batch, port: int) -> None:
        """Buffer records by their key; pass records without keys on at once."""
        if batch.keys is None:
            self._operator.process(batch, port)
            return
        for value, timestamp, key in zip(batch.values, batch.timestamps, batch.keys, strict=True):
            order = MIN_TIMESTAMP if timestamp is None else timestamp
            self._groups.setdefault(canonical_bytes(key), []).append((order, port, value, timestamp, key))

    def watermark(self, timestamp: int) -> None:
        """Ignore a watermark: event time stands still until the end."""

    def idleness(self, *, idle: bool) -> None:
        """Ignore idleness: no reader waits for event time."""

    def finish(self) -> None:
        """Give all buffered records to the operator, one key after the other."""
        groups, self._groups = self._groups, {}
        for data in sorted(groups, key=lambda each: _make_sort_key(groups[each][0][4], each)):
            rows = sorted(groups.pop(data), key=lambda row: row[0])
            start = 0
            for end in range(1, len(rows) + 1):
                if end == len(rows) or rows[end][1] != rows[start][1]:
                    part = rows[start:end]
                    batch = Batch([row[2] for row in part], [row[3] for row in part], [row[4] for row in part])
                    self._operator.process(batch, rows[start][1])
                    start = end
            self._operator.end_of_key()
        self._operator.watermark(MAX_TIMESTAMP)


def _make_sort_key(key: Any, data: bytes) -> tuple[int, Any, bytes]:
    if isinstance(key, int | float):
        return (0, key, data)
    return (1, key, data) if isinstance(key, str) else (2, "", data)
