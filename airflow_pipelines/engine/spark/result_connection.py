"""The connection through which the JVM serves the rows of a result, which any thread may break off."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Iterator
from typing import BinaryIO, Final

from pyspark import SparkContext
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame
from pyspark.util import local_connect_and_auth

from airflow_pipelines.engine.spark.internals import JavaObject, jvm

BROKEN_OFF_S: Final = 10.0
"""Why a result broke off is known at once, unless the thread in the JVM that knows it died of the cause."""


class AbortedError(Exception):
    """Nobody waits for the result any more."""


class ResultTooLargeError(Exception):
    """A result has more bytes than it may have."""


class ResultConnection:
    """The connections of one request, one open at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = False

    @contextlib.contextmanager
    def opened(self, port: int, secret: str) -> Iterator[BinaryIO]:
        """Connect to a thread of the JVM that serves rows.

        :param port: where it listens, as the JVM said it
        :param secret: what it wants to hear first
        :returns: a binary file to read from
        :raises AbortedError: after :meth:`abort`
        """
        source, connection = local_connect_and_auth(port, secret)
        connection.settimeout(None)
        try:
            with self._lock:
                self._check()
                self._socket = connection
            yield source
        except OSError:
            # After an abort the JVM may find the connection closed while it writes, and resets it.
            self.check()
            raise
        finally:
            with self._lock:
                self._socket = None
            with contextlib.suppress(OSError):
                source.close()
            connection.close()

    def check(self) -> None:
        """Go on only while somebody waits.

        :raises AbortedError: after :meth:`abort`
        """
        with self._lock:
            self._check()

    def abort(self) -> None:
        """Break off what is being read, from whatever thread; nothing more is read."""
        with self._lock:
            self._aborted = True
            if self._socket is not None:
                # Closing it would not wake a thread that reads from it.
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _check(self) -> None:
        if self._aborted:
            raise AbortedError


def check_served(server: JavaObject, frame: DataFrame) -> None:
    """Wait for the thread of the JVM that served a result, and raise what it ended with.

    :param server: the thread, as PySpark gives it beside port and secret
    :param frame: what was served
    :raises MemoryError: when it ended without a word, which it does only when the JVM has no memory
    """
    try:
        with unwrap_spark_exception():
            server.getResult(_patience(frame.sparkSession.sparkContext))
    except Exception as error:
        if "TimeoutException" in str(error):
            raise MemoryError("Spark has no memory for the result: its thread ended without a word") from error
        raise


@functools.lru_cache(maxsize=4)
def _patience(context: SparkContext) -> JavaObject:
    return jvm(context).scala.concurrent.duration.Duration.apply(int(BROKEN_OFF_S * 1000), "ms")
