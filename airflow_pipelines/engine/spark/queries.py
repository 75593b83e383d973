"""Queries as DataFrames."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from airflow_pipelines.engine.spark.internals import frame_of, java_session


def queried(session: SparkSession, query: str) -> DataFrame:
    """The DataFrame of a query without parameters, for which ``SparkSession.sql`` makes several more calls of the JVM.

    :raises pyspark.errors.PySparkException: when Spark cannot parse or analyze it
    """
    return frame_of(session, java_session(session).sql(query))
