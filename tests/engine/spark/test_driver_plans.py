"""Plans that run in the driver: the rows of a job, without a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType, YearMonthIntervalType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.limits import Limits, PlanLimits
from airflow_pipelines.engine.spark import batch_bytes, planned_query
from airflow_pipelines.engine.spark.internals import jvm, singleton
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.jobs import started_jobs
from airflow_pipelines.engine.spark.planned_query import PlannedQuery, plan_query
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory
from airflow_pipelines.engine.spark.result_connection import ResultTooLargeError
from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

SCHEMA = StructType([StructField("k", LongType()), StructField("s", StringType()), StructField("m", YearMonthIntervalType())])


def batch(count: int, text: str = "text") -> Batch:
    columns = {"k": pa.array(range(count), pa.int64()), "s": pa.array([f"{text} {k}" for k in range(count)], pa.string())}
    return Batch(SCHEMA, count, pa.table({**columns, "m": pa.array(range(count), pa.int32())}))


@pytest.fixture(params=["interpreted", "compiled"])
def planned(request: pytest.FixtureRequest, sessions: SparkSessions) -> Callable[..., PlannedQuery]:
    """Plans a query over the rows of :func:`batch`, each ``{}`` in its text."""
    factory = LeafFactory(sessions.small if request.param == "interpreted" else sessions.compiled)

    def plan(text: str) -> PlannedQuery:
        parts = text.split("{}")
        return plan_query(factory, parts, (0,) * (len(parts) - 1), [batch(3)])

    return plan


@pytest.mark.parametrize(
    "count",
    [
        0,
        pytest.param(1, marks=pytest.mark.rest),
        40,
        1_000,
        *(pytest.param(many, marks=pytest.mark.rest) for many in (1_001, 40_000)),
    ],
    ids=lambda count: f"{count} rows",
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, s, m FROM {}",
        "SELECT k % 7 AS g, COUNT(*) AS n, MAX(s) AS most FROM {} GROUP BY k % 7 ORDER BY g",
        "SELECT k + 1 AS k FROM {} WHERE s LIKE '%1' ORDER BY k DESC LIMIT 20",
    ],
)
def test_the_rows_are_those_of_a_job(
    planned: Callable[..., PlannedQuery], sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch, text: str, count: int
) -> None:
    # Small enough to be planned with leaves that are too small, and large enough for several record batches.
    rows = batch(count)
    query = planned(text)
    assert query.in_driver is not None
    before = started_jobs(sessions.small.sparkContext)
    found = query.result([rows])
    if found is None:
        query = plan_query(LeafFactory(query.frame.sparkSession), text.split("{}"), (0,), [rows])
        found = query.result([rows])
    assert started_jobs(sessions.small.sparkContext) == before
    monkeypatch.setattr(query, "in_driver", None)
    expected = query.result([rows])
    assert found is not None
    assert expected is not None
    assert found.schema == expected.schema
    assert found.rows.to_pylist() == expected.rows.to_pylist()
    assert found.rows.schema.types == expected.rows.schema.types
    assert started_jobs(sessions.small.sparkContext) > before


@pytest.mark.parametrize("limit", [0, batch_bytes._SENT, 1 << 20])
def test_few_rows_with_many_bytes_come_whole(
    planned: Callable[..., PlannedQuery], monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(batch_bytes, "_SENT", limit)
    query = planned("SELECT REPEAT(s, 2000) AS s FROM {}")
    found = query.result([batch(3)])
    assert found is not None
    assert found.rows["s"].to_pylist() == [f"text {k}" * 2000 for k in range(3)]


def test_a_result_that_is_too_large_is_refused_and_the_next_one_is_right(planned: Callable[..., PlannedQuery]) -> None:
    query = planned("SELECT s FROM {}")
    for count, limit, fits in ((900, 10, True), (2_000, 1_000, False), (2_000, 1 << 20, True)):
        rows = batch(count)
        if not fits:
            with pytest.raises(ResultTooLargeError):
                query.result([rows], limit) or plan_query(
                    LeafFactory(query.frame.sparkSession), ("SELECT s FROM ", ""), (0,), [rows]
                ).result([rows], limit)
            continue
        query = plan_query(LeafFactory(query.frame.sparkSession), ("SELECT s FROM ", ""), (0,), [rows])
        found = query.result([rows], limit if count > 1_000 else 1 << 20)
        assert found is not None
        assert found.rows.num_rows == count


def test_an_error_of_an_expression_is_sparks_and_leaves_the_thread_as_it_was(
    planned: Callable[..., PlannedQuery], spark: SparkSession
) -> None:
    query = planned("SELECT 8 DIV (k - 2) AS q FROM {}")
    with pytest.raises(SPARK_ERRORS, match="DIVIDE_BY_ZERO"):
        query.result([batch(3)])
    assert singleton(jvm(spark.sparkContext).org.apache.spark, "TaskContext").get() is None
    found = query.result([batch(2)])
    assert found is not None
    assert found.rows["q"].to_pylist() == [-4, -8]


def test_expressions_see_the_settings_of_their_session(planned: Callable[..., PlannedQuery]) -> None:
    # The session's ANSI mode and time zone, where the application's are others.
    query = planned("SELECT CAST(s AS INT) AS n FROM {}")
    with pytest.raises(SPARK_ERRORS, match="CAST_INVALID_INPUT"):
        query.result([batch(1)])
    hours = planned("SELECT DATE_FORMAT(TIMESTAMP '2026-01-01 00:00:00', 'HH') AS h, k FROM {}").result([batch(1)])
    assert hours is not None
    assert hours.rows["h"].to_pylist() == ["00"]


def test_what_may_take_long_is_a_job(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    context, factory = sessions.small.sparkContext, LeafFactory(sessions.small)
    pairs = plan_query(factory, ("SELECT COUNT(*) AS n FROM ", " a JOIN ", " b ON a.k = b.k"), (0, 0), [batch(3)])
    before = started_jobs(context)
    for most, jobs in ((3, 0), (2, 1)):
        monkeypatch.setattr(planned_query, "_SQUARED", most)
        found = pairs.result([batch(3)])
        assert found is not None
        assert found.rows["n"].to_pylist() == [3]
        assert started_jobs(context) - before == jobs
    # What took long twice in a row is a job from then on, with a plan of its own.
    once = plan_query(factory, ("SELECT k FROM ", " ORDER BY k"), (0,), [batch(3)])
    for long_s, count, in_driver in ((0, 3, True), (60, 3, True), (0, 2, True), (0, 3, False), (60, 2, False)):
        monkeypatch.setattr(planned_query, "_LONG_S", long_s)
        before = started_jobs(context)
        found = once.result([batch(count)])
        assert found is not None
        assert found.rows["k"].to_pylist() == list(range(count))
        assert (once.in_driver is not None) is in_driver
    assert started_jobs(context) > before
    assert once.runs_again


def test_python_functions_are_left_to_jobs(spark: SparkSession) -> None:
    sessions = SparkSessions.of(spark)
    sessions.small.udf.register("twice", lambda k: 2 * k, "bigint")
    views = BatchViews(sessions, Limits())
    rows = batch(3)
    text = f"SELECT twice(k) AS k FROM {views.table(rows)}"
    assert views.result_in_driver(text, 1 << 20) is None
    before = started_jobs(spark.sparkContext)
    assert views.result(text).rows["k"].to_pylist() == [0, 2, 4]
    assert started_jobs(spark.sparkContext) > before
    views.close()


def test_lanes_have_plans_of_their_own(sessions: SparkSessions) -> None:
    views, rows = BatchViews(sessions, Limits()), batch(3)
    text = f"SELECT k + 1 AS k FROM {views.table(rows)}"
    for lane in (0, 1, 0):
        found: Any = views.result_in_driver(text, 1 << 20, lane)
        assert found.rows["k"].to_pylist() == [1, 2, 3]
    assert len(views.plans()) == 2
    views.close()


def test_nothing_runs_in_the_driver_when_no_query_may_be_prepared(sessions: SparkSessions) -> None:
    views, rows = BatchViews(sessions, Limits(plans=PlanLimits(queries=0))), batch(3)
    assert views.result_in_driver(f"SELECT k FROM {views.table(rows)}", 1 << 20) is None
    views.close()
