"""Conditions in SQL mean to Arrow what they mean to SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_pipelines.rows.expressions.pushdown import (
    ConditionProblem,
    NotWhileReadingError,
    Pushed,
    check_condition,
    push_condition,
    read_order,
)

ROWS = pa.table(
    {
        "i": pa.array([1, 2, None, 4], pa.int32()),
        "s": ["a", "B b", None, "a%"],
        "d": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("-3.25")], pa.decimal128(10, 2)),
        "f": [0.5, 1.5, None, -2.0],
        "b": [True, False, None, True],
        "day": [dt.date(2024, 1, 1), dt.date(2024, 6, 1), None, dt.date(2025, 1, 1)],
        "at": pa.array([dt.datetime(2024, 1, 1, 1), dt.datetime(2024, 1, 2), None, dt.datetime(2025, 1, 1)], pa.timestamp("us")),
        "tz": pa.array(
            [dt.datetime(2024, 1, 1, 1), dt.datetime(2024, 1, 2), None, dt.datetime(2025, 1, 1)], pa.timestamp("us", "UTC")
        ),
        "Odd name": [1, 2, 3, 4],
        "st": [{"x": 1}, {"x": 2}, None, {"x": 4}],
        "n": [0, 1, 2, 3],
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 2", [1]),
        ("I <> 2", [0, 3]),
        ("NOT i = 2", [0, 3]),
        ("i = 2 OR s IS NULL", [1, 2]),
        ("i > 1 AND (s = 'a%' OR d = 2)", [1, 3]),
        ("i IN (1, 4, NULL)", [0, 3]),
        ("i NOT IN (1, 4)", [1]),
        ("i BETWEEN 2 AND 4", [1, 3]),
        ("2 <= i", [1, 3]),
        ("i > 1.5", [1, 3]),
        ("i = 3000000000", []),
        ("s LIKE 'a%'", [0, 3]),
        ("s NOT LIKE 'a%'", [1]),
        ("LOWER(s) = 'b b'", [1]),
        ("UPPER(s) = 'A'", [0]),
        ("LENGTH(s) > 1", [1, 3]),
        ("s IS NOT NULL", [0, 1, 3]),
        ("d >= 1.5", [0, 1]),
        ("d = 1.500", [0]),
        ("d < 1.505", [0, 3]),
        ("d = -3.25", [3]),
        ("b", [0, 3]),
        ("b IS FALSE", [1]),
        ("b IS NOT TRUE", [1, 2]),
        ("b = true", [0, 3]),
        ("day >= DATE '2024-06-01'", [1, 3]),
        ("day < '2024-06-01'", [0]),
        ("at > TIMESTAMP '2024-01-01 01:00:00'", [1, 3]),
        ("at = '2024-01-02'", [1]),
        ("tz >= TIMESTAMP '2024-01-02 00:00:00'", [1, 3]),
        ("tz < '2024-01-01T03:00:00+02:00'", []),
        ("tz <= '2024-01-01T03:00:00+02:00'", [0]),
        ('"Odd name" = 3', [2]),
        ("st.x = 4", [3]),
        ("COALESCE(i, 7) = 7", [2]),
        ("i IS NOT DISTINCT FROM NULL", [2]),
        ("i IS DISTINCT FROM 1", [1, 2, 3]),
    ],
)
def test_what_is_evaluated_while_files_are_read(text: str, expected: list[int]) -> None:
    found = push_condition(text, ROWS.schema)
    assert found.is_whole
    assert ROWS.filter(found.expression).column("n").to_pylist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "i + 1 = 3",
        "CAST(s AS INT) = 4",
        "ABS(f) = 2",
        "TRIM(s) = 'a'",
        "i IN (SELECT 1)",
        "s RLIKE 'a'",
        "s LIKE i",
        "i LIKE '1%'",
        "LOWER(i) = '1'",
        "COALESCE(i, 'x') = 'x'",
        "st.y = 1",
        "day = 'monday'",
        "i = 'a'",
        "i",
        "s ~~~ ~ 'a'",
        "CASE WHEN b THEN i = 1 END",
        "f = f",
        "f > i",
        "f < 'NaN'",
        "f < -1e0",
        "2 > f",
        "f IN (1, 2)",
        "f NOT BETWEEN 1 AND 2",
        "f IS DISTINCT FROM 1",
        "COALESCE(f, 0) = 0",
    ],
)
def test_what_is_not_or_may_fail(text: str) -> None:
    assert push_condition(text, ROWS.schema) == Pushed(None, is_whole=False)


def test_parts_that_are_evaluated_while_files_are_read() -> None:
    found = push_condition("i > 1 AND (s = 'a%' OR i / 0 = 1) AND d IS NOT NULL", ROWS.schema)
    assert not found.is_whole
    assert ROWS.filter(found.expression).column("n").to_pylist() == [1, 3]


@pytest.mark.parametrize("text", ["i = ", "i = 1; DROP TABLE t"])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(NotWhileReadingError, match="is no condition in SQL"):
        check_condition(text)


def test_a_column_that_is_not_there() -> None:
    check_condition("x = 1")
    with pytest.raises(ConditionProblem, match="the table has no column 'x'; its columns: i, s"):
        push_condition("x = 1", ROWS.schema)


def test_orders() -> None:
    assert read_order('ts, "S" DESC, x ASC') == [("ts", "ascending"), ("S", "descending"), ("x", "ascending")]
    with pytest.raises(ConditionProblem, match="is no column"):
        read_order("a + 1")
    with pytest.raises(ConditionProblem, match="is no list of columns"):
        read_order("a b c")
