from __future__ import annotations

from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.executed_frames import executed
from airflow_pipelines.engine.spark.jobs import started_jobs
from airflow_pipelines.engine.spark.limited_frames import first_of_each_partition
from airflow_pipelines.engine.spark.sessions import SparkSessions

GROUPS = "SELECT CONCAT('k', id % 1000) AS k, COUNT(*) AS n, CAST(NULL AS DECIMAL(38, 2)) AS d FROM RANGE(0, 5000, 1, 3) GROUP BY 1"


def test_exchanges_run_once(sessions: SparkSessions) -> None:
    context = sessions.large.sparkContext
    frame = executed(sessions.large.sql(GROUPS))
    before = started_jobs(context)
    some, whole = collected(first_of_each_partition(frame, 1)), collected(frame)
    assert started_jobs(context) - before == 2, "a job for what comes after the exchange, for each of the two"
    assert 0 < some.num_rows <= sessions.large.sparkContext.defaultParallelism
    assert whole.schema == collected(sessions.large.sql(GROUPS)).schema
    assert sorted(whole.to_pylist(), key=lambda row: int(row["k"][1:])) == [
        {"k": f"k{number}", "n": 5, "d": None} for number in range(1000)
    ]


def test_a_frame_without_rows_or_exchanges(sessions: SparkSessions) -> None:
    frame = executed(sessions.large.sql("SELECT id, CAST(id AS STRING) AS s FROM RANGE(10) WHERE id > 20"))
    assert collected(frame).num_rows == 0
    assert collected(executed(sessions.large.sql("SELECT 1 AS one"))).to_pylist() == [{"one": 1}]
