"""A trace: the contents of a relation, or a state of an operator, as a list of immutable batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.zsets import SEQUENCE, WEIGHTS_ADD_UP, Merge

_GROWTH = 2
"""The growth factor of merges: a batch is merged with smaller ones unless it has more than this many times their rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """An immutable list of batches that together are the contents.

    Rows that agree in all key columns are one row, whose other columns are merged by the rules in ``merges``. It exists while its
    weight is not 0. In a relation's trace only weights are merged.

    :param schema: the columns of all batches; the weight is the last one
    :param batches: the batches, oldest first as long as nothing was merged
    :param merges: the merge rule of each column; all other columns are the key
    :param is_part: True if these are only some of the batches of a trace, so that others may have rows of the same keys
    """

    schema: StructType
    batches: tuple[Batch, ...] = ()
    merges: Mapping[str, Merge] = field(default_factory=lambda: WEIGHTS_ADD_UP)
    is_part: bool = False

    @property
    def rows(self) -> int:
        """The number of stored rows, an upper bound of the number of distinct rows."""
        return sum(batch.rows for batch in self.batches)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return tuple(column.name for column in self.schema.fields if column.name not in self.merges)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that readers of a relation see."""
        return tuple(name for name in self.keys if name != SEQUENCE)

    @property
    def adds_up_weights_only(self) -> bool:
        """True if only the weights of rows are merged."""
        return len(self.merges) == 1

    @property
    def drops_zeros(self) -> bool:
        """True if rows whose sums are all 0 may be left out.

        A part keeps them if other columns are merged in another way: they may change a row of the same key in another batch.
        """
        return not self.is_part or all(merge is Merge.SUM for merge in self.merges.values())

    @property
    def in_memory(self) -> bool:
        """True if all rows are in the driver's memory."""
        return all(batch.table is not None for batch in self.batches)

    def is_small(self, limits: Limits) -> bool:
        """Return True if the whole trace may be planned from the driver's memory."""
        return self.in_memory and self.rows <= limits.small_rows

    @property
    def insert_only(self) -> bool:
        """True if every stored weight is 1, so that the stored rows are the contents."""
        return all(batch.insert_only for batch in self.batches)

    def append(self, batch: Batch) -> Trace:
        """Return the trace with one more delta. An empty delta changes nothing."""
        return self if batch.rows == 0 else replace(self, batches=(*self.batches, batch))

    def flush(self, store: BatchStore) -> Trace:
        """Return the same trace with all rows in files of ``store``."""
        return replace(self, batches=tuple(batch.flush(store) for batch in self.batches))

    def needs_merge(self, limits: Limits) -> bool:
        """Return True if there are so many batches that reading them costs noticeably more than reading one."""
        files = sum(1 for batch in self.batches if batch.table is None)
        return len(self.batches) - files > limits.merges.memory_batches or files > limits.merges.file_batches

    def merge(self, consolidate: Callable[[Trace], Batch], limits: Limits) -> Trace:
        """Return the same contents in fewer batches.

        Small batches in memory become one. Of the larger ones in memory, and of many in files, the smaller ones become one. A row
        is copied again only when its batch has about doubled, so both the number of batches and the copying stay logarithmic.
        ``consolidate`` merges a trace's rows into one batch, and decides whether that goes to a file.
        """
        memory = tuple(batch for batch in self.batches if batch.table is not None)
        files = tuple(batch for batch in self.batches if batch.table is None)
        merged_files = files
        if len(files) > limits.merges.file_batches:
            few = _find_smallest(files, limits.merges.file_batches)
            rest = tuple(batch for batch in files if batch not in few)
            merged_files = (*rest, consolidate(self._part(few)))
        if len(memory) > 1:
            memory = self._merge_in_memory(memory, consolidate, limits)
        return replace(self, batches=tuple(batch for batch in (*merged_files, *memory) if batch.rows))

    def _merge_in_memory(
        self, memory: tuple[Batch, ...], consolidate: Callable[[Trace], Batch], limits: Limits
    ) -> tuple[Batch, ...]:
        part = self._part(memory)
        if part.rows <= limits.small_rows and sum(batch.memory_bytes for batch in memory) <= limits.small_bytes:
            if part.insert_only and self.adds_up_weights_only:
                return (Batch.in_memory(self.schema, pa.concat_tables([batch.table for batch in memory])),)
            return (consolidate(part),)
        few = _find_smallest(memory, max(1, limits.merges.memory_batches // 2))
        rest = tuple(batch for batch in memory if batch not in few)
        return (*rest, consolidate(self._part(few)))

    def in_files_only(self, store: BatchStore, limits: Limits) -> Trace:
        """Return the same trace with the batches that are not small in files of ``store``, and not in memory."""
        return replace(self, batches=tuple(b if b.is_small(limits) else b.in_files_only(store) for b in self.batches))

    def held_bytes(self, limits: Limits) -> int:
        """Return the bytes in memory of batches that are not small."""
        return sum(batch.memory_bytes for batch in self.batches if not batch.is_small(limits))

    def compact(self, consolidate: Callable[[Trace], Batch]) -> Trace:
        """Return the same contents in one batch.

        :param consolidate: the function that merges a trace's rows into one batch
        """
        whole = consolidate(self)
        return replace(self, batches=(whole,) if whole.rows else ())

    def _part(self, batches: tuple[Batch, ...]) -> Trace:
        return replace(self, batches=batches, is_part=len(batches) < len(self.batches))

    def files(self) -> set[str]:
        """Return the names of all files that the trace needs."""
        return {name for batch in self.batches for name in batch.files}

    def to_manifest(self) -> dict[str, Any]:
        """Return the trace as JSON.

        :raises ValueError: if a batch is not flushed
        """
        return {
            "schema": self.schema.jsonValue(),
            "sums": list(self.merges),
            "merges": {name: merge.value for name, merge in self.merges.items()},
            "batches": [batch.to_manifest() for batch in self.batches],
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any], store: BatchStore, limits: Limits = DEFAULT_LIMITS) -> Trace:
        """Return the trace that :meth:`to_manifest` described.

        :param manifest: as :meth:`to_manifest` made it
        :param store: the store with the batches' files
        :param limits: the limits that define a small batch
        :raises StorageError: when a file is missing or damaged
        """
        schema = StructType.fromJson(manifest["schema"])
        batches = tuple(Batch.from_manifest(part, schema, store, limits) for part in manifest["batches"])
        return cls(schema, batches, _merges(manifest))


def _merges(manifest: dict[str, Any]) -> Mapping[str, Merge]:
    """Return the merge rules of a stored trace.

    Earlier releases recorded only the columns, and had the rule of an extreme in its name.
    """
    noted = manifest.get("merges")
    if noted is not None:
        return {name: Merge(rule) for name, rule in noted.items()}
    extremes = {"max": Merge.MAX, "min": Merge.MIN}
    return {name: extremes.get(name[-3:], Merge.SUM) if name.startswith("__a") else Merge.SUM for name in manifest["sums"]}


def _find_smallest(batches: tuple[Batch, ...], few: int) -> tuple[Batch, ...]:
    """Return the batches worth merging: enough of the smallest ones that ``few`` are left, and others that are not much larger."""
    ordered = sorted(batches, key=lambda batch: batch.rows)
    least = max(2, len(ordered) - few + 1)
    total = 0
    for count, batch in enumerate(ordered):
        if count >= least and batch.rows > _GROWTH * total:
            return tuple(ordered[:count])
        total += batch.rows
    return tuple(ordered)
