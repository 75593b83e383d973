"""Collects rows from Spark as Arrow tables: for a request at most a limit of bytes, and only as long as its client waits."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Final

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.util import local_connect_and_auth

from airflow_pipelines.engine.arrow import arrow_schema
from airflow_pipelines.engine.spark.internals import JavaObject, java_frame, jvm, query_execution
from airflow_pipelines.engine.values.intervals import readable

BROKEN_OFF_S: Final = 10.0
"""How long to wait for the cause when a result breaks off. It is there at once, unless the thread that knows it has died."""


class ResultTooLargeError(Exception):
    """A result has more bytes than it may have."""


class AbortedError(Exception):
    """The collection of a result was given up."""


def collected(frame: DataFrame) -> pa.Table:
    """A DataFrame's rows as a pyarrow Table, in the types of batches.

    ``DataFrame.toArrow`` does nearly the same. It ends with a cast that fails for a VARIANT that is NULL and for intervals of
    months, and it waits for ever when the JVM has no memory for the result.

    :raises MemoryError: when the JVM has no memory for the result
    """
    return Collector().collected(frame)


class Collector:
    """Collects the frames of one request.

    :param limit_bytes: more bytes of Arrow data than this are too many, over all frames of the request; None: there is no limit
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._size = 0
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = False

    def collected(self, frame: DataFrame) -> pa.Table:
        """A frame's rows as a pyarrow Table, in the types of batches.

        :raises MemoryError: when the JVM has no memory for the result
        :raises ResultTooLargeError: when there are too many bytes
        :raises AbortedError: after :meth:`abort`
        """
        if self._limit_bytes is not None:
            # Planned here, where a lack of memory is an error with a text, and not in the thread that serves the result.
            query_execution(frame).executedPlan()
        port, secret, server = java_frame(frame).collectAsArrowToPython()
        source, connection = local_connect_and_auth(port, secret)
        connection.settimeout(None)
        try:
            self._attach(connection)
            batches = self._read(source, server, frame)
        finally:
            with self._lock:
                self._socket = None
            with contextlib.suppress(OSError):
                source.close()
            connection.close()
        if not batches:
            return arrow_schema(frame.schema).empty_table()
        return pa.Table.from_batches([readable(batch) for batch in batches])

    def abort(self) -> None:
        """End the collection under way, from any thread; later ones are refused."""
        with self._lock:
            self._aborted = True
            if self._socket is not None:
                # Closing it would not wake a thread that reads from it.
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _attach(self, connection: socket.socket) -> None:
        with self._lock:
            if self._aborted:
                raise AbortedError
            self._socket = connection

    def _read(self, source: Any, server: JavaObject, frame: DataFrame) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        order: list[int] = []
        # PySpark does not type it.
        serializer: Any = ArrowCollectSerializer
        try:
            for part in serializer().load_stream(source):
                if isinstance(part, list):
                    order = part
                    continue
                self._size += part.nbytes
                if self._limit_bytes is not None and self._size > self._limit_bytes:
                    raise ResultTooLargeError
                batches.append(part)
        except ResultTooLargeError:
            raise
        except Exception:
            if self._aborted:
                raise AbortedError from None
            _raise_cause(server, frame)
            raise
        with unwrap_spark_exception():
            server.getResult()
        return [batches[at] for at in order]


def _raise_cause(server: JavaObject, frame: DataFrame) -> None:
    """Raise the error that a result broke off with, which only the thread of the JVM that served it knows."""
    java = jvm(frame.sparkSession.sparkContext)
    patience = java.scala.concurrent.duration.Duration.apply(int(BROKEN_OFF_S * 1000), "ms")
    try:
        with unwrap_spark_exception():
            server.getResult(patience)
    except Exception as error:
        if "TimeoutException" in str(error):
            raise MemoryError("Spark has no memory for the result: its thread ended without a word") from error
        raise
