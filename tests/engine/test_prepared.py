"""Queries that are planned once give the answer over the rows of the moment."""

from __future__ import annotations

import gc
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.frames import Frames
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.prepared import PreparedQueries
from airflow_pipelines.engine.sessions import SparkSessions
from airflow_pipelines.engine.slots import can_refill

COLUMNS = [StructField("k", LongType()), StructField("v", DecimalType(12, 2)), StructField("s", StringType())]
SCHEMA = weighted(StructType(COLUMNS))


def batch(*rows: tuple[int, str, str | None]) -> Batch:
    columns = {"k": [k for k, _, _ in rows], "v": pa.array([v for _, v, _ in rows]).cast(pa.decimal128(12, 2))}
    return Batch.in_memory(
        SCHEMA, pa.table({**columns, "s": pa.array([s for _, _, s in rows], pa.string()), WEIGHT: [1] * len(rows)})
    )


@pytest.fixture
def frames(spark: SparkSession) -> Any:
    made = Frames(SparkSessions.of(spark))
    yield made
    made.close()


def test_this_spark_lets_the_rows_of_a_plan_be_replaced(spark: SparkSession) -> None:
    assert can_refill(SparkSessions.of(spark).small)


def test_the_same_query_is_planned_once_and_sees_the_rows_of_each_run(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    prepare = PreparedQueries._prepare
    monkeypatch.setattr(PreparedQueries, "_prepare", lambda *given: planned.append("") or prepare(*given))  # type: ignore[func-returns-value]
    for many in (1, 3, 0, 2):
        left = batch(*((k, "1.50", None) for k in range(many)))
        right = batch((0, "2.00", "a"), (1, "3.00", "b"))
        joined = f"{frames.table(left)} l JOIN {frames.table(right)} r ON l.k = r.k"
        text = f"SELECT l.k, SUM(l.v * r.v) AS x, MAX(r.s) AS s FROM {joined} GROUP BY l.k"
        found = {row["k"]: (str(row["x"]), row["s"]) for row in frames.result(text).rows.to_pylist()}
        assert found == dict([(0, ("3.0000", "a")), (1, ("4.5000", "b"))][:many])
    assert len(planned) == 1


def test_sub_queries_and_outer_joins_see_the_rows_of_each_run(frames: Frames) -> None:
    for many in (1, 4, 2):
        left, right = batch(*((k, "1.00", None) for k in range(many))), batch((1, "5.00", "x"))
        text = (
            f"SELECT l.k, (SELECT MAX(k) FROM {frames.table(left)}) AS most, r.s FROM {frames.table(left)} l"
            f" LEFT JOIN {frames.table(right)} r ON l.k < r.k WHERE l.k < (SELECT COUNT(*) FROM {frames.table(left)})"
        )
        found = sorted((row["k"], row["most"], row["s"]) for row in frames.result(text).rows.to_pylist())
        assert found == [(k, many - 1, "x" if k < 1 else None) for k in range(many)]


def test_more_rows_than_the_first_time_are_all_seen(frames: Frames) -> None:
    for many in (1, 20_000, 3):
        rows = batch(*((k, "1.00", "some text") for k in range(many)))
        assert frames.result(f"SELECT COUNT(*) AS n, MAX(s) AS s FROM {frames.table(rows)}").rows.to_pylist() == [
            {"n": many, "s": "some text"}
        ]


def test_the_same_text_over_other_columns_is_another_query(frames: Frames) -> None:
    rows = batch((1, "2.00", "a"))
    text = Batch.in_memory(weighted(StructType([StructField("k", StringType())])), pa.table({"k": ["x"], WEIGHT: [1]}))
    assert frames.result(f"SELECT k FROM {frames.table(rows)}").rows.to_pylist() == [{"k": 1}]
    assert frames.result(f"SELECT k FROM {frames.table(text)}").rows.to_pylist() == [{"k": "x"}]


def test_what_is_too_large_to_be_copied_is_read_all_the_same(spark: SparkSession) -> None:
    frames = Frames(SparkSessions.of(spark), Limits(slot_bytes=10))
    rows = batch((1, "2.00", "a"), (2, "2.00", "b"))
    assert frames.result(f"SELECT SUM(k) AS k FROM {frames.table(rows)}").rows.to_pylist() == [{"k": 3}]


def test_plans_that_were_not_used_for_long_make_room(spark: SparkSession) -> None:
    frames = Frames(SparkSessions.of(spark), Limits(prepared_queries=2))
    rows = batch((3, "2.00", "a"))
    for factor in (1, 2, 3, 4, 1):
        assert frames.result(f"SELECT k * {factor} AS k FROM {frames.table(rows)}").rows.to_pylist() == [{"k": 3 * factor}]
    assert len(frames._prepared._known) == 2


def test_an_error_leaves_the_query_as_it_was(frames: Frames) -> None:
    for many, fails in ((2, False), (0, True), (4, False)):
        rows = batch((many, "1.00", None))
        text = f"SELECT 8 DIV k AS q FROM {frames.table(rows)}"
        if fails:
            with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
                frames.result(text)
        else:
            assert frames.result(text).rows.to_pylist() == [{"q": 8 // many}]


def test_a_batch_that_is_gone_is_named(frames: Frames) -> None:
    text = f"SELECT * FROM {frames.table(batch((1, '1.00', None)))}"
    gc.collect()
    with pytest.raises(LookupError, match=r"batch \d+ is gone"):
        frames.result(text)
