"""Aggregates over rows and groups of equal arguments are added up in the driver part by part, and equal Spark's."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.operators import accumulate, column_totals
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared
from tests.engine.noted_ways import noted
from tests.engine.sizes import SIZES

TABLES = """
create table t (k int, `a b` varchar, d decimal(20,2), n bigint, at timestamp) with ('materialized' = 'true');
create table u (k int, `a b` varchar, d decimal(20,2), n bigint, at timestamp) with ('append_only' = 'true');
"""
QUERIES = {
    "plain": "select k, count(*) as c, count(distinct n) as x, sum(d) as s from t group by k",
    "conditions": "select date_format(at, 'yyyy-MM') as y, upper(`a b`) as p, count(*) as c,"
    " count(*) filter (where n < 1) as c1, count(distinct `a b`) filter (where n >= 0 or d is null) as x, sum(distinct n) as s,"
    " avg(d) as v from t group by date_format(at, 'yyyy-MM'), upper(`a b`) having count(*) > 1",
    "extremes": "select `a b`, max(date_format(at, 'HH:mm')) as m, min(n) as i, count(distinct k, n) as x, count(*) as c"
    " from u group by `a b`",
    "quoted": "select k, count(distinct n) as x, sum(case when `a b` = '`t`.`n`' then n end) as s from t group by k",
}


def _row(draw: random.Random) -> tuple[Any, ...]:
    at = datetime.datetime(2025, draw.choice([3, 4]), 30, draw.randrange(3), 59)
    return (
        draw.choice([None, 1, 2]),
        draw.choice([None, "", "a", "A", "`t`.`n`"]),
        draw.choice([None, Decimal("0.00"), Decimal("9" * 18 + ".99"), Decimal("-" + "9" * 18 + ".99")]),
        draw.choice([None, 0, 1, -1, 2]),
        draw.choice([None, at]),
    )


@pytest.mark.parametrize("size", ["small", "united", "looked up", "mixed", "large"])
def test_parts_equal_the_batch_answer(size: str, sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    united: list[bool] = []

    def note(given: Any, totals: Any) -> None:
        if len(given[0]) > 1:
            united.append(totals is not None)

    monkeypatch.setattr(accumulate, "united_totals", noted(column_totals.united_totals, note))
    views = "".join(f"create view {name} as {query};\n" for name, query in QUERIES.items())
    compared = Compared(
        TABLES + views, sessions, {"t": _row, "u": _row}, seed=7, limits=SIZES[size] if size in SIZES else Limits(tiny=-1)
    )
    for inserts, deletes in ((9, 0), (5, 6), (0, 4), (12, 5), (0, 99)):
        compared.step(inserts, deletes)
    if size == "united":
        # All four, but for the view of the table that has no change in the third and the last step.
        assert united == [True] * 18
    compared.running.circuit.close()
