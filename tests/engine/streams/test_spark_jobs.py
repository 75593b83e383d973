"""Chains of a stream program that run as tasks of Spark give what the program's own process gives."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark import TaskContext

from airflow_pipelines.datastream import MapFunction
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.streams.spark_jobs import SparkJobs, spark_jobs
from airflow_pipelines.streams.worker.client import ProgramFailedError
from tests.datastream.programs import environment
from tests.streams.worker.programs import Held, Kept, elements, program, rows, source, splits, start
from tests.streams.worker.test_any_cut import fed_program, feeds_of

ONE = [("abcd"[number % 4], number * 7 % 60, number % 10) for number in range(60)]
TWO = [("dcba"[number % 4], number * 5 % 60, number % 7) for number in range(40)]


@pytest.mark.core("state and timers", slow_because="three ways to run a stream program")
@pytest.mark.processes
@pytest.mark.parametrize("name", ["state and timers", "sessions, late allowed", "downstream", "broadcast"])
def test_large_and_small_steps_in_turns_give_what_one_process_gives(sessions: SparkSessions, name: str) -> None:
    jobs = SparkJobs(sessions.large.sparkContext, 0)
    steps = feeds_of(name, (ONE, TWO), [20, 40])
    here, worker = Held(fed_program(name, 2)), start(fed_program(name, 2))
    kept_here, kept = Kept(), Kept()
    here.open(now_ms=0)
    worker.open(now_ms=0)
    for number, feeds in enumerate(steps):
        expected = here.step(number, feeds)
        found = worker.step(number, feeds, None if number % 2 else jobs)
        assert (rows(found), found.read, found.next_due) == (rows(expected), expected.read, expected.next_due)
        if number == len(steps) // 2:
            kept_here.save(here)
            kept.save(worker)
            assert kept.keys() == kept_here.keys()
            worker.close()
            worker = start(fed_program(name, 2))
            worker.open(kept.rest, database=kept.stored())
    assert found.has_ended
    worker.close()
    here.close()


class Fails(MapFunction):
    def map(self, value: int) -> float:
        return 1 / value


@pytest.mark.processes
def test_a_function_that_fails_in_a_task_is_told_with_its_element_and_place(sessions: SparkSessions) -> None:
    bound = program(source(environment(2)).rebalance().map(Fails()).name("Divide"), parallelism=2)
    worker = start(bound)
    worker.open()
    with pytest.raises(ProgramFailedError) as caught:
        worker.step(0, [splits(1), elements([1, 2, 0])], SparkJobs(sessions.large.sparkContext, 0))
    worker.close()
    failure = caught.value.failure
    assert (failure.type, failure.message, failure.operator) == ("ZeroDivisionError", "division by zero", "Divide")
    assert "element: 0" in failure.notes[0]
    assert "return 1 / value" in failure.traceback
    assert "py4j" not in str(caught.value)


class KilledOnce(MapFunction):
    """Ends the first process that maps."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def map(self, value: int) -> int:
        if TaskContext.get() is not None and not self.mark.exists():
            self.mark.touch()
            os._exit(3)
        return value


def test_a_task_whose_process_is_gone_fails_the_step_or_is_run_again(sessions: SparkSessions, tmp_path: Path) -> None:
    """In local mode Spark starts a task once; what counts is that nothing was taken over of it."""
    bound = program(source(environment(2)).map(KilledOnce(tmp_path / "killed")), parallelism=2)
    jobs = SparkJobs(sessions.large.sparkContext, 0)
    worker = start(bound)
    worker.open()
    feeds = [splits(1), elements([1, 2])]
    with pytest.raises(Exception, match=r"crashed|exited|EOF|aborted"):
        worker.step(0, feeds, jobs)
    worker.close()
    worker = start(bound)
    worker.open()
    assert rows(worker.step(0, feeds, jobs)) == [("1",), ("2",)]
    worker.close()


def test_a_cluster_runs_no_chains() -> None:
    """Its machines have neither this package nor the program's files."""
    assert spark_jobs(Mock(master="spark://host:7077", defaultParallelism=8), 1) is None
    assert spark_jobs(Mock(master="local-cluster[4,1,1024]", defaultParallelism=4), 1) is None
    assert isinstance(spark_jobs(Mock(master="local[4]", defaultParallelism=4), 1), SparkJobs)


def test_few_cores_run_no_chains() -> None:
    """The way there and back costs more than a second core brings."""
    assert spark_jobs(Mock(master="local[3]", defaultParallelism=3), 1) is None
