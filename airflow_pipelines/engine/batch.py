"""Batches: immutable pieces of deltas and traces, in memory as Arrow tables or in Parquet files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.spark.arrow_frames import arrow_frame, arrow_schema, relaxed
from airflow_pipelines.engine.spark.intervals import has_months
from airflow_pipelines.engine.spark.partitioned_frames import partitioned_frame
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.rows.zsets import WEIGHT

__all__ = ["WEIGHT", "Batch", "concat_batches", "weighted"]

_numbers = itertools.count(1)
_COMPRESSED = 3
"""The assumed ratio of the size of rows in memory to their size in a file."""


def weighted(schema: StructType) -> StructType:
    """Return the schema of a relation's batches: its columns and the weight."""
    return StructType([*schema.fields, StructField(WEIGHT, LongType(), nullable=False)])


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Batch:
    """Rows with weights. A batch never changes after its creation.

    :param schema: Spark's schema, weight included
    :param rows: the number of stored rows, which is not the sum of their weights
    :param table: the rows; None when they are only in files
    :param files: the names of the files in ``store``; none while the rows are only in memory
    :param insert_only: True if every weight is 1
    :param number: the number that identifies the batch within the process
    :param memory_bytes: the size of the rows in the driver's memory; 0 when they are only in files
    """

    schema: StructType
    rows: int
    table: pa.Table | None = None
    files: tuple[str, ...] = ()
    store: BatchStore | None = None
    insert_only: bool = False
    number: int = field(default_factory=lambda: next(_numbers))
    memory_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        # Computed once: for a table of many chunks this takes as long as a lookup.
        object.__setattr__(self, "memory_bytes", 0 if self.table is None else int(self.table.nbytes))

    @classmethod
    def in_memory(cls, schema: StructType, table: pa.Table) -> Batch:
        """Return a batch of the rows of a table. Its columns are found by name and cast to ``schema``'s Arrow types."""
        table = cast_to_schema(table, arrow_schema(schema))
        return cls(schema, table.num_rows, table, insert_only=_has_unit_weights(table))

    @classmethod
    def in_files(cls, schema: StructType, rows: int, files: tuple[str, ...], store: BatchStore, insert_only: bool) -> Batch:
        """Return a batch whose rows are in files.

        :param schema: its columns, the weight included
        :param rows: the number of rows of all files together
        :param files: the names of the files in the store
        :param store: the store, which keeps the files as long as the batch lives
        :param insert_only: True if each row has the weight 1
        """
        batch = cls(schema, rows, None, files, store, insert_only)
        store.hold(batch)
        return batch

    @classmethod
    def empty(cls, schema: StructType) -> Batch:
        """Return a batch without rows."""
        return cls.in_memory(schema, arrow_schema(schema).empty_table())

    def is_small(self, limits: Limits) -> bool:
        """Return True if one task is enough for the rows of the batch."""
        return self.rows <= limits.small_rows and self.memory_bytes <= limits.small_bytes

    @property
    def row_bytes(self) -> int:
        """The approximate size of a row in memory, in bytes."""
        if self.rows == 0:
            return 0
        if self.table is not None:
            return self.memory_bytes // self.rows
        return 0 if self.store is None else _COMPRESSED * self.store.size(self.files) // self.rows

    def passing(self, store: BatchStore) -> Batch:
        """Return the same rows as a batch that stays in memory for one step only, because it is too large to be held.

        A query that reads the batch makes Spark read the rows from files.

        :param store: the store that gets the files when a query needs them
        """
        return replace(self, store=store)

    @property
    def is_passing(self) -> bool:
        """True if the rows are in memory only for the current step."""
        return self.table is not None and self.store is not None and not self.files

    def in_files_only(self, store: BatchStore) -> Batch:
        """Return a new batch with the same rows in files of ``store`` and not in memory.

        It has another number than this batch, whose rows Spark may still hold.
        """
        flushed = self.flush(store)
        if flushed.table is None or not flushed.files:
            return flushed
        with store.lock:
            out = replace(flushed, table=None, number=next(_numbers))
            store.hold(out)
        return out

    def flush(self, store: BatchStore) -> Batch:
        """Return the same batch with its rows in files of ``store``; the rows in memory are kept as well."""
        if self.files or self.rows == 0:
            return self
        with store.lock:
            flushed = replace(self, files=store.write(self.table), store=store)
            store.hold(flushed)
        return flushed

    def to_arrow(self) -> pa.Table:
        """Return the rows, weight included, as an Arrow table. The files of a batch that is not in memory are read."""
        if self.table is not None:
            return self.table
        arrow = arrow_schema(self.schema)
        if self.store is None or not self.files:
            return arrow.empty_table()
        return cast_to_schema(self.store.read(self.files), arrow)

    def frame(self, spark: SparkSession, limits: Limits = DEFAULT_LIMITS) -> DataFrame:
        """Return the rows as a DataFrame: directly from memory if they are there, else as a scan of the files.

        :param spark: the session of the DataFrame
        :param limits: the limits that decide the layout: a small batch is a local relation; a larger one has a partition for each
            core
        """
        if self.table is not None:
            if self.rows and not self.is_small(limits):
                return partitioned_frame(spark, self.table, relaxed(self.schema))
            if has_months(self.schema):
                return arrow_frame(spark, self.table, relaxed(self.schema))
            # Spark stops reading a chunked table at its first empty chunk.
            return spark.createDataFrame(self.table.combine_chunks(), schema=relaxed(self.schema))
        if self.store is None or not self.files:
            return spark.createDataFrame([], schema=relaxed(self.schema))
        return spark.read.schema(relaxed(self.schema)).parquet(*(str(self.store.open(name)) for name in self.files))

    def to_manifest(self) -> dict[str, Any]:
        """Persist the batch's files, and return the batch as JSON.

        :raises ValueError: if its rows are only in memory
        """
        if self.rows and not self.files:
            raise ValueError("a batch must be flushed before it can be named in a manifest")
        if self.store is not None:
            self.store.persist(self.files)
        return {"rows": self.rows, "files": list(self.files), "insert_only": self.insert_only}

    @classmethod
    def from_manifest(
        cls, manifest: dict[str, Any], schema: StructType, store: BatchStore, limits: Limits = DEFAULT_LIMITS
    ) -> Batch:
        """Return the batch that :meth:`to_manifest` described; a small one is read into memory.

        :param manifest: as :meth:`to_manifest` made it
        :param schema: the batch's columns, the weight included
        :param store: the store with the batch's files
        :param limits: the limits that define a small batch
        :raises StorageError: if a file is missing or damaged; the error names it
        """
        files = tuple(manifest["files"])
        store.verify(files)
        batch = cls.in_files(schema, int(manifest["rows"]), files, store, bool(manifest["insert_only"]))
        if batch.rows <= limits.small_rows:
            batch = replace(batch, table=batch.to_arrow())
            store.hold(batch)
        return batch


def concat_batches(batches: Sequence[Batch]) -> Batch:
    """Return the rows of at least one batch of a relation, all of them in memory, as one batch."""
    if len(batches) == 1:
        return batches[0]
    table = pa.concat_tables([batch.table for batch in batches])
    return Batch(batches[0].schema, table.num_rows, table, insert_only=all(batch.insert_only for batch in batches))


def _has_unit_weights(table: pa.Table) -> bool:
    return table.num_rows == 0 or bool(pc.all(pc.equal(table[WEIGHT], 1)).as_py())
