"""The connection through which the JVM serves the rows of a result. Any thread may abort it."""

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
"""The time in seconds to wait for the cause of a broken result.

It is known at once unless the JVM thread that knows it died of it.
"""


class AbortedError(Exception):
    """The error of a result that nobody waits for any more."""


class ResultTooLargeError(Exception):
    """The error of a result that exceeds its limit of bytes."""


class ResultConnection:
    """The connections of one request, one open at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = False

    @contextlib.contextmanager
    def open(self, port: int, secret: str) -> Iterator[BinaryIO]:
        """Connect to a thread of the JVM that serves rows.

        :param port: the port on which it listens, as reported by the JVM
        :param secret: the secret that it expects first
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
        """Check that the result is still wanted.

        :raises AbortedError: after :meth:`abort`
        """
        with self._lock:
            self._check()

    def abort(self) -> None:
        """Abort the current read, from any thread; nothing more is read."""
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
    """Wait for the thread of the JVM that served a result, and raise the error that it ended with, if any.

    :param server: the thread, as PySpark returns it beside port and secret
    :param frame: the frame that was served
    :raises MemoryError: if it ended without a message, which happens only when the JVM has no memory
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
