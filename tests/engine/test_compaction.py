"""How the batches of a state become one: sums, extremes and newest values, in the driver and in Spark alike."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.compaction import compact_trace
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.zsets import VERSION, WEIGHT, Merge

SCHEMA = weighted(
    StructType(
        [
            StructField("key", StringType()),
            StructField("total", LongType()),
            StructField("least", LongType()),
            StructField("greatest", LongType()),
            StructField("last", StringType()),
            StructField(VERSION, LongType()),
        ]
    )
)
MERGES = {
    "total": Merge.SUM,
    "least": Merge.MIN,
    "greatest": Merge.MAX,
    "last": Merge.NEWEST,
    VERSION: Merge.MAX,
    WEIGHT: Merge.SUM,
}
FIRST = [("a", 1, 5, 5, "one", 1, 1), ("b", 2, 2, 2, "two", 1, 1), ("gone", 3, 3, 3, "three", 1, 1)]
SECOND = [("a", 3, 4, 9, None, 3, 0), ("gone", -3, None, None, None, 3, -1)]
THIRD = [("a", 0, 7, 7, "between", 2, 0)]
"""An older version that comes later, as after a merge of other batches."""
MERGED = [("a", 4, 4, 9, None, 3, 1), ("b", 2, 2, 2, "two", 1, 1)]


def _batch(rows: list[tuple[Any, ...]]) -> Batch:
    columns = zip(*rows, strict=True)
    names = [field.name for field in SCHEMA.fields]
    return Batch.in_memory(SCHEMA, pa.table([pa.array(list(column)) for column in columns], names=names))


def _rows(batch: Batch) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in batch.to_arrow().to_pylist())


@pytest.mark.core("driver")
@pytest.mark.parametrize("limits", [DEFAULT_LIMITS, replace(DEFAULT_LIMITS, small_rows=0, small_input=0)], ids=["driver", "spark"])
def test_columns_are_merged_by_their_rules(limits: Limits, sessions: SparkSessions) -> None:
    with tempfile.TemporaryDirectory() as folder:
        context = Context(sessions, BatchViews(sessions), BatchStore(folder), limits=limits)
        # What is in files is merged by Spark.
        first, second, third = (context.spill_if_large(_batch(rows)) for rows in (FIRST, SECOND, THIRD))
        assert (first.table is None) is (limits is not DEFAULT_LIMITS)
        trace = Trace(SCHEMA, (first, second, third), MERGES)
        assert _rows(compact_trace(trace, context)) == MERGED
        part = replace(trace, batches=(second, third), is_part=True)
        later = compact_trace(part, context)
        assert _rows(later) == [("a", 3, 4, 9, None, 3, 0), ("gone", -3, None, None, None, 3, -1)], (
            "a weight of 0 may be a new value"
        )
        assert _rows(compact_trace(replace(trace, batches=(later, first)), context)) == MERGED


def test_a_manifest_notes_the_rules_and_one_of_an_earlier_release_has_them_in_its_names(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    trace = Trace(SCHEMA, (_batch(FIRST),), MERGES).flush(store)
    assert Trace.from_manifest(trace.to_manifest(), store).merges == MERGES
    fields = [StructField(name, LongType()) for name in ("__k0max", "__a0", "__a1max", "__a2min")]
    earlier = {"schema": weighted(StructType(fields)).jsonValue(), "sums": ["__a0", "__a1max", "__a2min", WEIGHT], "batches": []}
    expected = {"__a0": Merge.SUM, "__a1max": Merge.MAX, "__a2min": Merge.MIN, WEIGHT: Merge.SUM}
    assert Trace.from_manifest(earlier, store).merges == expected
