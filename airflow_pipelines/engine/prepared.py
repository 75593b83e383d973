"""Queries over batches in memory that are parsed, analysed and planned once and then run over other batches.

A step asks the same questions as the step before, over other rows; to plan them takes several times as long as to run them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.arrow import collected
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.plans import replanned, rerunnable
from airflow_pipelines.engine.slots import Slot, can_refill


@dataclass(frozen=True, slots=True)
class Result:
    """What a query gave: its rows as a pyarrow Table, and Spark's schema of them."""

    rows: Any
    schema: StructType


@dataclass(slots=True)
class _Prepared:
    """A planned query. ``again``: the same as a frame that can be run many times, or None when it has to be planned for each."""

    frame: DataFrame
    again: DataFrame | None
    slots: Sequence[Slot]
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bytes(self) -> int:
        """The size of the slots."""
        return sum(slot.capacity for slot in self.slots)


class PreparedQueries:
    """The planned queries of one session."""

    def __init__(self, session: SparkSession, limits: Limits = DEFAULT_LIMITS) -> None:
        """No query yet."""
        self._session = session
        self._limits = limits
        self._known: OrderedDict[tuple[Any, ...], _Prepared] = OrderedDict()
        self._lock = threading.Lock()
        self._preparing = threading.Lock()

    def result(self, parts: Sequence[str], batches: Sequence[Batch]) -> Result | None:
        """The result of a query.

        :param parts: the query's text without the names of the batches
        :param batches: what stands between each two parts: batches in memory, each perhaps several times
        :returns: None when the query is not to be had this way
        """
        distinct = list({batch.number: batch for batch in batches}.values())
        if not can_refill(self._session) or sum(batch.table.nbytes for batch in distinct) > self._limits.slot_bytes:
            return None
        places = {batch.number: place for place, batch in enumerate(distinct)}
        order = tuple(places[batch.number] for batch in batches)
        key = (tuple(parts), order, tuple(_signature(batch) for batch in distinct))
        with self._lock:
            prepared = self._known.get(key)
            if prepared is not None:
                self._known.move_to_end(key)
        if prepared is None:
            prepared = self._remember(key, parts, order, distinct)
        while True:
            with prepared.lock:
                if all(slot.fill(batch) for slot, batch in zip(prepared.slots, distinct, strict=True)):
                    return Result(collected(prepared.again or replanned(prepared.frame)), prepared.frame.schema)
            # The rows have become too many for the slots.
            prepared = self._remember(key, parts, order, distinct)

    def _remember(self, key: tuple[Any, ...], parts: Sequence[str], order: Sequence[int], batches: Sequence[Batch]) -> _Prepared:
        # One at a time, because all use the same names.
        with self._preparing:
            prepared = self._prepare(parts, order, batches)
        with self._lock:
            self._known[key] = prepared
            self._known.move_to_end(key)
            held = sum(known.bytes for known in self._known.values())
            while len(self._known) > self._limits.prepared_queries or (held > self._limits.prepared_bytes and len(self._known) > 1):
                _, forgotten = self._known.popitem(last=False)
                held -= forgotten.bytes
            return prepared

    def close(self) -> None:
        """Forget all queries."""
        with self._lock:
            self._known.clear()

    def _prepare(self, parts: Sequence[str], order: Sequence[int], batches: Sequence[Batch]) -> _Prepared:
        slots = [Slot(self._session, batch) for batch in batches]
        names = [f"airflow_pipelines_slot_{place}" for place in range(len(slots))]
        for name, slot in zip(names, slots, strict=True):
            # The name matters only until the query is analysed.
            slot.frame.createOrReplaceTempView(name)
        text = parts[0] + "".join(f"{names[place]}{part}" for place, part in zip(order, parts[1:], strict=True))
        frame = self._session.sql(text)
        return _Prepared(frame, rerunnable(frame), slots)


def _signature(batch: Batch) -> tuple[Any, ...]:
    """What a batch's rows look like to Spark."""
    return tuple((column.name, column.dataType) for column in batch.schema.fields)
