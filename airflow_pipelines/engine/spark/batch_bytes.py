"""Record batches of rows that are in the driver of Spark, as bytes: few of them as the result of a call, more through a file.

Rows that a thread of the JVM serves over a socket cost some ten milliseconds, however few they are.
"""

from __future__ import annotations

import functools
import io
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyspark import SparkContext

from airflow_pipelines.engine.spark.internals import JavaObject, jvm, singleton
from airflow_pipelines.engine.spark.result_connection import ResultTooLargeError

FEW_ROWS = 1_000
"""The result of a query over no more rows than this seldom has many bytes."""
_BATCH_ROWS = 16 << 10
"""Rows of a record batch at most."""
_SENT = 4 << 10
"""Up to so many bytes come as the result of a call. As text they must fit into one buffer of the socket's writer: what is left for
a second one waits until the first is acknowledged, for up to 40 ms."""
_PREFIX = "airflow-pipelines-rows-"
_LENGTH = struct.Struct(">i")


def few_bytes(context: SparkContext, rows: JavaObject, columns: JavaObject, task: JavaObject, most: int) -> bytes:
    """The bytes of rows that are likely to be few.

    :param context: the application
    :param rows: a Scala iterator over Spark's internal rows
    :param columns: Spark's own StructType of the rows
    :param task: the Java TaskContext of the calling thread, None outside of tasks
    :param most: so many bytes there may be
    :raises ResultTooLargeError: when there are more
    :raises OSError: when there is no room for a temporary file
    """
    java = _classes(context)
    output = java.bytes()
    java.write(_batches(java, rows, columns, task), java.data(output))
    if (size := output.size()) > most:
        raise ResultTooLargeError
    if size <= _SENT:
        return bytes(output.toByteArray())
    with tempfile.NamedTemporaryFile(prefix=_PREFIX) as file:
        with closing(java.file(file.name)) as written:
            output.writeTo(written)
        return file.read()


def many_bytes(context: SparkContext, rows: JavaObject, columns: JavaObject, task: JavaObject, most: int) -> bytes:
    """The bytes of rows through a file: in a call they would be text. As :func:`few_bytes` else."""
    java = _classes(context)
    with tempfile.NamedTemporaryFile(prefix=_PREFIX) as file:
        with closing(java.data(java.buffered(java.file(file.name)))) as written:
            java.write(_batches(java, rows, columns, task), written)
        if file.seek(0, io.SEEK_END) > most:
            raise ResultTooLargeError
        file.seek(0)
        return file.read()


def batches_of(content: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The record batches of :func:`few_bytes` and :func:`many_bytes`, each of which comes after its length.

    :param content: the bytes
    :param schema: that of the batches, see :func:`~airflow_pipelines.engine.spark.served_batches.batch_schema`
    """
    at = 0
    while at < len(content):
        (length,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        # A copy of its own, since Arrow wants numbers at multiples of eight bytes.
        yield pa.ipc.read_record_batch(pa.py_buffer(content[at : at + length]), schema)
        at += length


def _batches(java: _Classes, rows: JavaObject, columns: JavaObject, task: JavaObject) -> JavaObject:
    return java.converters.toBatchIterator(rows, columns, _BATCH_ROWS, "UTC", False, False, task)


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of the JVM and a method, looked up once: each part of a name costs a call."""

    converters: JavaObject
    write: JavaObject
    bytes: JavaObject
    data: JavaObject
    buffered: JavaObject
    file: JavaObject


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
    )
