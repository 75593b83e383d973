"""AffectedKeys stages built by hand: after every step they equal Spark's answer to their query, whatever the sizes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql.types import VariantVal

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.spark.value_bytes import register_value_bytes
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source, UnionAll
from airflow_pipelines.sql.plan.ir.stage import Stage
from tests.engine.programs import Running
from tests.engine.random_changes import comparable
from tests.engine.sizes import SIZES

A, B = Scan("a", ("k", "v")), Scan("b", ("k", "w"))
TABLES = "create table a (k {kind}, v {value}); create table b (k {kind}, w int);"


@dataclass(frozen=True)
class Case:
    """A view's query and the keyed node that stands for it."""

    query: str
    node: AffectedKeys
    kind: str = "int"
    value: str = "int"


def keyed(query: str, columns: tuple[str, ...], *sources: KeyedSource, key_types: tuple[str, ...] = ("int",)) -> AffectedKeys:
    return AffectedKeys(sources, query, columns, key_types, Shape.JOIN)


def by_key(alias: str, node: Any, *keys: str) -> KeyedSource:
    return KeyedSource(alias, node, tuple(map(Expression, keys or ("k",))))


OUTER = "select a.k, a.v, b.k as j, b.w from a full join b on a.k = b.k"
TOP = "select * from (select k, v, row_number() over (partition by k order by v desc) as n from a) where n <= 2"
HIGH = Select((Source("a", A),), (Item("k", Expression("a.k")), Item("v", Expression("a.v + 1"))), WhereClause("a.v > 10"))
BOTH = UnionAll((A, B), (("k", "int"), ("v", "int")))
PAIRS = Select(
    (Source("a", A), Source("b", B)), (Item("k", Expression("a.k")), Item("v", Expression("a.v + b.w"))), WhereClause("a.k = b.k")
)

CASES = {
    "outer join": Case(OUTER, keyed(OUTER, ("k", "v", "j", "w"), by_key("a", A), by_key("b", B))),
    "equal names": Case(
        "with x as (select * from a) select x.k, max(y.w) as m from x left join b as y on x.k = y.k group by x.k",
        keyed(
            "with x as (select * from a) select x.k, max(y.w) from x left join b as y on x.k = y.k group by x.k",
            ("k", "m"),
            by_key("a", A),
            by_key("b", B),
        ),
    ),
    "window": Case(TOP, keyed(TOP, ("k", "v", "n"), by_key("a", A))),
    "unkeyed source": Case(
        "select k, v from a where v >= (select coalesce(max(w), 0) from b)",
        keyed(
            "select k, v from a where v >= (select coalesce(max(w), 0) from b)", ("k", "v"), by_key("a", A), KeyedSource("b", B, ())
        ),
    ),
    "one key": Case(
        "select max(v) as m, (select count(*) from b) as n from a",
        keyed(
            "select max(v), (select count(*) from b) from a",
            ("m", "n"),
            KeyedSource("a", A, ()),
            KeyedSource("b", B, ()),
            key_types=(),
        ),
    ),
    "filtered sources": Case(
        "select b.k, b.w from b left anti join (select k, v + 1 as v from a where v > 10) as h on h.k = b.k and h.v > b.w",
        keyed("select b.k, b.w from b left anti join h on h.k = b.k and h.v > b.w", ("k", "w"), by_key("h", HIGH), by_key("b", B)),
    ),
    "union": Case(
        "select k, v, rank() over (partition by k order by v) as r from (select k, v from a union all select k, w from b)",
        keyed("select k, v, rank() over (partition by k order by v) from u", ("k", "v", "r"), by_key("u", BOTH)),
    ),
    "joined source": Case(
        "select b.k, b.w, p.v from b left join (select a.k, a.v + b.w as v from a join b on a.k = b.k) as p on p.k = b.k",
        keyed("select b.k, b.w, p.v from b left join p on p.k = b.k", ("k", "w", "v"), by_key("p", PAIRS), by_key("b", B)),
    ),
    "expressions as keys": Case(
        "select a.k, b.w from a left join b on a.k % 3 = b.k % 3 and a.v < b.w",
        keyed(
            "select a.k, b.w from a left join b on a.k % 3 = b.k % 3 and a.v < b.w",
            ("k", "w"),
            by_key("a", A, "k % 3"),
            by_key("b", B, "k % 3"),
            key_types=("bigint",),
        ),
    ),
    "floating point": Case(
        OUTER, keyed(OUTER, ("k", "v", "j", "w"), by_key("a", A), by_key("b", B), key_types=("double",)), kind="double"
    ),
    "maps": Case(OUTER, keyed(OUTER, ("k", "v", "j", "w"), by_key("a", A), by_key("b", B)), value="map<varchar, array<int>>"),
    "variants": Case(OUTER, keyed(OUTER, ("k", "v", "j", "w"), by_key("a", A), by_key("b", B)), value="variant"),
}


