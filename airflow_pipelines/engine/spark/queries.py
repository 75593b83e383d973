"""Queries as DataFrames."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from airflow_pipelines.engine.spark.internals import frame_of, java_session


def make_query_frame(session: SparkSession, query: str) -> DataFrame:
    """Return the DataFrame of a query without parameters, with fewer calls to the JVM than ``SparkSession.sql``.

    :raises pyspark.errors.PySparkException: if Spark cannot parse or analyze it
    """
    return frame_of(session, java_session(session).sql(query))
