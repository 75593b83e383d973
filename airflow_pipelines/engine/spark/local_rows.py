"""Rows that Spark's optimizer has evaluated: a query over a few constant rows needs no job.

If a query over local rows has only expressions, filters and limits, the optimizer evaluates them and the physical plan is a scan of
the result. Spark nevertheless runs a job to bring it to Python, which takes many times as long.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.batch_bytes import FEW_ROWS, batches_of, few_bytes
from airflow_pipelines.engine.spark.internals import JavaObject, java_frame, java_session, jvm, query_execution, singleton
from airflow_pipelines.engine.spark.result_connection import ResultConnection
from airflow_pipelines.engine.spark.served_batches import batch_schema, served_batches

_SCAN: Final = "org.apache.spark.sql.execution.LocalTableScanExec"


def local_rows(frame: DataFrame) -> LocalRows | None:
    """Return the rows of a frame that needs no job.

    :returns: the rows; None for any other frame
    """
    plan = query_execution(frame).executedPlan()
    return LocalRows(frame, plan.rows()) if plan.getClass().getName() == _SCAN else None


class LocalRows:
    """Rows in the driver of Spark, which :func:`local_rows` finds."""

    def __init__(self, frame: DataFrame, rows: JavaObject) -> None:
        self._frame = frame
        self._rows = rows

    def read(self, connection: ResultConnection) -> Iterator[pa.RecordBatch]:
        """Yield the rows as record batches, in the form that a job would return.

        :param connection: the connection for the rows
        :raises MemoryError: when the JVM has no memory for them
        :raises AbortedError: when the connection was aborted
        """
        connection.check()
        context, schema = self._frame.sparkSession.sparkContext, batch_schema(self._frame)
        if self._rows.length() > FEW_ROWS:
            yield from self._serve(context, schema, connection)
            return
        content = few_bytes(context, self._rows.iterator(), java_frame(self._frame).schema(), None, sys.maxsize)
        connection.check()
        yield from batches_of(content, schema)

    def _serve(self, context: SparkContext, schema: pa.Schema, connection: ResultConnection) -> Iterator[pa.RecordBatch]:
        """Yield many rows through a connection, which can be aborted meanwhile."""
        java = _classes(context)
        conf = java_session(self._frame.sparkSession).sessionState().conf()
        batches = java.converters.toBatchIterator(
            self._rows.iterator(),
            java_frame(self._frame).schema(),
            conf.arrowMaxRecordsPerBatch(),
            conf.sessionLocalTimeZone(),
            conf.pandasStructHandlingMode() == "legacy",
            conf.arrowUseLargeVarTypes(),
            None,
        )
        served = java.python.serveIterator(batches, "serve local rows")
        yield from served_batches(served, self._frame, schema, connection)


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of the JVM, looked up once: each part of a name costs a call."""

    converters: JavaObject
    python: JavaObject


@functools.lru_cache(maxsize=4)
def _classes(context: SparkContext) -> _Classes:
    spark = jvm(context).org.apache.spark
    return _Classes(singleton(spark.sql.execution.arrow, "ArrowConverters"), spark.api.python.PythonRDD)
