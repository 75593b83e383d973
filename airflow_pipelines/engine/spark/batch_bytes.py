"""Transfer of record batches from Spark's driver as bytes: few as the result of a call, more through a file.

Serving rows from a thread of the JVM over a socket costs some ten milliseconds, however few they are.
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
"""The number of rows up to which the result of a query seldom has many bytes."""
_BATCH_ROWS = 16 << 10
"""The maximum number of rows of a record batch."""
_SENT = 4 << 10
"""The maximum number of bytes that are returned as the result of a call.

As text they must fit into one buffer of the socket's writer: the remainder in a second buffer waits until the first is
acknowledged, for up to 40 ms.
"""
_PREFIX = "airflow-pipelines-rows-"
_LENGTH = struct.Struct(">i")


def few_bytes(context: SparkContext, rows: JavaObject, columns: JavaObject, task: JavaObject, most: int) -> bytes:
    """Return the bytes of rows that are likely to be few.

    :param context: the application
    :param rows: a Scala iterator over Spark's internal rows
    :param columns: Spark's own StructType of the rows
    :param task: the Java TaskContext of the calling thread, None outside of tasks
    :param most: the maximum number of bytes
    :raises ResultTooLargeError: if there are more
    :raises OSError: if there is no room for a temporary file
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
    """Return the bytes of rows through a file, because a call would return them as text.

    See :func:`few_bytes` for the parameters.
    """
    java = _classes(context)
    with tempfile.NamedTemporaryFile(prefix=_PREFIX) as file:
        with closing(java.data(java.buffered(java.file(file.name)))) as written:
            java.write(_batches(java, rows, columns, task), written)
        if file.seek(0, io.SEEK_END) > most:
            raise ResultTooLargeError
        file.seek(0)
        return file.read()


def batches_of(content: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the record batches in the bytes from :func:`few_bytes` and :func:`many_bytes`. Each batch follows its length.

    :param content: the bytes
    :param schema: the schema of the batches, see :func:`~airflow_pipelines.engine.spark.served_batches.batch_schema`
    """
    at = 0
    while at < len(content):
        (length,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        # A copy, because Arrow requires numbers at multiples of eight bytes.
        yield pa.ipc.read_record_batch(pa.py_buffer(content[at : at + length]), schema)
        at += length


def _batches(java: _Classes, rows: JavaObject, columns: JavaObject, task: JavaObject) -> JavaObject:
    return java.converters.toBatchIterator(rows, columns, _BATCH_ROWS, "UTC", False, False, task)


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes and a method of the JVM, looked up once: each part of a name costs a call."""

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
