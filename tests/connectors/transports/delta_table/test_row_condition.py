"""Conditions that are evaluated row by row: what they mean, rows at which they fail, and what is none."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from airflow_pipelines.rows.expressions.pushdown import ConditionProblem

pytest.importorskip("datafusion", reason="pip install 'airflow-pipelines[delta]'")

from airflow_pipelines.connectors.transports.delta_table.row_condition import (
    PROBLEM,
    RowCondition,
    check_syntax,
    plan_condition,
    split_conditions,
)

ROWS = pa.table(
    {
        "n": [0, 1, 2, 3],
        "i": pa.array([1, 2, None, 4], pa.int32()),
        "Name": ["7", "b", None, "9"],
        "at": pa.array([dt.datetime(2024, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("us", "UTC")),
        "l": [[1], [], None, [1, 2]],
        "st": [{"x": 1}, {"x": 2}, None, {"x": 4}],
        "f": pa.array([0.1, 2.5, float("nan"), None], pa.float32()),
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i % 2 = 0", [1, 3]),
        ("name = 'b' OR \"Name\" = '9'", [1, 3]),
        ("CASE WHEN i > 1 THEN true END", [1, 3]),
        ("regexp_like(NAME, '^[0-9]+$') AND n < 3", [0]),
        ("date_trunc('day', at) >= '2024-01-03' AND extract(day FROM at) < 4", [2]),
        ("array_length(l) = 2", [3]),
        ("st.x * 2 = 4 -- and no more", [1]),
        ("i IN (n + 1)", [0, 1, 3]),
        ("i + n IS NULL", [2]),
        ("1 + 1 = 2", [0, 1, 2, 3]),
        ("NULL", []),
        ("i = NULL", []),
        ("(i = NULL) IS NULL AND name = '9'", [3]),
        ("TRUE OR name = 'b'", [0, 1, 2, 3]),
        ("f > 10", [2]),
        ("NOT f <= 10", [2]),
        ("f <> 2.5 AND 0 <= f", [0, 2]),
        ("f = 0.1", []),
    ],
)
def test_conditions(text: str, expected: list[int]) -> None:
    kept = RowCondition(text, ROWS.schema).filter_rows(ROWS)
    assert kept.column("n").to_pylist() == expected
    assert kept.column(PROBLEM).null_count == len(expected)
    # What files are read with, where it takes a part of the condition, and a table without rows.
    pushed, rest = split_conditions([text], ROWS.schema)
    while_reading = ROWS if pushed is None else ROWS.filter(pushed)
    for condition in rest:
        while_reading = condition.filter_rows(while_reading)
    assert while_reading.column("n").to_pylist() == expected
    assert RowCondition(text, ROWS.schema).filter_rows(ROWS.slice(0, 0)).num_rows == 0


def test_rows_at_which_it_fails_are_told_apart() -> None:
    made = RowCondition("CAST(name AS INT) > 8 AND 10 / (n - 3) < 9", ROWS.schema)
    kept = made.filter_rows(ROWS)
    assert kept.column("n").to_pylist() == [1, 3]
    reasons = kept.column(PROBLEM).to_pylist()
    assert "cannot be evaluated: Arrow error: Cast error: Cannot cast string 'b' to value of Int32 type" in reasons[0]
    assert "Divide by zero" in reasons[1]
    # What another condition could not tell stays so.
    again = RowCondition("n % 2 = 0", ROWS.schema).filter_rows(kept)
    assert again.column(PROBLEM).to_pylist() == reasons
    assert made.columns == ("n", "Name")


def test_few_bad_rows_among_many() -> None:
    many = pa.table({"s": ["x" if number in {7, 31_000} else str(number) for number in range(40_000)]})
    decided = RowCondition("CAST(s AS BIGINT) % 2 = 1", many.schema).decide(many)
    assert [at for at, problem in enumerate(decided.problems.to_pylist()) if problem] == [7, 31_000]
    assert decided.is_met.true_count == 20_000 - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i + nme = 1", "the table has no column 'nme'; its columns: n, i, Name"),
        ('i + "NAME" = 1', "the table has no column 'NAME'"),
        ("i = ", "'i =' is no condition on rows of the table: SQL error: ParserError"),
        ("i > 1) OR (1 = 1", "ParserError"),
        ("soundex(i) = 1", "Invalid function 'soundex'"),
        ("i % 2", "non-boolean predicate"),
        ("i = 'x'", "Cannot cast string 'x' to value of Int32"),
        ("EXISTS (SELECT 1)", "has a query in it"),
        ("SUM(i) = 1", "Aggregate functions are not allowed"),
        ("ROW_NUMBER() OVER () = 1", "is no condition on rows"),
    ],
)
def test_what_is_no_condition_on_rows(text: str, message: str) -> None:
    with pytest.raises(ConditionProblem, match=message):
        plan_condition(text, ROWS.schema)


def test_syntax_that_only_datafusion_knows() -> None:
    check_syntax("n = 1 AND name SIMILAR TO 'a' AND i IS DISTINCT FROM n")
    check_syntax("at > now() - INTERVAL '1' DAY")
    with pytest.raises(ConditionProblem, match="'i = ' is no condition in SQL"):
        check_syntax("i = ")
