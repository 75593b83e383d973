"""What Spark's optimizer has evaluated comes to Python without a job, and is what a job would give."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.collecting import FrameCollector, collected
from airflow_pipelines.engine.spark.jobs import started_jobs
from airflow_pipelines.engine.spark.local_rows import local_rows
from airflow_pipelines.engine.spark.result_connection import AbortedError, ResultConnection, ResultTooLargeError
from airflow_pipelines.engine.spark.result_stream import stream_tables
from airflow_pipelines.engine.spark.sessions import IN_TASKS_CONF, SMALL_CONF, SparkSessions, sibling

pytestmark = pytest.mark.core

ALL_TYPES = """
SELECT k, s, k > 1 AS b, CAST('NaN' AS FLOAT) AS f, -0.0D * k AS d, CAST(k AS DECIMAL(38, 10)) AS c, DATE'2025-01-01' + k AS day,
  TIMESTAMP_NTZ'2025-01-01 00:00:00' AS at, TIMESTAMP'2025-01-01 00:00:00' AS moment, time'12:00:00' AS time,
  INTERVAL '1-2' YEAR TO MONTH * k AS months, INTERVAL '1 02:03:04.5' DAY TO SECOND AS days, CAST(s AS BINARY) AS bytes,
  ARRAY(k, NULL) AS a, MAP(k, s) AS m, NAMED_STRUCT('x', k, 'y', ARRAY(INTERVAL '3' MONTH)) AS r, PARSE_JSON('{"a": 1}') AS v,
  CAST(NULL AS VARIANT) AS nothing, NULL AS void
FROM VALUES (1, 'a'), (2, NULL), (3, 'ü') AS t(k, s) WHERE k <> """


@pytest.fixture
def in_tasks(sessions: SparkSessions) -> SparkSession:
    return sibling(sessions.small, {**SMALL_CONF, **IN_TASKS_CONF})


@pytest.mark.parametrize("left_out", ["0", "2", "k", "k LIMIT 1"])
def test_values_of_all_types_are_those_of_a_job(sessions: SparkSessions, in_tasks: SparkSession, left_out: str) -> None:
    context = sessions.small.sparkContext
    expected = collected(in_tasks.sql(ALL_TYPES + left_out))
    before = started_jobs(context)
    frame = sessions.small.sql(ALL_TYPES + left_out)
    tables = [collected(frame), pa.concat_tables(stream_tables(frame))]
    assert started_jobs(context) == before
    for table in tables:
        assert table.schema.equals(expected.schema, check_metadata=True)
        # A NaN equals no NaN.
        assert repr(table.to_pylist()) == repr(expected.to_pylist())


def test_many_rows_come_in_several_batches(sessions: SparkSessions) -> None:
    session = sibling(sessions.small, SMALL_CONF)
    session.createDataFrame(pa.table({"k": range(25_000)})).createOrReplaceTempView("many")
    before = started_jobs(session.sparkContext)
    tables = list(stream_tables(session.sql("SELECT k + 1 AS k FROM many WHERE k >= 1000")))
    assert started_jobs(session.sparkContext) == before
    assert [table.num_rows for table in tables] == [10_000, 10_000, 4_000]
    assert pa.concat_tables(tables)["k"].to_pylist() == list(range(1_001, 25_001))


def test_what_is_more_than_expressions_over_constants_is_a_job(sessions: SparkSessions) -> None:
    for query in ("SELECT count(*) FROM VALUES (1) AS t(k) GROUP BY k", "SELECT k FROM VALUES (2), (1) AS t(k) ORDER BY k"):
        assert local_rows(sessions.small.sql(query)) is None
    assert local_rows(sessions.small.sql("SELECT k + 1 AS k FROM VALUES (2), (1) AS t(k)")) is not None


def test_limits_and_cancellations_hold(sessions: SparkSessions) -> None:
    frame = sessions.small.sql("SELECT k FROM VALUES ('a'), ('b') AS t(k)")
    with pytest.raises(ResultTooLargeError):
        FrameCollector(ResultConnection(), limit_bytes=5).collected(frame)
    connection = ResultConnection()
    connection.abort()
    with pytest.raises(AbortedError):
        FrameCollector(connection).collected(frame)
    with pytest.raises(AbortedError):
        list(stream_tables(frame, connection))


def test_an_expression_that_fails_is_sparks_error(sessions: SparkSessions) -> None:
    frame = sessions.small.sql("SELECT 1 / k AS k FROM VALUES (1), (0) AS t(k)")
    with pytest.raises(PySparkException) as raised:
        collected(frame)
    assert raised.value.getCondition() == "DIVIDE_BY_ZERO"
