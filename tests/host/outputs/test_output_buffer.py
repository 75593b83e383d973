"""Buffers of outputs, and how far deliveries are while they hold something."""

from __future__ import annotations

import time
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.outputs import output_buffer
from airflow_pipelines.host.outputs.deliveries import Deliveries, Mark
from airflow_pipelines.host.outputs.output_buffer import OutputBuffer

SCHEMA = weighted(StructType([StructField("x", IntegerType())]))


def delta(*rows: tuple[int, int]) -> Batch:
    return Batch.in_memory(SCHEMA, pa.table({"x": [x for x, _ in rows], "__weight": [weight for _, weight in rows]}))


def buffer(**options: object) -> OutputBuffer:
    return OutputBuffer(ConnectorOptions.model_validate({"enable_output_buffer": True, **options}))


def test_equal_rows_are_added_up() -> None:
    kept = buffer()
    kept.add(3, delta((1, 1), (2, 1)))
    kept.add(5, delta((1, -1), (2, 2), (3, 1)))
    assert (kept.first_step, kept.last_step, kept.batches, kept.records) == (3, 5, 2, 5)
    taken = kept.take().table
    assert taken is not None
    assert sorted(zip(taken["x"].to_pylist(), taken["__weight"].to_pylist(), strict=True)) == [(2, 3), (3, 1)]
    assert (kept.batches, kept.records, kept.is_due) == (0, 0, False)


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = buffer(max_output_buffer_size_records=2)
    kept.add(1, delta((1, 1)))
    assert not kept.is_due
    assert kept.until_due is None
    kept.add(2, delta((2, 1)))
    assert kept.is_due
    kept = buffer(max_output_buffer_time_millis=5000)
    assert kept.until_due is None
    kept.add(1, delta((1, 1)))
    assert kept.until_due is not None
    assert 4 < kept.until_due <= 5
    assert not kept.is_due
    at_once = buffer(max_output_buffer_time_millis=0)
    assert not at_once.is_due, "there is nothing in it"
    at_once.add(1, delta((1, 1)))
    assert at_once.is_due
    now = time.monotonic()
    monkeypatch.setattr(output_buffer.time, "monotonic", lambda: now + 6)
    assert kept.is_due


def test_how_far_deliveries_are() -> None:
    source = InputEndpoint(f"t.{uuid4()}", "t")

    def mark(step: int) -> Mark:
        return Mark(step, Counters(processed_records=10 * step), {source: 10 * step})

    deliveries = Deliveries()
    assert deliveries.add_mark(mark(1), first_kept=1) is None
    assert deliveries.add_mark(mark(2), first_kept=1) is None
    reached = deliveries.add_mark(mark(3), first_kept=3)
    assert reached is not None
    assert (reached.step, reached.records[source]) == (2, 20)
    deliveries.forget()
    for step in range(10, 5000):
        assert deliveries.add_mark(mark(step), first_kept=10) is None
    reached = deliveries.add_mark(mark(5000), first_kept=4999)
    assert reached is not None
    assert 4000 < reached.step < 4999


def test_what_a_failed_output_had_delivered_is_told_from_what_it_has_not() -> None:
    source = InputEndpoint(f"t.{uuid4()}", "t")

    def mark(step: int) -> Mark:
        return Mark(step, Counters(processed_records=10 * step), {source: 10 * step})

    deliveries = Deliveries()
    deliveries.lose("early", 1, {source: 5})
    deliveries.is_serving = True
    for step in (1, 2, 3):
        deliveries.add_mark(mark(step), first_kept=1)
    deliveries.lose("in the middle", 3, {source: 0})
    deliveries.forget()
    deliveries.lose("all but the last step", 4, {source: 30})
    assert deliveries.losses == {
        # Before the pipeline served it is not known what of its inputs was in which step.
        "early": {},
        "in the middle": {source: 20},
        "all but the last step": {source: 30},
    }
