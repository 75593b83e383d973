"""What Spark's plans say of queries."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.analysis import AUTOMATIC
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.logical_plans import analyzed_plan, optimized_plan
from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core


def test_columns_tell_which_names_spark_made_up(spark: SparkSession) -> None:
    given, unnamed = analyzed_plan(spark.sql("SELECT id AS a, id + 1 FROM RANGE(3)")).fields
    assert (given["name"], given["type"], AUTOMATIC in given["metadata"]) == ("a", "long", False)
    assert AUTOMATIC in unnamed["metadata"]


@pytest.mark.parametrize(("query", "deterministic"), [("SELECT id FROM RANGE(3)", True), ("SELECT RAND() AS r", False)])
def test_queries_that_may_give_another_result_are_known(spark: SparkSession, query: str, deterministic: bool) -> None:
    assert analyzed_plan(spark.sql(query)).deterministic is deterministic


def test_plans_of_equal_queries_have_the_same_result(spark: SparkSession) -> None:
    one, other = (optimized_plan(spark.sql(f"SELECT id + {number} AS x FROM RANGE(3)")) for number in ("1 + 1", "2"))
    assert one.same_result(other)
    assert not one.same_result(optimized_plan(spark.sql("SELECT id + 3 AS x FROM RANGE(3)")))
    assert "Range" in one.text


def test_the_optimizer_evaluates_constants(sessions: SparkSessions) -> None:
    frame = sessions.small.sql("SELECT 1 DIV 0 AS x")
    with pytest.raises(SPARK_ERRORS, match="DIVIDE_BY_ZERO"):
        optimized_plan(frame)
