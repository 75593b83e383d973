"""Plans of one task that run in the driver, with a few calls to the JVM instead of a job."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.batch_bytes import FEW_ROWS, batches_of, few_bytes, many_bytes
from airflow_pipelines.engine.spark.driver_tasks import driver_task
from airflow_pipelines.engine.spark.internals import JavaObject, java_frame, java_session, jvm
from airflow_pipelines.engine.spark.physical_plans import RerunnablePlan
from airflow_pipelines.engine.spark.served_batches import batch_schema


class DriverPlan:
    """A plan of one task that may run many times, one run at a time."""

    def __init__(self, frame: DataFrame, plan: RerunnablePlan) -> None:
        """:param frame: the query of the plan; nothing else may run its plan, which keeps state of the last run."""
        self._context = frame.sparkSession.sparkContext
        self._schema = batch_schema(frame)
        self._columns = java_frame(frame).schema()
        self._rows, self._partition = plan.rows, plan.rows.partitions()[0]
        self._properties = _settings(frame)

    def run(self, read: int, most_bytes: int = sys.maxsize) -> pa.Table:
        """Return the plan's rows over the current rows of its leaves.

        :param read: the number of rows in the leaves
        :param most_bytes: the maximum number of bytes of the result
        :raises ResultTooLargeError: for a larger result
        :raises TaskCancelledError: when the job group of the thread was cancelled
        :raises OSError: if there is no room for a temporary file
        """
        bytes_of = few_bytes if read <= FEW_ROWS else many_bytes
        with driver_task(self._context, self._properties) as task:
            rows = self._rows.iterator(self._partition, task)
            content = bytes_of(self._context, rows, self._columns, task, most_bytes)
        return pa.Table.from_batches(list(batches_of(content, self._schema)), self._schema)


def _settings(frame: DataFrame) -> JavaObject:
    """Return the settings of a frame's session as the properties of a task, where expressions look them up."""
    java = _classes(frame.sparkSession.sparkContext)
    properties = java.properties()
    properties.putAll(java.collections.asJava(java_session(frame.sparkSession).sessionState().conf().getAllConfs()))
    return properties


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of the JVM, looked up once: each part of a name costs a call."""

    properties: JavaObject
    collections: JavaObject


@functools.lru_cache(maxsize=4)
def _classes(context: SparkContext) -> _Classes:
    java = jvm(context)
    return _Classes(java.java.util.Properties, java.scala.jdk.javaapi.CollectionConverters)
