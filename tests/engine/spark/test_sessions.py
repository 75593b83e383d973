from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from airflow_pipelines.engine.spark.sessions import IN_TASKS_CONF, QUERY_CONF, SMALL_CONF, SparkSessions, build_spark, sibling

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core


def test_both_sessions_speak_the_same_sql(sessions: SparkSessions) -> None:
    for session in (sessions.small, sessions.large):
        assert session.conf.get("spark.sql.ansi.enabled") == "true"
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
        row = session.sql('SELECT "A" FROM VALUES (TIME\'10:11:12\') AS t("A")').toArrow()
        assert row.column_names == ["A"]


def test_small_session_joins_without_broadcast_or_adaptive_planning(sessions: SparkSessions) -> None:
    query = "SELECT * FROM VALUES (1), (2) AS a(x) JOIN VALUES (1) AS b(x) USING (x)"
    plan = sessions.small.sql(query)._jdf.queryExecution().executedPlan().toString()
    assert "Adaptive" not in plan
    assert "Broadcast" not in plan
    assert sessions.large.conf.get("spark.sql.adaptive.enabled") == "true"


def test_views_of_a_session_are_its_own(spark: SparkSession) -> None:
    first, second = SparkSessions.of(spark), SparkSessions.of(spark)
    first.small.range(1).createOrReplaceTempView("mine")
    for other in (first.large, second.small, spark):
        with pytest.raises(AnalysisException):
            other.table("mine").collect()


def test_failed_analysis_is_not_logged_with_a_java_stack(sessions: SparkSessions, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AnalysisException):
        sessions.small.sql("SELECT nope")
    assert "SQLQueryContextLogger" not in capfd.readouterr().err
    assert logging.getLogger("SQLQueryContextLogger").level == logging.CRITICAL


@pytest.mark.parametrize(
    "conf", [{}, SMALL_CONF, QUERY_CONF, {**QUERY_CONF, **IN_TASKS_CONF}], ids=["own", "small", "query", "in tasks"]
)
@pytest.mark.parametrize("rows", ["x", "(SELECT * FROM x UNION ALL SELECT * FROM x)"], ids=["table", "union"])
def test_exists_in_the_select_list_over_a_union(sessions: SparkSessions, conf: dict[str, str], rows: str) -> None:
    session = sibling(sessions.large, conf)
    session.sql("SELECT * FROM VALUES (1, 7), (2, NULL) AS x(k, t)").createOrReplaceTempView("x")
    exists = f"SELECT a.k, EXISTS (SELECT 1 FROM x WHERE x.t = a.t) AS e FROM (SELECT * FROM {rows} UNION ALL SELECT * FROM x) AS a"
    both = f"SELECT k, e, COUNT(*) AS n FROM ({exists} UNION ALL SELECT k, NOT e FROM ({exists})) GROUP BY k, e ORDER BY k, e"
    times = 2 if rows == "x" else 3
    found = session.sql(both).toArrow()
    assert [tuple(row.values()) for row in found.to_pylist()] == [(k, e, times) for k in (1, 2) for e in (False, True)]


def test_columns_that_nobody_reads_are_left_out_of_a_union_all_the_same(sessions: SparkSessions, tmp_path: Path) -> None:
    for name in ("a", "b"):
        sessions.large.sql("SELECT id AS k, id AS x, id AS y FROM RANGE(3)").write.parquet(str(tmp_path / name))
        sessions.large.read.parquet(str(tmp_path / name)).createOrReplaceTempView(f"union_{name}")
    query = "SELECT k + 1 AS k FROM (SELECT * FROM union_a UNION ALL (SELECT * FROM union_b UNION ALL SELECT * FROM union_a))"
    plan = sessions.large.sql(query)._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ReadSchema: struct<k:bigint>") == 3


def test_sibling_takes_its_own_settings(spark: SparkSession) -> None:
    session = sibling(spark, {**SMALL_CONF, "spark.sql.shuffle.partitions": "7"})
    assert session.conf.get("spark.sql.shuffle.partitions") == "7"
    assert spark.conf.get("spark.sql.shuffle.partitions") != "7"


def test_build_spark_finds_the_running_application(spark: SparkSession) -> None:
    assert build_spark("local[2]", "again", {}).sparkContext is spark.sparkContext


def test_the_parser_forgets_what_it_learned_once_it_is_too_much(sessions: SparkSessions) -> None:
    memory = sessions.small._jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.parser.AbstractParser$")
    states = memory.getDeclaredField("numDFACacheStates")
    states.setAccessible(True)
    sessions.small.sql("SELECT a + 1 AS b, count(*) FROM VALUES (1) AS t(a) GROUP BY ALL HAVING count(*) > 0 ORDER BY b LIMIT 1")
    assert states.get(None) > 100
    bounded = sibling(sessions.small, {**SMALL_CONF, "spark.sql.parser.parserDfaCacheFlushThreshold": "100"})
    bounded.sql("SELECT a FROM VALUES (1) AS t(a)")
    # It forgets all at the end of a statement that leaves it with more.
    assert states.get(None) == 0
    assert float(sessions.large.conf.get("spark.sql.parser.parserDfaCacheFlushRatio") or 0) > 0


def test_sql_reads_no_files_and_no_settings(sessions: SparkSessions, tmp_path: Path) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("secret")
    for session in (sessions.small, sessions.large):
        with pytest.raises(AnalysisException):
            session.sql(f"SELECT * FROM text.`{file}`")
        assert session.sql("SELECT '${spark.app.name}' AS x").collect()[0].x == "${spark.app.name}"
