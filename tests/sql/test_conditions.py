"""Conditions in SQL mean to Arrow what they mean to SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_pipelines.sql.conditions import ConditionProblem, condition, order_of, parsed_condition

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
        ("f < -1e0", [3]),
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
        ("i + 1 = 3", [1]),
        ("i * 2 - 1 > 2", [1, 3]),
        ("COALESCE(i, 7) = 7", [2]),
        ("i IS NOT DISTINCT FROM NULL", [2]),
        ("i IS DISTINCT FROM 1", [1, 2, 3]),
        ("CAST(i AS BIGINT) = 4", [3]),
        ("CAST(s AS VARCHAR) = 'a'", [0]),
        ("ABS(f) = 2", [3]),
    ],
)
def test_conditions(text: str, expected: list[int]) -> None:
    parsed_condition(text)
    assert ROWS.filter(condition(text, ROWS.schema)).column("n").to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i = ", "is no condition in SQL"),
        ("i = 1; DROP TABLE t", "is no condition in SQL"),
        ("i IN (SELECT 1)", "cannot be evaluated"),
        ("s RLIKE 'a'", "cannot be evaluated while files are read; what can be: comparisons"),
        ("SUM(i) = 1", "cannot be evaluated"),
        ("s LIKE i", "LIKE is followed by a text"),
        ("CAST(s AS INTERVAL) = 1", "type INTERVAL cannot be cast to"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ConditionProblem, match=message):
        parsed_condition(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "the table has no column 'x'; its columns: i, s"),
        ("st.y = 1", "there is no field 'y'"),
        ("day = 'monday'", "'monday' is no value of type date32"),
        ("i = 'a'", "'a' is no value of type int32"),
    ],
)
def test_what_does_not_fit_the_table(text: str, message: str) -> None:
    parsed_condition(text)
    with pytest.raises(ConditionProblem, match=message):
        condition(text, ROWS.schema)


def test_orders() -> None:
    assert order_of('ts, "S" DESC, x ASC') == [("ts", "ascending"), ("S", "descending"), ("x", "ascending")]
    with pytest.raises(ConditionProblem, match="is no column"):
        order_of("a + 1")
    with pytest.raises(ConditionProblem, match="is no list of columns"):
        order_of("a b c")
