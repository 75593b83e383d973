"""Groups that are computed anew in the driver equal Spark's, and no query is run for those without expressions."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from airflow_pipelines.engine.operators import recompute_groups, touched_group_totals
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared
from tests.engine.noted_ways import noted
from tests.engine.sizes import SIZES

TABLES = """
create table t (k int, s varchar, d decimal(27,2), b bigint, n int, at timestamp, x double, l int array)
with ('materialized' = 'true');
"""
DONE = {
    "extremes": "select s, max(b) as m, min(d) as d, max(at) as a, min(s) as z, k from t group by k, s",
    "all_calls": "select max(n) as m, count(*) as c, count(n) as cn, sum(b) as sb, avg(n) as an, sum(d) as sd, min(n) + 1 as o"
    " from t group by k",
    "conditions": "select k, max(n) filter (where b > 0 or s = '') as m, count(*) filter (where n is null) as c from t group by k",
    "by_double": "select x, max(at) as m, min(k) as n from t group by x",
    "of_groups": "select k, max(c) as m from (select k, s, count(*) as c from t group by k, s) group by k",
}
NOT_DONE = {
    "by_expression": "select max(n) as m from t group by k + 1",
    "having": "select k, max(n) as m from t group by k having max(n) > 1",
    "of_double": "select k, max(x) as m from t group by k",
    "of_array": "select k, max(l) as m from t group by k",
    "of_expression": "select k, max(n + 1) as m from t group by k",
    "without_keys": "select max(n) as m from t",
    "filtered": "select k, max(n) as m from t where b > 0 group by k",
}


def _row(draw: random.Random) -> tuple[Any, ...]:
    at = datetime.datetime(2025, 3, 30, 0, 59, 30, draw.randrange(3))
    return (
        draw.choice([None, 1, 2]),
        draw.choice([None, "", "a", "é", "\U0001f600", "\uffff"]),
        draw.choice([None, Decimal("-0.01"), Decimal("9" * 25 + ".99"), Decimal("-" + "9" * 25 + ".99")]),
        draw.choice([None, 2**62, -(2**62), 0, 7]) if draw.random() < 0.2 else draw.choice([None, 1, -1, 2]),
        draw.choice([None, 2**31 - 2, -(2**31), 0]),
        draw.choice([None, at]),
        draw.choice([None, 0.0, -0.0, float("nan"), 1.5, float("inf")]),
        draw.choice([None, [1], [2, None]]),
    )


@pytest.mark.parametrize("size", ["small", "mixed", "large"])
def test_groups_equal_the_batch_answer(size: str, sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    done: dict[str, set[bool]] = {}

    def note(given: Any, change: Any) -> None:
        done.setdefault(given[0].relation.partition("$")[0], set()).add(change is not None)

    monkeypatch.setattr(recompute_groups, "change_of_groups", noted(touched_group_totals.change_of_groups, note))
    views = "".join(f"create view {name} as {query};\n" for name, query in {**DONE, **NOT_DONE}.items())
    compared = Compared(TABLES + views, sessions, {"t": _row}, seed=3, limits=SIZES[size])
    # Equal rows come and go; groups come and go, and at last all of them.
    for inserts, deletes in ((9, 0), (4, 6), (0, 5), (12, 3), (0, 99)):
        compared.step(inserts, deletes)
    if size == "small":
        assert {name for name, found in done.items() if found == {True}} == DONE.keys()
        assert {name for name, found in done.items() if found == {False}} == NOT_DONE.keys()
    if size == "large":
        assert set().union(*done.values()) == {False}
    compared.running.circuit.close()
