"""Before a client asks for it, a query over each large relation has been begun, once for each form in which it is stored."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.spark.jobs import started_jobs
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.host.queries.first_queries import REPEATS, FirstQueries
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from tests.engine.programs import Running

FILES = Limits(small_rows=10, held_bytes=-1)
PROGRAM = """create table t (id int, a int array) with ('materialized' = 'true');
    create table small (id int) with ('materialized' = 'true');
    create view hidden as select id from t;
    create materialized view "Order" as select id from t;"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PipelineLog]:
    log = PipelineLog(tmp_path / "pipeline.log", "p")
    yield log
    log.close()


def _jobs(running: Running, first: FirstQueries) -> int:
    """Look once, and count the jobs that this starts."""
    context = running.sessions.small.sparkContext
    before = started_jobs(context)
    first.look(running.circuit)
    for thread in threading.enumerate():
        if thread.name == "first queries":
            thread.join(60)
    return started_jobs(context) - before


def test_queries_are_begun_once_for_each_form(sessions: SparkSessions, log: PipelineLog, tmp_path: Path) -> None:
    running = Running(PROGRAM, sessions, limits=FILES)
    first = FirstQueries(sessions.small.sparkContext, "first", log)
    assert _jobs(running, first) == 0
    running.insert("small", (1,))
    assert _jobs(running, first) == 0
    running.insert("t", *((number, [number]) for number in range(20)))
    # The first rows of the table and of the view; what is new is done several times.
    assert _jobs(running, first) == REPEATS + 1
    running.insert("t", *((number, [number]) for number in range(20)))
    assert _jobs(running, first) == 0
    running.delete("t", (1, [1]))
    assert _jobs(running, first) > REPEATS
    running.delete("t", (2, [2]))
    assert _jobs(running, first) == 0
    first.close()
    assert "failed" not in (tmp_path / "pipeline.log").read_text()


@pytest.mark.core
def test_a_query_that_fails_is_in_the_log(sessions: SparkSessions, log: PipelineLog, tmp_path: Path) -> None:
    running = Running("create table t (id int) with ('materialized' = 'true')", sessions, limits=FILES)
    running.insert("t", *((number,) for number in range(20)))
    for name in running.circuit.snapshot.files():
        (running.store.folder / name).unlink()
    first = FirstQueries(sessions.small.sparkContext, "first", log)
    _jobs(running, first)
    first.close()
    assert "the first query over t failed" in (tmp_path / "pipeline.log").read_text()
