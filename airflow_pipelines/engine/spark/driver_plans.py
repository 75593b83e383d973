"""Plans of one task that run in the driver: few calls of the JVM instead of a job."""

from __future__ import annotations

import functools
import io
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.collecting import ResultTooLargeError
from airflow_pipelines.engine.spark.driver_tasks import driver_task
from airflow_pipelines.engine.spark.internals import JavaObject, java_frame, java_session, jvm, singleton
from airflow_pipelines.engine.spark.physical_plans import RerunnablePlan
from airflow_pipelines.engine.spark.served_batches import batch_schema

_ROWS = 16 << 10
"""Rows of a record batch at most."""
_FEW = 1_000
"""The result of a query over no more rows than this seldom has many bytes."""
_SENT = 4 << 10
"""Up to so many bytes come as the result of a call. As text they must fit into one buffer of the socket's writer: what is left for
a second one waits until the first is acknowledged, for up to 40 ms."""
_PREFIX = "airflow-pipelines-rows-"
_LENGTH = struct.Struct(">i")


class DriverPlan:
    """A plan of one task that may run many times, one run at a time."""

    def __init__(self, frame: DataFrame, plan: RerunnablePlan) -> None:
        """:param frame: the query of the plan; nothing else may run its plan, which keeps things of the last run."""
        self._context = frame.sparkSession.sparkContext
        self._schema = batch_schema(frame)
        self._columns = java_frame(frame).schema()
        self._rows, self._partition = plan.rows, plan.rows.partitions()[0]
        self._properties = _settings(frame)

    def run(self, read: int, most_bytes: int = sys.maxsize) -> pa.Table:
        """The plan's rows over what its leaves have now.

        :param read: the number of rows that the leaves have
        :param most_bytes: so many bytes the result may have
        :raises ResultTooLargeError: for a larger result
        :raises TaskCancelledError: when the job group of the thread was cancelled
        :raises OSError: when there is no room for a temporary file
        """
        java = _classes(self._context)
        with driver_task(self._context, self._properties) as task:
            rows = self._rows.iterator(self._partition, task)
            batches = java.converters.toBatchIterator(rows, self._columns, _ROWS, "UTC", False, False, task)
            content = _few(java, batches, most_bytes) if read <= _FEW else _many(java, batches, most_bytes)
        return pa.Table.from_batches(list(_batches(content, self._schema)), self._schema)


def _settings(frame: DataFrame) -> JavaObject:
    """The settings of a frame's session as the properties of a task, where expressions look them up."""
    java = _classes(frame.sparkSession.sparkContext)
    properties = java.properties()
    properties.putAll(java.collections.asJava(java_session(frame.sparkSession).sessionState().conf().getAllConfs()))
    return properties


def _few(java: _Classes, batches: JavaObject, most: int) -> bytes:
    """The bytes of record batches that are likely to be few, at most some."""
    output = java.bytes()
    java.write(batches, java.data(output))
    if (size := output.size()) > most:
        raise ResultTooLargeError
    if size <= _SENT:
        return bytes(output.toByteArray())
    with tempfile.NamedTemporaryFile(prefix=_PREFIX) as file:
        with closing(java.file(file.name)) as written:
            output.writeTo(written)
        return file.read()


def _many(java: _Classes, batches: JavaObject, most: int) -> bytes:
    """The bytes of record batches, at most some, through a file: in a call they would be text."""
    with tempfile.NamedTemporaryFile(prefix=_PREFIX) as file:
        with closing(java.data(java.buffered(java.file(file.name)))) as written:
            java.write(batches, written)
        if file.seek(0, io.SEEK_END) > most:
            raise ResultTooLargeError
        file.seek(0)
        return file.read()


def _batches(content: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The record batches of some bytes, each after its length."""
    at = 0
    while at < len(content):
        (length,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        # A copy of its own, since Arrow wants numbers at multiples of eight bytes.
        yield pa.ipc.read_record_batch(pa.py_buffer(content[at : at + length]), schema)
        at += length


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of the JVM and a method, looked up once: each part of a name costs a call."""

    converters: JavaObject
    write: JavaObject
    bytes: JavaObject
    data: JavaObject
    buffered: JavaObject
    file: JavaObject
    properties: JavaObject
    collections: JavaObject


@functools.lru_cache(maxsize=4)
def _classes(context: SparkContext) -> _Classes:
    java = jvm(context)
    return _Classes(
        converters=singleton(java.org.apache.spark.sql.execution.arrow, "ArrowConverters"),
        write=java.org.apache.spark.api.python.PythonRDD.writeIteratorToStream,
        bytes=java.java.io.ByteArrayOutputStream,
        data=java.java.io.DataOutputStream,
        buffered=java.java.io.BufferedOutputStream,
        file=java.java.io.FileOutputStream,
        properties=java.java.util.Properties,
        collections=java.scala.jdk.javaapi.CollectionConverters,
    )
