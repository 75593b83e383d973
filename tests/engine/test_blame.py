"""A failing step shows a row that it fails on."""

from __future__ import annotations

import pytest

from airflow_pipelines.engine import blame
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.sessions import SparkSessions
from tests.engine.programs import Running

PROGRAM = """
create table t (k int, a int, s varchar) with ('materialized' = 'true');
create table u (k int, b int) with ('materialized' = 'true');
create view ratios as select t.k, t.a div u.b as r from t join u on t.k = u.k;
create view numbers as select sum(cast(s as int)) as n from t;
create view totals as select sum(a) as a from t;
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is to find the row as well."""
    monkeypatch.setattr(blame, "MAX_SECONDS", 200.0)


@pytest.fixture(scope="module")
def running(sessions: SparkSessions) -> Running:
    running = Running(PROGRAM, sessions)
    running.insert("u", (1, 2), (2, 4))
    return running


def test_one_row_of_many(running: Running) -> None:
    rows = [(1, at, str(at)) for at in range(100)]
    rows[47] = (1, 7, "seven")
    with pytest.raises(StepError) as failed:
        running.insert("t", *rows)
    assert failed.value.view == "numbers"
    assert failed.value.culprit is not None
    assert failed.value.culprit.relation == "t"
    assert failed.value.culprit.row == {"k": 1, "a": 7, "s": "seven"}
    assert failed.value.expression == "CAST(t.s AS INT)"


def test_the_row_of_the_side_of_a_join_that_changed(running: Running) -> None:
    running.insert("t", (3, 5, "5"))
    with pytest.raises(StepError) as failed:
        running.step(running.changes("u", (4, 1), (3, 0), (5, 1)), running.changes("t", (4, 1, "1")))
    assert failed.value.condition == "DIVIDE_BY_ZERO"
    assert failed.value.culprit is not None
    assert (failed.value.culprit.relation, failed.value.culprit.row) == ("u", {"k": 3, "b": 0})


def test_what_no_single_row_is_to_blame_for(sessions: SparkSessions) -> None:
    running = Running("create table t (a bigint); create view total as select sum(a) as a from t;", sessions)
    with pytest.raises(StepError) as failed:
        running.insert("t", (2**62,), (2**62,))
    assert failed.value.culprit is None
    running.insert("t", (2**62,))
