"""BETWEEN SYMMETRIC and periods of time: their text for Spark, and what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("x between symmetric 5 and 1", "(x BETWEEN 5 AND 1 OR x BETWEEN 1 AND 5)"),
        ("x between asymmetric 1 and 5", "x between  1 and 5"),
        ("not a and t.x + 1 not between symmetric f(5, 1) and b * 2 or c",
         "not a and (NOT (t.x + 1 BETWEEN f(5, 1) AND b * 2 OR t.x + 1 BETWEEN b * 2 AND f(5, 1))) or c"),
        ("case when x between symmetric case when a then 1 end and 2 then 3 end",
         "case when (x BETWEEN case when a then 1 end AND 2 OR x BETWEEN 2 AND case when a then 1 end) then 3 end"),
        ("f(case when a then 1 else 2 end between symmetric 1 and 2, 3)",
         "f((case when a then 1 else 2 end BETWEEN 1 AND 2 OR case when a then 1 else 2 end BETWEEN 2 AND 1), 3)"),
        ("'a b' between symmetric x and y", "('a b' BETWEEN x AND y OR 'a b' BETWEEN y AND x)"),
        ("x between 1 and 5", "x between 1 and 5"),
        ("contains(a, b) and (a, b) in (select 1, 2)", "contains(a, b) and (a, b) in (select 1, 2)"),
        ("exists (select 1 from (select a, b from t) overlaps (c, d))",
         "exists (select 1 from (select a, b from t) overlaps (c, d))"),
    ],
)  # fmt: skip
def test_texts(written: str, wanted: str) -> None:
    assert translate(Edited(f"select {written}"), Definitions()).text == f"select {wanted}"


PERIODS = {
    "(1, 5) overlaps (5, 9)": True,
    "(1, 4) overlaps (5, 9)": False,
    "(5, 1) overlaps (9, 4)": True,
    "(1, 4) not overlaps (5, 9)": True,
    "(1, 9) contains (9, 2)": True,
    "(1, 9) contains (2, 10)": False,
    "(9, 1) contains 1": True,
    "(1, 9) contains 5 + 5": False,
    "(1, 5) equals (5, 1)": True,
    "(1, 5) equals (1, 6)": False,
    "(1, 5) precedes (5, 9)": True,
    "(1, 6) precedes (5, 9)": False,
    "(1, 5) immediately precedes (5, 9)": True,
    "(1, 4) immediately precedes (5, 9)": False,
    "(6, 9) succeeds (1, 6)": True,
    "(6, 9) immediately succeeds (1, 5)": False,
    "(6, 9) immediately succeeds (6, 5)": True,
    "period (1, 5) overlaps period (2, 3)": True,
    "row(1, 5) overlaps row(6, 7)": False,
    "(1, null) overlaps (2, 3)": None,
    "(date '2024-01-01', interval '3' day) overlaps (date '2024-01-04', date '2024-02-01')": True,
    "(date '2024-01-01', interval '2' day) overlaps (date '2024-01-04', date '2024-02-01')": False,
    "3 between symmetric 5 and 1": True,
    "3 not between symmetric 5 and 1": False,
    "3 between symmetric 5 and null": None,
    "9 between symmetric 5 and 1": False,
}


@pytest.mark.core
def test_values(sessions: SparkSessions) -> None:
    items = ", ".join(f"{text} as v{at}" for at, text in enumerate(PERIODS))
    (row,) = sessions.small.sql(translate(Edited(f"select {items}"), Definitions()).text).collect()
    assert dict(zip(PERIODS, row, strict=True)) == PERIODS
