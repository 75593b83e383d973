"""A failing step shows a row that it fails on."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine import evaluation
from airflow_pipelines.engine import failing_row as blame
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.spark.sessions import SparkSessions
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


@pytest.mark.core
def test_one_row_of_many(running: Running) -> None:
    rows = [(1, at, str(at)) for at in range(100)]
    rows[47] = (1, 7, "seven")
    with pytest.raises(StepError) as failed:
        running.insert("t", *rows)
    assert failed.value.view == "numbers"
    assert failed.value.failing_row is not None
    assert failed.value.failing_row.relation == "t"
    assert failed.value.failing_row.row == {"k": 1, "a": 7, "s": "seven"}
    assert failed.value.expression == "CAST(t.s AS INT)"


@pytest.mark.core
def test_the_row_of_the_side_of_a_join_that_changed(running: Running) -> None:
    running.insert("t", (3, 5, "5"))
    with pytest.raises(StepError) as failed:
        running.step(running.changes("u", (4, 1), (3, 0), (5, 1)), running.changes("t", (4, 1, "1")))
    assert failed.value.condition == "DIVIDE_BY_ZERO"
    assert failed.value.failing_row is not None
    assert (failed.value.failing_row.relation, failed.value.failing_row.row) == ("u", {"k": 3, "b": 0})


@pytest.mark.core
def test_what_no_single_row_is_to_blame_for(sessions: SparkSessions) -> None:
    running = Running("create table t (a bigint); create view total as select sum(a) as a from t;", sessions)
    with pytest.raises(StepError) as failed:
        running.insert("t", (2**62,), (2**62,))
    assert failed.value.failing_row is None
    running.insert("t", (2**62,))


MODULE = """
import os
import pandas as pd

def unlucky(a):
    if a == 13:
        raise ValueError(f"no luck with {a}")
    return a

def alone(a: pd.Series) -> pd.Series:
    if len(a) > 1:
        raise ValueError("too many at once")
    return a

def once(a, marker):
    if os.path.exists(marker):
        os.remove(marker)
        raise ValueError("only this time")
    return a
"""
FUNCTIONS = """
create table t (k int, a int, s varchar) with ('materialized' = 'true');
create function unlucky(a int) returns int;
create function alone(a int) returns int;
create function once(a int, marker varchar) returns int;
create view v as select k, {} as x from t;
"""


def failing(sessions: SparkSessions, expression: str, *rows: tuple[int, int, str]) -> StepError:
    compiled = compile_program(FUNCTIONS.format(expression), sessions, udf_python=MODULE)
    with pytest.raises(StepError) as failed:
        Running("", sessions, compiled=compiled).insert("t", *rows)
    assert failed.value.view == "v"
    return failed.value


def test_a_java_error_is_told_with_its_cause(sessions: SparkSessions) -> None:
    """Spark has no condition for it, and PySpark no class."""
    failed = failing(sessions, "size(xpath(s, '///'))", (1, 1, "<a/>"))
    assert failed.condition == "TransformerException"
    assert failed.message == "A location step was expected following the '/' or '//' token."
    assert failed.trace is not None
    assert "\tat org.apache.spark" in failed.trace
    assert failed.failing_row is not None
    assert failed.failing_row.row == {"k": 1, "a": 1, "s": "<a/>"}


@pytest.mark.core
def test_a_condition_of_sparks_is_told_with_what_caused_it(sessions: SparkSessions) -> None:
    failed = failing(sessions, "regexp_replace(s, '(', 'x')", (1, 1, "a"))
    assert failed.condition == "INVALID_PARAMETER_VALUE.PATTERN"
    assert "regexp_replace" in failed.message
    assert "Unclosed group near index 1" in failed.message
    assert failed.trace is not None
    assert "PatternSyntaxException" in failed.trace


@pytest.mark.core
def test_what_the_message_explains_has_no_stack(sessions: SparkSessions) -> None:
    failed = failing(sessions, "k div a", (1, 0, "a"))
    assert (failed.condition, failed.trace) == ("DIVIDE_BY_ZERO", None)


@pytest.mark.core(slow_because="rows are tried one by one")
def test_the_row_is_the_one_that_the_message_is_about(sessions: SparkSessions) -> None:
    rows = [(at, at, "x") for at in range(12)] + [(12, 13, "x"), (13, 5, "x"), (14, 13, "y")]
    failed = failing(sessions, "unlucky(a)", *rows)
    assert (failed.condition, "no luck with 13" in failed.message) == ("PYTHON_FUNCTION_FAILED", True)
    assert failed.failing_row is not None
    assert failed.failing_row.row["a"] == 13
    failed = failing(sessions, "cast(s as int)", (1, 1, "7"), (2, 2, "one"), (3, 3, "two"), (4, 4, "8"))
    assert failed.failing_row is not None
    assert f"'{failed.failing_row.row['s']}'" in failed.message


def test_no_row_is_named_for_an_error_of_several_rows(sessions: SparkSessions) -> None:
    failed = failing(sessions, "alone(a)", *[(at, at, "x") for at in range(3)])
    assert "too many at once" in failed.message
    assert failed.failing_row is None


@pytest.mark.core("1")
@pytest.mark.parametrize("count", [1, 3])
def test_no_row_is_named_for_an_error_that_does_not_come_again(sessions: SparkSessions, tmp_path: Path, count: int) -> None:
    marker = tmp_path / "marker"
    marker.touch()
    failed = failing(sessions, f"once(a, '{marker}')", *[(at, at, "x") for at in range(count)])
    assert "only this time" in failed.message
    assert failed.failing_row is None


@pytest.mark.core
def test_no_row_is_named_for_another_error_of_the_same_condition(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error that comes with the row alone is compared with what the step failed with, word for word."""
    true_error = evaluation.step_error
    seen: list[StepError] = []

    def numbered(view: str, error: Exception) -> StepError:
        seen.append(true_error(view, error))
        seen[-1].message += f" ({len(seen)})"
        return seen[-1]

    monkeypatch.setattr(evaluation, "step_error", numbered)
    failed = failing(sessions, "k div a", (1, 0, "a"))
    assert len(seen) == 2
    assert failed.failing_row is None
