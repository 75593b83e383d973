"""Counts what Spark is asked for: jobs, and plans that run in the driver."""

from __future__ import annotations

from pyspark import SparkContext

from airflow_pipelines.engine.spark.driver_tasks import begun_tasks
from airflow_pipelines.engine.spark.jobs import started_jobs


def asked_of_spark(context: SparkContext) -> int:
    """How often an application was asked for rows so far."""
    return started_jobs(context) + begun_tasks()
