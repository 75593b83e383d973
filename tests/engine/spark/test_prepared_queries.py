"""Queries that are planned once give the answer over the rows of the moment."""

from __future__ import annotations

import errno
import gc
import logging
import tempfile
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.limits import Limits, PlanLimits
from airflow_pipelines.engine.spark import prepared_queries as prepared
from airflow_pipelines.engine.spark import refillable_leaf, rerun_probe
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.physical_plans import rerunnable
from airflow_pipelines.engine.spark.planned_query import PlannedQuery, plan_query
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory, RefillableLeaf
from airflow_pipelines.engine.spark.rerun_probe import can_rerun
from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

COLUMNS = [StructField("k", LongType()), StructField("v", DecimalType(12, 2)), StructField("s", StringType())]
SCHEMA = weighted(StructType(COLUMNS))


def batch(*rows: tuple[int, str, str | None]) -> Batch:
    columns = {"k": [k for k, _, _ in rows], "v": pa.array([v for _, v, _ in rows]).cast(pa.decimal128(12, 2))}
    return Batch.in_memory(
        SCHEMA, pa.table({**columns, "s": pa.array([s for _, _, s in rows], pa.string()), WEIGHT: [1] * len(rows)})
    )


@pytest.fixture
def views(spark: SparkSession) -> Any:
    made = BatchViews(SparkSessions.of(spark))
    yield made
    made.close()


def values(views: BatchViews, text: str) -> list[Any]:
    """The only column of a query's result."""
    return sorted(next(iter(row.values())) for row in views.result(text).rows.to_pylist())


