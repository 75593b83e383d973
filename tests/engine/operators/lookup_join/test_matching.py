"""Rows are looked up by keys that can be compared, and by no others."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, LongType, StructField, StructType, TimestampNTZType, TimestampType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.execution.ways import Declined
from airflow_pipelines.engine.limits import DEFAULT_LIMITS
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows, matching_batch, wanted_of
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.lookup import Lookup

WINDOW = StructType([StructField("start", LongType()), StructField("end", LongType())])


def test_distinct_rows_has_each_once() -> None:
    assert distinct_rows({"k": pa.array([1, 2, 1, None, None])}).num_rows == 3


def test_rows_with_a_struct_are_left_to_a_scan() -> None:
    schema = weighted(StructType([StructField("w", WINDOW), StructField("k", LongType())]))
    windows = pa.array([{"start": 0, "end": 1}, {"start": 0, "end": 1}])
    batch = Batch.in_memory(schema, pa.table({"w": windows, "k": [1, 2], WEIGHT: [1, 1]}))
    with pytest.raises(Declined, match="has no index"):
        matching_batch((batch,), schema, distinct_rows({"w": windows}), DEFAULT_LIMITS)
    found = matching_batch((batch,), schema, distinct_rows({"k": pa.array([2, 2])}), DEFAULT_LIMITS)
    assert found.to_arrow()["k"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("stored", "kind", "zones"),
    [(TimestampNTZType(), "timestamp", (None, "UTC")), (TimestampType(), "timestamp_ntz", ("UTC", None))],
)
def test_instants_are_looked_up_by_local_times_and_the_other_way_around(
    stored: DataType, kind: str, zones: tuple[str | None, str | None]
) -> None:
    schema = weighted(StructType([StructField("at", stored), StructField("k", LongType())]))
    hours = [datetime.datetime(2024, 1, 1, hour) for hour in (5, 6)]
    own, given = (pa.timestamp("us", zone) for zone in zones)
    batch = Batch.in_memory(schema, pa.table({"at": pa.array(hours, own), "k": [1, 2], WEIGHT: [1, 1]}))
    relation = RelationVersions(Trace(schema, (batch,)))
    wanted = wanted_of(Lookup("t", ("at",), None), [kind], [pa.array(hours[1:], given)], {"t": relation})
    assert wanted is not None
    found = matching_batch((batch,), schema, wanted.rows, DEFAULT_LIMITS)
    assert found.to_arrow()["k"].to_pylist() == [2]
