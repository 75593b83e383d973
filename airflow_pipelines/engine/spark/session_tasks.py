"""The settings of a session for tasks of jobs that no query of Spark's own starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.internals import java_session, jvm, scala_context


@contextmanager
def conf_for_tasks(session: SparkSession) -> Iterator[None]:
    """Pass a session's settings to the tasks of the jobs within the block, as Spark does for a query that it runs itself.

    :param session: the session
    """
    context = scala_context(session.sparkContext)
    converters = jvm(session.sparkContext).scala.jdk.javaapi.CollectionConverters
    before = context.getLocalProperties()
    properties = before.clone()
    properties.putAll(converters.asJava(java_session(session).sessionState().conf().getAllConfs()))
    context.setLocalProperties(properties)
    try:
        yield
    finally:
        context.setLocalProperties(before)