def test_this_spark_lets_the_rows_of_a_plan_be_replaced(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerun_probe, "_found", weakref.WeakKeyDictionary())
    session = SparkSessions.of(spark).small
    assert can_rerun(session)
    # Every pipeline has sessions of its own, and does not try again what the first one has tried.
    with monkeypatch.context() as patched:
        patched.setattr(rerun_probe, "_tried", lambda *_: pytest.fail("it was tried again"))
        assert can_rerun(SparkSessions.of(spark).small)
    join = plan_query(LeafFactory(session), rerun_probe._JOIN, (0, 0), [rerun_probe._batch(())])
    assert "Exchange" in join.frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize(
    "broken",
    [
        # A leaf that keeps its first rows.
        (RefillableLeaf, "fill", lambda leaf, batch, fill=RefillableLeaf.fill: leaf._holds is not None or fill(leaf, batch)),
        (RefillableLeaf, "fill", lambda *_: (_ for _ in ()).throw(TypeError("no such method"))),
        (PlannedQuery, "result", lambda *_: None),
    ],
)
def test_a_spark_that_keeps_rows_or_has_other_inner_parts_is_noticed(
    spark: SparkSession, broken: tuple[type, str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rerun_probe, "_found", weakref.WeakKeyDictionary())
    monkeypatch.setattr(*broken)
    views = BatchViews(SparkSessions.of(spark))
    assert "planned for each run" in caplog.text
    for k in (1, 2):
        rows = batch((k, "1.00", None))
        assert values(views, f"SELECT k FROM {views.table(rows)}") == [k]
    views.close()


@pytest.mark.rest
def test_threads_that_begin_together_leave_the_session_as_it_was_and_get_their_answers(spark: SparkSession) -> None:
    for _ in range(3):
        sessions = SparkSessions.of(spark)
        before = dict(sessions.small.conf.getAll)
        begin, found = threading.Barrier(8), {}

        def work(number: int, sessions: SparkSessions = sessions, begin: Any = begin, found: dict[int, Any] = found) -> None:
            begin.wait()
            views = BatchViews(sessions)
            answers = []
            for many in (1, 0, 2):
                rows = batch(*((number * 10 + k, "1.00", None) for k in range(many)))
                answers.append(values(views, f"SELECT k FROM {views.table(rows)} WHERE k >= {number}"))
            found[number] = answers
            views.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {number: [[number * 10], [], [number * 10, number * 10 + 1]] for number in range(8)}
        assert dict(sessions.small.conf.getAll) == before
        assert not [table.name for table in sessions.small.catalog.listTables()]


def test_the_same_query_is_planned_once_and_sees_the_rows_of_each_run(views: BatchViews, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    monkeypatch.setattr(prepared, "plan_query", lambda *given: planned.append("") or plan_query(*given))  # type: ignore[func-returns-value]
    for many in (1, 3, 0, 2):
        left = batch(*((k, "1.50", None) for k in range(many)))
        right = batch((0, "2.00", "a"), (1, "3.00", "b"))
        joined = f"{views.table(left)} l JOIN {views.table(right)} r ON l.k = r.k"
        text = f"SELECT l.k, SUM(l.v * r.v) AS x, MAX(r.s) AS s FROM {joined} GROUP BY l.k"
        found = {row["k"]: (str(row["x"]), row["s"]) for row in views.result(text).rows.to_pylist()}
        assert found == dict([(0, ("3.0000", "a")), (1, ("4.5000", "b"))][:many])
    assert len(planned) == 1


def test_sub_queries_and_outer_joins_see_the_rows_of_each_run(views: BatchViews) -> None:
    for many in (1, 4, 2):
        left, right = batch(*((k, "1.00", None) for k in range(many))), batch((1, "5.00", "x"))
        text = (
            f"SELECT l.k, (SELECT MAX(k) FROM {views.table(left)}) AS most, r.s FROM {views.table(left)} l"
            f" LEFT JOIN {views.table(right)} r ON l.k < r.k WHERE l.k < (SELECT COUNT(*) FROM {views.table(left)})"
        )
        found = sorted((row["k"], row["most"], row["s"]) for row in views.result(text).rows.to_pylist())
        assert found == [(k, many - 1, "x" if k < 1 else None) for k in range(many)]


def test_more_rows_than_the_first_time_are_all_seen(views: BatchViews) -> None:
    for many in (1, 20_000, 3):
        rows = batch(*((k, "1.00", "some text") for k in range(many)))
        assert views.result(f"SELECT COUNT(*) AS n, MAX(s) AS s FROM {views.table(rows)}").rows.to_pylist() == [
            {"n": many, "s": "some text"}
        ]


@pytest.mark.parametrize("has_room", [True, False])
def test_many_bytes_are_read_in_pieces_from_a_file_or_sent_where_there_is_no_room_for_one(
    views: BatchViews, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_room: bool
) -> None:
    monkeypatch.setattr(refillable_leaf, "_SENT", 2_000)
    monkeypatch.setattr(refillable_leaf, "_PIECE", 1_000)
    made: list[str] = []

    def temporary(**given: Any) -> Any:
        made.append("")
        if not has_room:
            raise OSError(errno.ENOSPC, "no space left")
        return tempfile.NamedTemporaryFile(dir=tmp_path, **given)

    monkeypatch.setattr(refillable_leaf, "tempfile", SimpleNamespace(NamedTemporaryFile=temporary))
    # The leaf has room for the second rows, is made again for the third, and then gets fewer rows again.
    for many, filled in ((100, 1), (110, 1), (1_000, 1), (2, 0), (300, 1)):
        before = len(made)
        rows = batch(*((k, "1.00", f"text {k}") for k in range(many)))
        found = views.result(f"SELECT k, s FROM {views.table(rows)}").rows.to_pylist()
        assert found == [{"k": k, "s": f"text {k}"} for k in range(many)]
        assert len(made) - before == filled
    assert not list(tmp_path.iterdir())


def test_the_same_text_over_other_columns_is_another_query(views: BatchViews) -> None:
    rows = batch((1, "2.00", "a"))
    text = Batch.in_memory(weighted(StructType([StructField("k", StringType())])), pa.table({"k": ["x"], WEIGHT: [1]}))
    assert views.result(f"SELECT k FROM {views.table(rows)}").rows.to_pylist() == [{"k": 1}]
    assert views.result(f"SELECT k FROM {views.table(text)}").rows.to_pylist() == [{"k": "x"}]


def test_what_is_too_large_to_be_copied_is_read_all_the_same(spark: SparkSession) -> None:
    views = BatchViews(SparkSessions.of(spark), Limits(plans=PlanLimits(leaf_bytes=10)))
    rows = batch((1, "2.00", "a"), (2, "2.00", "b"))
    assert views.result(f"SELECT SUM(k) AS k FROM {views.table(rows)}").rows.to_pylist() == [{"k": 3}]


def test_plans_that_were_not_used_for_long_make_room(spark: SparkSession) -> None:
    views = BatchViews(SparkSessions.of(spark), Limits(plans=PlanLimits(queries=2)))
    rows = batch((3, "2.00", "a"))
    for factor in (1, 2, 3, 4, 1):
        assert views.result(f"SELECT k * {factor} AS k FROM {views.table(rows)}").rows.to_pylist() == [{"k": 3 * factor}]
    assert len(views._prepared._known) == 2


def test_an_error_leaves_the_query_as_it_was(views: BatchViews) -> None:
    for many, fails in ((2, False), (0, True), (4, False)):
        rows = batch((many, "1.00", None))
        text = f"SELECT 8 DIV k AS q FROM {views.table(rows)}"
        if fails:
            with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
                views.result(text)
        else:
            assert views.result(text).rows.to_pylist() == [{"q": 8 // many}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT k FROM {} UNION ALL SELECT 100L) LIMIT 50",
        "SELECT * FROM (SELECT k FROM {} UNION ALL SELECT * FROM VALUES (100L), (101L)) ORDER BY k LIMIT 50",
        "SELECT DISTINCT k FROM (SELECT k FROM {} UNION ALL SELECT 100L)",
        "SELECT k FROM {} UNION ALL SELECT 100L",
    ],
)
def test_rows_that_are_exchanged_within_a_node_are_not_found_again(views: BatchViews, query: str) -> None:
    answers = []
    for k in (1, 2, 3):
        rows = batch((k, "1.00", None))
        answers.append([value for value in values(views, query.format(views.table(rows))) if value < 100])
    assert answers == [[1], [2], [3]]


def test_only_plans_that_surely_read_their_leaves_again_are_run_again(spark: SparkSession) -> None:
    maker = LeafFactory(SparkSessions.of(spark).small)

    def runs_again(before: str, after: str = "") -> bool:
        return plan_query(maker, (before, after), (0,), [batch((1, "1.00", "a"))]).runs_again

    assert runs_again("SELECT k, SUM(v) FROM ", " AS subquery GROUP BY k")
    assert runs_again("SELECT * FROM (SELECT k, v FROM ", ") PIVOT (SUM(v) FOR k IN (1, 2))")
    assert runs_again("SELECT k, ROW_NUMBER() OVER (PARTITION BY v ORDER BY k) AS n FROM ")
    assert runs_again("SELECT k, e FROM ", " LATERAL VIEW EXPLODE(ARRAY(1, 2)) t AS e ORDER BY k LIMIT 3")
    assert not runs_again("SELECT k, (SELECT 1 FROM VALUES (1) AS t(x) WHERE x = 1) AS x FROM ")
    assert not runs_again("SELECT l.k FROM ", " l LEFT JOIN VALUES (1) AS r(x) ON l.k < r.x")
    assert not runs_again("SELECT k, CURRENT_TIMESTAMP() AS at FROM ")
    assert not runs_again("SELECT k, RAND() AS r FROM ")
    assert rerunnable(maker.session.sql("SELECT id FROM RANGE(0, 10, 1, 2)")) is None


def test_what_cannot_be_prepared_is_planned_for_each_run_and_logged_once(
    views: BatchViews, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[str] = []

    def fails(*_: Any) -> None:
        tried.append("")
        raise TypeError("no such inner part")

    monkeypatch.setattr(prepared, "plan_query", fails)
    for factor in (1, 2, 2):
        rows = batch((3, "2.00", "a"))
        assert values(views, f"SELECT k * {factor} AS k FROM {views.table(rows)}") == [3 * factor]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        views.result(f"SELECT k DIV 0 AS k FROM {views.table(rows)}")
    assert len(tried) == 3
    (message,) = [record for record in caplog.records if record.levelno >= logging.WARNING and record.name == prepared.__name__]
    assert "SELECT k * 1 AS k FROM" in message.getMessage()
    assert "no such inner part" in caplog.text


def test_what_fails_inside_of_spark_is_run_in_the_ordinary_way(
    views: BatchViews, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"SELECT k FROM {views.table(kept := batch((3, '2.00', 'a')))}"
    assert values(views, text) == [3]

    def fails(*_: Any) -> None:
        raise RuntimeError("java.lang.NullPointerException")

    monkeypatch.setattr(PlannedQuery, "result", fails)
    assert values(views, text) == [3]
    assert "NullPointerException" in caplog.text
    monkeypatch.undo()
    assert values(views, text) == [3]
    assert list(views._prepared._known.values()) == [None]
    del kept


@pytest.mark.core
def test_what_failed_inside_of_spark_is_not_told_with_the_error_of_the_query(
    views: BatchViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("java.lang.NullPointerException")

    monkeypatch.setattr(PlannedQuery, "result", fails)
    zero = batch((0, "1.00", None))
    with pytest.raises(SPARK_ERRORS, match="DIVIDE_BY_ZERO") as raised:
        views.result(f"SELECT 8 DIV k AS q FROM {views.table(zero)}")
    chain: list[BaseException] = [raised.value]
    while (earlier := chain[-1].__context__) is not None:
        chain.append(earlier)
    assert not [error for error in chain if isinstance(error, RuntimeError)]


def test_no_query_is_prepared_when_none_may_be_kept(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "plan_query", lambda *_: pytest.fail("it was prepared"))
    monkeypatch.setattr(prepared, "can_rerun", lambda *_: pytest.fail("it was tried"))
    views = BatchViews(SparkSessions.of(spark), Limits(plans=PlanLimits(queries=0)))
    for k in (1, 2):
        rows = batch((k, "1.00", None))
        assert values(views, f"SELECT k FROM {views.table(rows)}") == [k]
    views.close()


def test_an_error_of_the_query_is_raised_without_another_run(views: BatchViews, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, zero = batch((2, "1.00", None)), batch((0, "1.00", None))
    assert values(views, f"SELECT 8 DIV k AS q FROM {views.table(rows)}") == [4]
    monkeypatch.setattr(BatchViews, "query", lambda *_: pytest.fail("it was run again"))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        views.result(f"SELECT 8 DIV k AS q FROM {views.table(zero)}")
    monkeypatch.undo()
    assert values(views, f"SELECT 8 DIV k AS q FROM {views.table(rows)}") == [4]


def test_a_batch_that_is_gone_is_named(views: BatchViews) -> None:
    text = f"SELECT * FROM {views.table(batch((1, '1.00', None)))}"
    gc.collect()
    with pytest.raises(LookupError, match=r"batch \d+ is gone"):
        views.result(text)
