"""Joins by equalities whose sides have several types, and joins without one, against Spark's answers after every step."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared
from tests.engine.sizes import SIZES

TABLES = """
create table t (id bigint, k int, at timestamp, d date, m decimal(10,2), f double, s varchar, o boolean);
create table u (id bigint, k bigint, at timestamp, z timestamp with time zone, m decimal(12,4), s varchar, name varchar);
"""
EQUALITIES = {
    "hours": "select t.id, u.name from t left join u on u.at = date_trunc('hour', t.at)",
    "zones": "select t.id, u.name from t full join u on u.z = t.at",
    "days": "select t.id, u.name from t right join u on u.at = t.d and u.k > 1",
    "zoned_days": "select t.id from t anti join u on u.z = t.d",
    "numbers": "select t.id, u.name from t left join u on u.s = t.k",
    "doubles": "select t.id, u.name from t full join u on u.s = t.f",
    "decimals": "select t.id, u.name from t left join u on u.m = t.m and u.s = t.m",
    "there": "select id from t where exists (select 1 from u where u.z = t.at and u.k >= t.k)",
    "among": "select id from t where at in (select z from u)",
    "not_among": "select id from t where at not in (select z from u where z is not null)",
    "newest": "select id, (select max(u.k) from u where u.z = t.at) as k from t",
}
WITHOUT = {
    "before": "select t.id, u.name from t left join u on t.at >= u.at and t.o",
    "after": "select t.id, u.name from t right join u on t.k < u.k",
    "some": "select t.id from t semi join u on t.k < u.k",
    "none": "select t.id from t anti join u on t.k < u.k",
    "constant": "select t.id, u.name from t left join u on u.s = '1'",
    "own": "select t.id, u.name from t left join u on t.k = 1",
    "collated": "select t.id, u.name from t left join u on u.name = t.s collate utf8_lcase",
}
CONSTANT = {
    "any_one": "select id from t where 1 in (select k from u)",
    "not_one": "select id from t where 1 not in (select k from u where k is not null)",
    "not_a_null": "select id from t where 1 not in (select k from u)",
    "one_or_more": "select id from t where 1 in (select k from u) or k > 1",
}


def _instant(draw: random.Random) -> datetime.datetime | None:
    return draw.choice(
        [None, datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 5), datetime.datetime(2024, 1, 2, 5, 30)]
    )


def _t(draw: random.Random) -> tuple[Any, ...]:
    return (
        draw.randrange(9),
        draw.choice([None, 1, 2, 3]),
        _instant(draw),
        draw.choice([None, datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]),
        draw.choice([None, Decimal("1.00"), Decimal("2.50")]),
        draw.choice([None, 1.0, 2.5, -0.0]),
        draw.choice([None, "A", "b", "1"]),
        draw.choice([None, True, True, False]),
    )


def _u(draw: random.Random) -> tuple[Any, ...]:
    zoned = _instant(draw)
    return (
        draw.randrange(9),
        draw.choice([None, 1, 2, 3]),
        _instant(draw),
        None if zoned is None else zoned.replace(tzinfo=datetime.UTC),
        draw.choice([None, Decimal("1.0000"), Decimal("2.5000"), Decimal("2.5001")]),
        # Other texts for the same number.
        draw.choice([None, "1", "01", " 1", "2", "0"]),
        draw.choice([None, "a", "B", "c"]),
    )


@pytest.mark.parametrize("size", ["small", "looked up", "mixed"])
def test_joins_by_casts_and_without_equality_equal_the_batch_answer(sessions: SparkSessions, size: str) -> None:
    queries = {**EQUALITIES, **WITHOUT, **CONSTANT}
    views = "".join(f"create view {name} as {query};\n" for name, query in queries.items())
    compared = Compared(TABLES + views, sessions, {"t": _t, "u": _u}, seed=5, limits=SIZES[size])
    for inserts, deletes in ((6, 0), (1, 0), (3, 3), (0, 100)):
        compared.step(inserts, deletes)
    plans = compared.running.program.plans
    assert {name for name, plan in plans.items() if plan.reason is None} == {*EQUALITIES, *CONSTANT}
    for name in queries:
        assert not any(strategy == "full" or strategy.endswith("recomputing") for strategy in compared.strategies(name)), name


def test_a_text_that_is_no_number_is_left_to_the_query(sessions: SparkSessions) -> None:
    text = "create table a (k int); create table b (s varchar, n boolean);\n" + (
        "create view v as select a.k, b.s from a left join b on b.n and b.s = a.k;"
    )
    compared = Compared(
        text, sessions, {"a": lambda _: (1,), "b": lambda draw: draw.choice([("1", True), ("x", False), ("01", True)])}
    )
    for inserts, deletes in ((4, 0), (2, 1)):
        compared.step(inserts, deletes)
    assert compared.strategies("v") == ["join by touched keys"]
