"""A trace: the running sum of a relation's deltas (or of an operator's accumulators) as a list of immutable batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.storage.batch_store import BatchStore


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """An immutable list of batches whose sum is the contents.

    Rows that agree in all columns outside ``sums`` are one row, the ``sums`` columns of which add up; it is there while its weight
    is not 0. A relation's trace sums only the weight; an aggregate's state also sums its accumulators.
    """

    schema: StructType
    batches: tuple[Batch, ...] = ()
    sums: tuple[str, ...] = (WEIGHT,)

    @property
    def rows(self) -> int:
        """Stored rows: an upper bound of the number of distinct rows."""
        return sum(batch.rows for batch in self.batches)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell rows apart."""
        return tuple(column.name for column in self.schema.fields if column.name not in self.sums)

    @property
    def in_memory(self) -> bool:
        """Whether all rows are in the driver's memory."""
        return all(batch.table is not None for batch in self.batches)

    def is_small(self, limits: Limits) -> bool:
        """Whether the whole trace may be planned from the driver's memory."""
        return self.in_memory and self.rows <= limits.small_rows

    @property
    def insert_only(self) -> bool:
        """Whether every stored weight is 1, so that the stored rows are the contents."""
        return all(batch.insert_only for batch in self.batches)

    def append(self, batch: Batch) -> Trace:
        """The trace after one more delta; an empty one leaves it as it is."""
        return self if batch.rows == 0 else replace(self, batches=(*self.batches, batch))

    def flush(self, store: BatchStore) -> Trace:
        """The same trace with all rows in files of ``store``."""
        return replace(self, batches=tuple(batch.flush(store) for batch in self.batches))

    def needs_merge(self, limits: Limits) -> bool:
        """Whether there are so many batches that reading them all costs noticeably more than reading one."""
        files = sum(1 for batch in self.batches if batch.table is None)
        return len(self.batches) - files > limits.memory_batches or files > limits.file_batches

    def merge(self, consolidate: Callable[[Trace], Batch], limits: Limits) -> Trace:
        """The same contents in fewer batches.

        Batches in memory become one (it goes to a file when it outgrows memory, which ``consolidate`` decides). When there are many
        batches in files, the smaller ones become one: a row is written again when its batch has about doubled, so that
        the number of batches and the writing both stay logarithmic. ``consolidate`` sums a trace's rows into one batch.
        """
        memory = tuple(batch for batch in self.batches if batch.table is not None)
        files = tuple(batch for batch in self.batches if batch.table is None)
        merged_files = files
        if len(files) > limits.file_batches:
            few = _smallest(files, limits)
            rest = tuple(batch for batch in files if batch not in few)
            merged_files = (*rest, consolidate(replace(self, batches=few)))
        if len(memory) > 1:
            part = replace(self, batches=memory)
            small = part.rows <= limits.small_rows and sum(batch.memory_bytes for batch in memory) <= limits.small_bytes
            if part.insert_only and small and self.sums == (WEIGHT,):
                memory = (Batch.in_memory(self.schema, pa.concat_tables([batch.table for batch in memory])),)
            else:
                memory = (consolidate(part),)
        return replace(self, batches=tuple(batch for batch in (*merged_files, *memory) if batch.rows))

    def files(self) -> set[str]:
        """Names of all files the trace needs."""
        return {name for batch in self.batches for name in batch.files}

    def to_manifest(self) -> dict[str, Any]:
        """The trace as JSON. Raises ValueError when a batch is not flushed."""
        return {
            "schema": self.schema.jsonValue(),
            "sums": list(self.sums),
            "batches": [batch.to_manifest() for batch in self.batches],
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any], store: BatchStore, limits: Limits = DEFAULT_LIMITS) -> Trace:
        """The trace that :meth:`to_manifest` described. Raises StorageError when a file is missing or damaged."""
        schema = StructType.fromJson(manifest["schema"])
        batches = tuple(Batch.from_manifest(part, schema, store, limits) for part in manifest["batches"])
        return cls(schema, batches, tuple(manifest["sums"]))


def _smallest(files: tuple[Batch, ...], limits: Limits) -> tuple[Batch, ...]:
    """The batches worth merging: enough of the smallest ones to make them few, and those that are not much larger than these."""
    ordered = sorted(files, key=lambda batch: batch.rows)
    least = max(2, len(ordered) - limits.file_batches + 1)
    total = 0
    for count, batch in enumerate(ordered):
        if count >= least and batch.rows > limits.growth * total:
            return tuple(ordered[:count])
        total += batch.rows
    return tuple(ordered)
