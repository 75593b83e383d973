"""The health of this process's Spark application, about which Python's heartbeat says nothing."""

from __future__ import annotations

import threading
import time
from typing import Final

from pyspark.sql import SparkSession

from airflow_pipelines.common.cpu_time import cpu_time
from airflow_pipelines.engine.spark.application import application_problem

LOOK_S: Final = 1.0
SILENCE_S: Final = 120.0
"""The seconds without an answer after which a JVM counts as dead.

A garbage collection on a busy machine takes a good part of them.
"""
STANDSTILL_S: Final = 10.0
"""The seconds after which a JVM that neither answers nor uses a processor counts as hanging: it does not collect garbage."""
FAILURES: Final = 3
"""The number of failed checks in a row after which the JVM counts as unreachable."""


class SparkHealth:
    """A check of the application once a second, in a thread of its own, because a JVM in trouble does not answer."""

    def __init__(
        self,
        spark: SparkSession,
        process: int | None = None,
        *,
        look_s: float = LOOK_S,
        silence_s: float = SILENCE_S,
        standstill_s: float = STANDSTILL_S,
    ) -> None:
        """Prepare to check the application of ``spark``.

        :param process: the process of its JVM, or None if it is not known or not on this machine
        """
        self._spark = spark
        self._process = process
        self._standstill_s = standstill_s
        self._used: float | None = None
        self._moved = time.monotonic()
        self._look_s = look_s
        self._silence_s = silence_s
        self._closed = threading.Event()
        self._answered = time.monotonic()
        self._found: str | None = None
        self._thread = threading.Thread(target=self._watch, name="spark health", daemon=True)

    def start(self) -> SparkHealth:
        """Start to check."""
        self._answered = time.monotonic()
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop checking."""
        self._closed.set()

    @property
    def problem(self) -> str | None:
        """The reason why Spark cannot work any more, or None while it can."""
        if self._found is not None or self._closed.is_set():
            return self._found
        silent = time.monotonic() - self._answered
        if min(silent, self._still_s()) > self._standstill_s:
            return f"its JVM did not answer for {silent:.0f} s and stands still"
        return f"its JVM did not answer for {silent:.0f} s" if silent > self._silence_s else None

    def _still_s(self) -> float:
        """Return the seconds since the JVM was last seen to have used a processor."""
        used = None if self._process is None else cpu_time(self._process)
        if used is None or used != self._used:
            self._used, self._moved = used, time.monotonic()
        return time.monotonic() - self._moved

    def _watch(self) -> None:
        failures = 0
        while self._found is None and not self._closed.wait(self._look_s):
            try:
                self._found = application_problem(self._spark.sparkContext)
            except Exception as error:  # noqa: BLE001  whatever keeps the JVM from answering
                failures += 1
                if failures >= FAILURES:
                    self._found = _describe_unreachable(error)
                continue
            failures = 0
            self._answered = time.monotonic()


def spark_problem(spark: SparkSession) -> str | None:
    """Return the reason why Spark cannot work any more, as far as it is visible at once, or None while it can.

    It is for callers that have just met an error.
    """
    try:
        return application_problem(spark.sparkContext)
    except Exception as error:  # noqa: BLE001  whatever keeps the JVM from answering
        return _describe_unreachable(error)


def _describe_unreachable(error: Exception) -> str:
    return f"its JVM cannot be reached ({type(error).__name__})"
