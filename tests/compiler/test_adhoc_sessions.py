from __future__ import annotations

import pytest
from pyspark.sql import DataFrame

from airflow_pipelines.compiler.adhoc import run_adhoc
from airflow_pipelines.compiler.adhoc_sessions import adhoc_session
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, SparkSessions
from airflow_pipelines.program.messages import ProgramErrors
from tests.engine.programs import Running

PROGRAM = """
create table one (x int) with ('materialized' = 'true');
create table two (x varchar) with ('materialized' = 'true');
"""


def _frame(running: Running, sql: str) -> DataFrame:
    frame = run_adhoc(running.circuit, sql).frame
    assert frame is not None
    return frame


@pytest.mark.core
def test_a_session_is_used_again_but_never_by_two_at_once(sessions: SparkSessions) -> None:
    with adhoc_session(sessions.small, SMALL_CONF, ()) as first, adhoc_session(sessions.small, SMALL_CONF, ()) as second:
        assert first is not second
    with adhoc_session(sessions.small, SMALL_CONF, ()) as again:
        assert again is second or again is first


@pytest.mark.core
def test_a_session_of_other_settings_is_another_one(sessions: SparkSessions) -> None:
    with adhoc_session(sessions.small, SMALL_CONF, ()) as first:
        pass
    with adhoc_session(sessions.small, {**SMALL_CONF, "spark.sql.shuffle.partitions": "3"}, ()) as other:
        assert other is not first
        assert other.conf.get("spark.sql.shuffle.partitions") == "3"


@pytest.mark.core
def test_a_session_is_not_used_again_after_an_error(sessions: SparkSessions) -> None:
    with pytest.raises(ValueError, match="of the block"), adhoc_session(sessions.small, SMALL_CONF, ()) as failed:
        raise ValueError("of the block")
    with adhoc_session(sessions.small, SMALL_CONF, ()) as session:
        assert session is not failed


def test_a_request_does_not_see_the_relations_of_the_one_before(sessions: SparkSessions) -> None:
    running = Running(PROGRAM, sessions)
    running.step(running.changes("one", (1,)), running.changes("two", ("a",)))
    kept = _frame(running, "SELECT * FROM one")
    running.step(running.changes("one", (2,)))
    later = _frame(running, "SELECT x AS y FROM one ORDER BY x")
    with pytest.raises(ProgramErrors, match="y"):
        run_adhoc(running.circuit, "SELECT y FROM two")
    other = _frame(running, "SELECT * FROM two")
    # A frame is of its own request, though others have used its session since.
    assert [tuple(row) for row in kept.collect()] == [(1,)]
    assert [tuple(row) for row in later.collect()] == [(1,), (2,)]
    assert [tuple(row) for row in other.collect()] == [("a",)]
    running.circuit.close()
