from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.arrow_frames import arrow_schema, relaxed
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.internals import query_execution
from airflow_pipelines.engine.spark.intervals import has_months
from airflow_pipelines.engine.spark.partitioned_frames import partitioned_frame
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.arrow import cast_to_schema

pytestmark = pytest.mark.core

VALUES = {
    "bigint": "-9223372036854775808",
    "string": "'\u00e4\\u0000 '",
    "decimal(38,2)": "-999999999999999999999999999999999999.99",
    "timestamp": "timestamp'0001-01-01 00:00:00.000001'",
    "timestamp_ntz": "timestamp_ntz'9999-12-31 23:59:59.999999'",
    "date": "date'0001-01-01'",
    "variant": "parse_json('{\"a\": [1, null]}')",
    "map<string,int>": "map('a', null)",
    "struct<a: double, b: array<double>>": "named_struct('a', double('NaN'), 'b', array(-0.0D, null))",
    "interval year to month": "interval '-1-2' year to month",
    "interval day to second": "interval '1 02:03:04.5' day to second",
    "binary": "X'00FF'",
    "boolean": "true",
    "double": "double('NaN')",
    "time": "time'23:59:59.999999'",
}


@pytest.mark.parametrize("kind", VALUES)
def test_spark_gets_the_rows_as_they_are(kind: str, sessions: SparkSessions) -> None:
    schema = StructType.fromDDL(f"v {kind}")
    query = f"SELECT CAST({VALUES[kind]} AS {kind}) AS v UNION ALL SELECT NULL UNION ALL SELECT CAST({VALUES[kind]} AS {kind})"
    rows = cast_to_schema(collected(sessions.small.sql(query)), arrow_schema(schema))
    again = collected(partitioned_frame(sessions.small, rows, relaxed(schema)))
    # As text, because NaN is not equal to itself.
    assert repr(cast_to_schema(again, arrow_schema(schema)).to_pylist()) == repr(rows.to_pylist())
    assert has_months(schema) is (kind == "interval year to month")


def test_each_core_has_a_partition_and_spark_knows_the_size(sessions: SparkSessions) -> None:
    cores = sessions.large.sparkContext.defaultParallelism
    rows = pa.table({"n": pa.chunked_array([pa.array(range(1000)), pa.array([], pa.int64()), pa.array(range(1000, 3000))])})
    frame = partitioned_frame(sessions.large, rows, StructType.fromDDL("n bigint"))
    assert frame.count() == 3000
    assert frame.rdd.getNumPartitions() == cores
    frame.createOrReplaceTempView("partitioned")
    joined = sessions.large.sql("SELECT a.n FROM partitioned AS a JOIN partitioned AS b ON a.n = b.n")
    assert "BroadcastHashJoin" in str(query_execution(joined).executedPlan().toString())
