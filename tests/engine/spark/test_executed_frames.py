from __future__ import annotations

import pytest
from pyspark.errors import ArithmeticException

from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.executed_frames import execute_exchanges
from airflow_pipelines.engine.spark.jobs import started_jobs
from airflow_pipelines.engine.spark.limited_frames import first_of_each_partition
from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

GROUPS = "SELECT CONCAT('k', id % 1000) AS k, COUNT(*) AS n, CAST(NULL AS DECIMAL(38, 2)) AS d FROM RANGE(0, 5000, 1, 3) GROUP BY 1"


def test_exchanges_run_once(sessions: SparkSessions) -> None:
    context = sessions.large.sparkContext
    result = execute_exchanges(sessions.large.sql(GROUPS))
    frame, before = result.frame, started_jobs(context)
    some, whole = collected(first_of_each_partition(frame, 1)), collected(frame)
    assert started_jobs(context) - before == 2, "a job for what comes after the exchange, for each of the two"
    assert 0 < some.num_rows <= result.partitions
    assert result.exchanged == 3000, "each of three tasks has a row for each group"
    assert whole.schema == collected(sessions.large.sql(GROUPS)).schema
    assert sorted(whole.to_pylist(), key=lambda row: int(row["k"][1:])) == [
        {"k": f"k{number}", "n": 5, "d": None} for number in range(1000)
    ]


def test_a_frame_without_rows_or_exchanges(sessions: SparkSessions) -> None:
    result = execute_exchanges(sessions.large.sql("SELECT id, CAST(id AS STRING) AS s FROM RANGE(10) WHERE id > 20"))
    assert result.exchanged is None
    assert collected(result.frame).num_rows == 0
    assert collected(execute_exchanges(sessions.large.sql("SELECT 1 AS one")).frame).to_pylist() == [{"one": 1}]


def test_a_join_of_an_exchange_with_a_scan_says_nothing_of_its_rows(sessions: SparkSessions) -> None:
    query = f"SELECT /*+ BROADCAST(g) */ r.id FROM RANGE(7) AS r JOIN ({GROUPS}) AS g ON r.id = r.id * g.n / 5"
    result = execute_exchanges(sessions.large.sql(query))
    assert result.exchanged is None
    assert collected(result.frame).num_rows == 7000


def test_an_error_before_the_exchange_is_raised_as_of_any_query(sessions: SparkSessions) -> None:
    failing = "SELECT k, COUNT(*) FROM (SELECT 1 / (id - 7) AS k FROM RANGE(10)) GROUP BY 1"
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        execute_exchanges(sessions.large.sql(failing))
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        collected(execute_exchanges(sessions.large.sql("SELECT 1 / (id - 7) AS k FROM RANGE(10)")).frame)
