"""Results of any size: the same rows in the same order as when they are collected, never more than a window at a time."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.result_connection import AbortedError, ResultConnection
from airflow_pipelines.engine.spark.result_stream import WINDOW_BYTES, _next_window, stream_tables
from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

ALL_TYPES = """
SELECT id, CAST(id AS STRING) AS s, parse_json('{"a": [1, null]}') AS v, IF(id = 1, NULL, interval '7' month) AS m,
  interval '1 02:03:04' day to second AS d, timestamp'2020-01-01' AS t, map(id, named_struct('x', interval '1' month)) AS mm,
  time'12:00:00' AS tt, NULL AS n, x'00ff' AS b, CAST(1.5 AS DECIMAL(9, 2)) AS e
FROM range(0, 25000, 1, 7)
"""


@pytest.mark.rest(
    "SELECT * FROM range(0, 100, 1, 3) LIMIT 0",
    "SELECT * FROM range(0, 100, 1, 3) LIMIT 7 OFFSET 60",
    "SELECT * FROM (SELECT * FROM range(0, 100, 1, 3) ORDER BY id DESC) LIMIT 40",
    "SELECT id FROM range(0, 60000, 1, 9) UNION ALL SELECT 3 LIMIT 70000",
    "SELECT id, id AS id FROM range(0, 60000, 1, 9) ORDER BY id % 1000, id DESC",
    "sql0",
)
@pytest.mark.parametrize(
    "sql",
    [
        ALL_TYPES,
        "SELECT id % 5 AS k, count(*) AS n FROM range(100000) GROUP BY 1 ORDER BY n, k DESC",
        "SELECT id, id AS id FROM range(0, 60000, 1, 9) ORDER BY id % 1000, id DESC",
        "SELECT id FROM range(0, 30000, 1, 40) WHERE id > 29000",
        "SELECT id, named_struct('a', 1) AS s FROM range(10) WHERE id > 10",
        "SELECT * FROM range(0, 100, 1, 3) LIMIT 7",
        "SELECT parse_json('[1]') AS v, id FROM (SELECT * FROM range(0, 100, 1, 3) LIMIT 40) LIMIT 35",
        "SELECT * FROM range(0, 100, 1, 3) LIMIT 0",
        "SELECT * FROM range(0, 100, 1, 3) LIMIT 7 OFFSET 60",
        "SELECT * FROM range(0, 100, 1, 3) ORDER BY id DESC LIMIT 40",
        "SELECT * FROM (SELECT * FROM range(0, 100, 1, 3) ORDER BY id DESC) LIMIT 40",
        "SELECT id FROM range(0, 60000, 1, 9) UNION ALL SELECT 3 LIMIT 70000",
    ],
)
def test_streamed_rows_are_the_collected_ones(sessions: SparkSessions, sql: str) -> None:
    for session in (sessions.small, sessions.large):
        tables = list(stream_tables(session.sql(sql)))
        assert max(table.num_rows for table in tables) <= 10_000
        assert pa.concat_tables(tables).equals(collected(session.sql(sql)))


@pytest.mark.rest
def test_no_more_than_a_window_runs_before_somebody_wants_it(sessions: SparkSessions) -> None:
    context = sessions.large.sparkContext
    group = str(uuid4())
    context.setJobGroup(group, "a test")
    try:
        stream = stream_tables(sessions.large.sql("SELECT id FROM range(0, 1000, 1, 100)"))
        assert next(stream).num_rows == 10
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        assert [stage.numTasks for stage in stages if stage is not None] == [context.defaultParallelism]
        assert sum(table.num_rows for table in stream) == 990
        assert context.getLocalProperty("spark.sql.session.timeZone") is None
    finally:
        context._jsc.clearJobGroup()  # type: ignore[attr-defined]


@pytest.mark.rest
def test_rows_of_files_begin_with_a_batch_of_their_own(sessions: SparkSessions, tmp_path: Path) -> None:
    folder, session = str(tmp_path / "rows"), sessions.large
    session.range(0, 40_000, 1, 2).write.parquet(folder)
    rows = session.read.parquet(folder)
    context = session.sparkContext
    group, tracker = str(uuid4()), context.statusTracker()
    context.setJobGroup(group, "a test")
    try:
        stream = stream_tables(rows.selectExpr("id * 2 AS x").where("x >= 10"))
        first = next(stream)
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        assert [stage.numTasks for stage in stages if stage is not None] == [1]
        assert sorted(pa.concat_tables([first, *stream])["x"].to_pylist()) == list(range(10, 80_000, 2))
    finally:
        context._jsc.clearJobGroup()  # type: ignore[attr-defined]
    # No partition is read twice that gives other rows then, and none has to have a first batch.
    for frame, count in ((rows.groupBy("id").count(), 40_000), (rows.selectExpr("rand() AS r"), 40_000), (rows.where("id < 0"), 0)):
        assert sum(table.num_rows for table in stream_tables(frame)) == count


def test_a_limit_reads_no_more_partitions_than_it_needs(sessions: SparkSessions, tmp_path: Path) -> None:
    folder, session = str(tmp_path / "rows"), sessions.large
    session.range(0, 40_000, 1, 2).write.parquet(folder)
    session.read.parquet(folder).createOrReplaceTempView("limited_rows")
    tracker, group = session.sparkContext.statusTracker(), str(uuid4())
    session.sparkContext.setJobGroup(group, "a test")
    try:
        frame = session.sql("SELECT id FROM limited_rows WHERE id >= 10 LIMIT 5")
        # As ad-hoc queries bring their results into canonical form.
        tables = list(stream_tables(frame.selectExpr("id + 0 AS id")))
        assert [table.num_rows for table in tables] == [5]
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        assert [stage.numTasks for stage in stages if stage is not None] == [1]
    finally:
        session.sparkContext._jsc.clearJobGroup()  # type: ignore[attr-defined]


def test_windows_follow_the_size_of_the_rows() -> None:
    assert _next_window(2, 1000, cores=2) == 8
    assert _next_window(8, 1000, cores=2) == 8
    assert _next_window(8, WINDOW_BYTES, cores=2) == 8
    assert _next_window(8, 4 * WINDOW_BYTES, cores=2) == 2
    assert _next_window(2, 100 * WINDOW_BYTES, cores=2) == 1


def test_an_error_in_a_late_row_comes_after_the_rows_before_it(sessions: SparkSessions) -> None:
    stream = stream_tables(sessions.large.sql("SELECT 1 / (id - 9500) AS x FROM range(0, 10000, 1, 100)"))
    assert next(stream).num_rows == 100
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        list(stream)


def test_a_stream_that_nobody_waits_for_ends(sessions: SparkSessions) -> None:
    connection = ResultConnection()
    stream = stream_tables(sessions.large.sql("SELECT id, repeat('a', 1000) AS x FROM range(0, 100000, 1, 2)"), connection)
    next(stream)
    connection.abort()
    with pytest.raises(AbortedError):
        list(stream)
    with pytest.raises(AbortedError):
        next(stream_tables(sessions.small.sql("SELECT 1"), connection))
