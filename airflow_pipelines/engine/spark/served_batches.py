"""Arrow record batches that a thread of the JVM serves to Python."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from cachetools import LRUCache, cached
from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.internals import JavaObject, java_frame, jvm
from airflow_pipelines.engine.spark.intervals import readable_schema
from airflow_pipelines.engine.spark.result_connection import ResultConnection, check_served

_REMEMBERED = 1_000
"""The number of cached schemas: getting one from the JVM takes three calls."""


@cached(LRUCache(_REMEMBERED), key=lambda frame: frame.schema.json(), lock=threading.Lock())
def batch_schema(frame: DataFrame) -> pa.Schema:
    """Return the Arrow schema of the record batches that Spark makes of a frame's rows, in types that pyarrow reads."""
    message = _arrow_utils(frame.sparkSession.sparkContext).toArrowSchema(java_frame(frame).schema(), "UTC", False, False)
    return readable_schema(pa.ipc.read_schema(pa.py_buffer(bytes(message.serializeAsMessage()))))


def served_batches(
    served: JavaObject, frame: DataFrame, schema: pa.Schema, connection: ResultConnection
) -> Iterator[pa.RecordBatch]:
    """Yield all batches that a thread serves.

    :param served: the port, secret and thread, as PySpark returns them
    :param frame: the frame that is served
    :param schema: the schema of its batches, see :func:`batch_schema`
    :param connection: the connection for the batches
    :raises MemoryError: when the JVM has no memory for them
    :raises AbortedError: when the connection was aborted
    """
    port, secret, server = served
    with connection.open(port, secret) as source:
        # PySpark does not type it.
        serializer: Any = NoOpSerializer
        for content in serializer().load_stream(source):
            yield pa.ipc.read_record_batch(pa.py_buffer(content), schema)
        connection.check()
        # A reader cannot tell the end of the rows from a connection that broke.
        check_served(server, frame)


@functools.lru_cache(maxsize=4)
def _arrow_utils(context: SparkContext) -> JavaObject:
    return jvm(context).org.apache.spark.sql.util.ArrowUtils
