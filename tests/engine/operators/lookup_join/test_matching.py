"""Rows are looked up by keys that can be compared, and by no others."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.limits import DEFAULT_LIMITS
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows, matching_batch

WINDOW = StructType([StructField("start", LongType()), StructField("end", LongType())])


def test_distinct_rows_has_each_once() -> None:
    assert distinct_rows({"k": pa.array([1, 2, 1, None, None])}).num_rows == 3


def test_rows_with_a_struct_are_left_to_a_scan() -> None:
    schema = weighted(StructType([StructField("w", WINDOW), StructField("k", LongType())]))
    windows = pa.array([{"start": 0, "end": 1}, {"start": 0, "end": 1}])
    batch = Batch.in_memory(schema, pa.table({"w": windows, "k": [1, 2], WEIGHT: [1, 1]}))
    assert matching_batch((batch,), schema, distinct_rows({"w": windows}), DEFAULT_LIMITS) is None
    found = matching_batch((batch,), schema, distinct_rows({"k": pa.array([2, 2])}), DEFAULT_LIMITS)
    assert found is not None
    assert found.to_arrow()["k"].to_pylist() == [2]