def _variant(text: str) -> dict[str, bytes]:
    found = VariantVal.parseJson(text)
    return {"value": bytes(found.value), "metadata": bytes(found.metadata)}


def values(case: Case) -> tuple[list[Any], list[Any]]:
    """Some keys and some values of the case's types."""
    keys: list[Any] = [1, 2, 3, None] if case.kind == "int" else [1.5, math.nan, -0.0, 0.0, None]
    found = {
        "int": [5, 15, 25, None],
        "map<varchar, array<int>>": [{"a": [1], "b": []}, {"b": [], "a": [1]}, None],
        "variant": [_variant('{"x": 1}'), _variant("[1, null]"), None],
    }
    return keys, found[case.value]


def answer(running: Running, case: Case) -> Counter[tuple[Any, ...]]:
    session = running.sessions.small.newSession()
    register_value_bytes(session)
    for name in ("a", "b"):
        running.circuit.relation(name).createOrReplaceTempView(f"t_{name}")
    within = f"with a as ({running.circuit.contents('a', running.circuit.snapshot)})"
    within += f", b as ({running.circuit.contents('b', running.circuit.snapshot)})"
    for key in ("spark.sql.ansi.enabled", "spark.sql.caseSensitive"):
        session.conf.set(key, "true")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return Counter(comparable(row) for row in map(tuple, session.sql(f"{within} select * from ({case.query})").collect()))


def check(case: Case, sessions: SparkSessions, limits: Limits) -> None:
    text = TABLES.format(kind=case.kind, value=case.value) + f"create materialized view v as {case.query};"
    compiled = compile_program(text, sessions)
    plan = compiled.plans["v"]
    stage = Stage("v", plan.columns, case.node)
    changed = replace(compiled, plans={"v": replace(plan, stages=(stage,))})
    running = Running(text, sessions, compiled=changed, limits=limits)
    keys, found = values(case)
    sums: Counter[tuple[Any, ...]] = Counter()
    first = [(key, value) for key in keys for value in found]
    second = [(key, number) for number, key in enumerate(keys)]
    steps = [
        [running.changes("b", (1, 1))],
        [running.changes("a", *first, first[0]), running.changes("b", *second[:2])],
        [running.changes("a", *first[:2], first[3], op=Op.DELETE)],
        [running.changes("b", *second, (9, 9))],
        [running.changes("a", first[-1], first[0], op=Op.DELETE), running.changes("b", (None, 7))],
    ]
    for step in steps:
        done = running.step(*step)
        delta = done.view_deltas.get("v")
        for row in delta.to_arrow().to_pylist() if delta is not None else ():
            weight = row.pop("__weight")
            sums[comparable(row.values())] += weight
        expected = answer(running, case)
        assert {row: weight for row, weight in sums.items() if weight} == expected
        assert Counter(comparable(row) for row in map(tuple, running.circuit.relation("v").collect())) == expected
        running.circuit.maintain()
    running.circuit.close()


ALSO = {
    "outer join": ("small", "large"),
    "unkeyed source": ("mixed",),
    "one key": ("small",),
    "joined source": ("mixed",),
    "maps": ("small",),
    "variants": ("mixed",),
}
"""Besides the mode that fetches, in which all are checked."""


@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name in CASES for size in ("narrow", "looked up", *ALSO.get(name, ()))]
)
def test_a_keyed_stage_equals_its_query_after_every_step(sessions: SparkSessions, name: str, size: str) -> None:
    check(CASES[name], sessions, SIZES[size])
