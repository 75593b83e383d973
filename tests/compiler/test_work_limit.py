"""A compilation is limited by its work, not by how busy its machine is."""

from __future__ import annotations

import threading
import time

import pytest

from airflow_pipelines.compiler.work_limit import GUARD, WorkLimit
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.spark.thread_time import thread_seconds


class Times:
    """A machine's clock, and how much of a processor a thread has had."""

    def __init__(self) -> None:
        self.now = 5.0
        self.had = 2.0


def test_time_in_which_others_have_the_machine_is_no_work() -> None:
    times = Times()
    limit = WorkLimit(100, lambda: times.had, lambda: times.now)
    times.now += 30 * 100
    times.had += 99
    assert limit.reason_to_end("half way") is None
    times.had += 2
    assert limit.reason_to_end("half way") == (
        "Compiling this program takes more than 100 s of a processor: half way. Divide it into several pipelines"
    )


def test_a_compilation_that_gets_no_processor_ends_as_well() -> None:
    times = Times()
    limit = WorkLimit(100, lambda: times.had, lambda: times.now)
    times.now += GUARD * 100 + 1
    reason = limit.reason_to_end("half way")
    assert reason is not None
    assert "had a processor for 0 s: half way. The machine of the compiler is too busy" in reason


@pytest.mark.core
def test_work_is_that_of_this_thread_and_of_the_jvm_for_it(sessions: SparkSessions) -> None:
    context = sessions.small.sparkContext
    before = thread_seconds(context)
    time.sleep(0.3)
    waited = thread_seconds(context) - before
    for number in range(30):
        sessions.small.sql(f"select {number} + id, sum(id) from range(5) group by 1").schema.fieldNames()
    worked = thread_seconds(context) - before - waited
    assert worked > waited
    elsewhere: list[float] = []
    other = threading.Thread(target=lambda: elsewhere.append(thread_seconds(context)))
    other.start()
    other.join()
    assert elsewhere[0] < thread_seconds(context)
