"""Bringing rows from Spark to Python; for a request not more than a limit, and not longer than somebody waits for them."""

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
from airflow_pipelines.engine.values.intervals import readable

BROKEN_OFF_S: Final = 10.0
"""What went wrong is known at once when a result breaks off, unless the thread that knows it died of it."""


class ResultTooLargeError(Exception):
    """A result has more bytes than it may have."""


class AbortedError(Exception):
    """Nobody waits for the result any more."""


def collected(frame: DataFrame) -> Any:
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

    def collected(self, frame: DataFrame) -> Any:
        """A frame's rows as a pyarrow Table, in the types of batches.

        :raises MemoryError: when the JVM has no memory for the result
        :raises ResultTooLargeError: when there are too many bytes
        :raises AbortedError: after :meth:`abort`
        """
        within: Any = frame
        if self._limit_bytes is not None:
            # Made here, where a lack of memory is an error with a text, not in the thread that serves the result.
            within._jdf.queryExecution().executedPlan()
        port, secret, server = within._jdf.collectAsArrowToPython()
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
        """Let go of what is being collected, from whatever thread; nothing more is collected."""
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

    def _read(self, source: Any, server: Any, frame: DataFrame) -> list[Any]:
        batches: list[Any] = []
        order: list[int] = []
        # It has no types of its own.
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


def _raise_cause(server: Any, frame: DataFrame) -> None:
    """Raise what a result broke off with, which only the thread in the JVM knows that served it."""
    within: Any = frame.sparkSession
    patience = within._jvm.scala.concurrent.duration.Duration.apply(int(BROKEN_OFF_S * 1000), "ms")
    try:
        with unwrap_spark_exception():
            server.getResult(patience)
    except Exception as error:
        if "TimeoutException" in str(error):
            raise MemoryError("Spark has no memory for the result: its thread ended without a word") from error
        raise
