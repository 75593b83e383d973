"""What a host takes for the end of Spark. The application of the tests must go on, so that its troubles are played."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from airflow_pipelines.host.runs.spark_health import SparkHealth

pytestmark = pytest.mark.core


def played(look: Any) -> Any:
    """A session whose context is asked by calling ``look``."""
    return SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=look)))


def _context(stopped: bool, scheduling: bool) -> Any:
    loop = SimpleNamespace(isActive=lambda: scheduling)
    return SimpleNamespace(isStopped=lambda: stopped, dagScheduler=lambda: SimpleNamespace(eventProcessLoop=lambda: loop))


def _unreachable() -> Any:
    raise Py4JNetworkError("Answer from Java side is empty")


@pytest.mark.parametrize(
    ("session", "says"),
    [
        (played(lambda: _context(stopped=True, scheduling=True)), "SparkContext was stopped"),
        (SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None)), "SparkContext was stopped"),
        (played(lambda: _context(stopped=False, scheduling=False)), "scheduler has ended"),
        (played(_unreachable), "JVM cannot be reached"),
        (played(lambda: time.sleep(30)), "did not answer"),
    ],
)
def test_the_end_of_spark_is_noticed(session: Any, says: str) -> None:
    health = SparkHealth(session, look_s=0.01, silence_s=0.3).start()
    deadline = time.monotonic() + 10
    while health.problem is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert says in health.problem
    health.close()


@pytest.mark.processes
def test_a_jvm_that_stands_still_hangs_and_one_that_works_may_take_its_time() -> None:
    """Collecting garbage takes long on a busy machine, but it takes a processor."""
    silent = played(lambda: time.sleep(30))
    with subprocess.Popen(["sleep", "60"]) as still, subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            hung = SparkHealth(silent, still.pid, look_s=0.01, standstill_s=1.0).start()
            collecting = SparkHealth(silent, busy.pid, look_s=0.01, standstill_s=1.0).start()
            deadline = time.monotonic() + 10
            while (problem := hung.problem) is None:
                assert collecting.problem is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            still.kill()
            busy.kill()
    assert "stands still" in problem
    hung.close()
    collecting.close()


def test_an_application_that_works_has_no_problem(spark: SparkSession) -> None:
    health = SparkHealth(spark, look_s=0.01).start()
    first, deadline = health._answered, time.monotonic() + 10
    while health._answered == first:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert health.problem is None
    health.close()
    health._thread.join(10)
    assert not health._thread.is_alive()
