"""Whether the Spark application of this process still works. Python's heartbeat says nothing about that."""

from __future__ import annotations

import threading
import time
from typing import Final

from pyspark.sql import SparkSession

from airflow_pipelines.common.cpu_time import cpu_time
from airflow_pipelines.engine.spark.application import application_problem

LOOK_S: Final = 1.0
SILENCE_S: Final = 120.0
"""A JVM that does not answer for this long counts as dead. Collecting garbage on a busy machine takes a good part of it."""
STANDSTILL_S: Final = 10.0
"""A JVM that neither answers nor uses a processor at all for so long does not collect garbage: it hangs."""
FAILURES: Final = 3
"""So many looks in a row that are answered by no JVM are no accident."""


class SparkHealth:
    """Looks at the application once a second. It does so in a thread of its own, because a JVM in trouble does not answer."""

    def __init__(
        self,
        spark: SparkSession,
        process: int | None = None,
        *,
        look_s: float = LOOK_S,
        silence_s: float = SILENCE_S,
        standstill_s: float = STANDSTILL_S,
    ) -> None:
        """Look at the application of ``spark`` once it is told to start.

        :param process: the process of its JVM, None when it is not known or not of this machine
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
        """Begin to look."""
        self._answered = time.monotonic()
        self._thread.start()
        return self

    def close(self) -> None:
        """Look no more."""
        self._closed.set()

    @property
    def problem(self) -> str | None:
        """Why Spark can do nothing any more; None while it can."""
        if self._found is not None or self._closed.is_set():
            return self._found
        silent = time.monotonic() - self._answered
        if min(silent, self._still_s()) > self._standstill_s:
            return f"its JVM did not answer for {silent:.0f} s and stands still"
        return f"its JVM did not answer for {silent:.0f} s" if silent > self._silence_s else None

    def _still_s(self) -> float:
        """Seconds since the JVM was last seen to have used a processor."""
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
                    self._found = _unreachable(error)
                continue
            failures = 0
            self._answered = time.monotonic()


def spark_problem(spark: SparkSession) -> str | None:
    """Why Spark can do nothing any more, as far as it can be seen at once; None while it can. For whoever has just met an error."""
    try:
        return application_problem(spark.sparkContext)
    except Exception as error:  # noqa: BLE001  whatever keeps the JVM from answering
        return _unreachable(error)


def _unreachable(error: Exception) -> str:
    return f"its JVM cannot be reached ({type(error).__name__})"
