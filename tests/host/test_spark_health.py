"""What a host takes for the end of Spark. The application of the tests must go on, so that its troubles are played."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from airflow_pipelines.host.spark_health import SparkHealth


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


def test_an_application_that_works_has_no_problem(spark: SparkSession) -> None:
    health = SparkHealth(spark, look_s=0.01).start()
    time.sleep(0.2)
    assert health.problem is None
    assert health._answered > time.monotonic() - 10
    health.close()
    health._thread.join(10)
    assert not health._thread.is_alive()
