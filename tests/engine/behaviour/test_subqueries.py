"""Views with subqueries, lateral subqueries and ASOF joins equal Spark's batch answer after every step, NULLs and all."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, SparkSessions, sibling
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.changes import Op, TableChanges
from tests.engine.programs import Running
from tests.engine.sizes import SIZES

TABLES = {"a": "iis", "b": "iis", "c": "ii"}
DDL = """
create table a (k int, x int, s varchar);
create table b (k int, y int, w varchar);
create table c (k bigint, z int);
"""
QUERIES = {
    "existing": "select k, x from a where exists (select 1 from b where b.k = a.k and b.y > a.x)",
    "missing": "select k, x, s from a where not exists (select 1 from b where b.k = a.k and b.w <> a.s)",
    "found": "select k, x from a where x in (select k from c) or not exists (select 1 from b where b.k = a.x)",
    "tuples": "select k, x from a where (k, x + 1) in (select k, y from b) and k in (select k from c group by k having sum(z) > 3)",
    "not_found": "select k, x from a where x not in (select y from b where w = 'p')",
    "not_found_or": "select k, x, x not in (select z from c) as i from a where x not in (select y from b) or k = 1",
    "not_found_tied": "select k, x from a where x not in (select y from b where b.k = a.k)",
    "not_found_tuples": "select k, x from a where (k, x) not in (select k, y from b)",
    "valued": "select k, case when x in (select y from b) then 'in' when x not in (select z from c) then 'out' end as i from a",
    "scalars": "select k, (select max(y) from b) as m, (select count(*) from c) as n from a where x > (select avg(z) from c)",
    "tied": "select k, x from a where x < (select 2 * sum(y) from b where b.k = a.k and w = 'p')",
    "counted": "select k, (select sum(y) from b where b.k = a.k) as t, (select count(z) from c where c.k = a.x) as n from a",
    "ranked": "select k, (select count(*) from b where b.k = a.k and b.y < a.x) as n from a",
    "grouped": (
        "select k, count(*) as n from a group by k"
        " having count(*) >= (select count(*) from b where b.k = a.k) and exists (select 1 from c where c.k = a.k)"
    ),
    "joined": "select a.k, b.y from a left join b on a.k = b.k and exists (select 1 from c where c.k = b.y)",
    "lateral_top": "select k, t.y from a left join lateral (select y from b where b.k = a.k order by y desc limit 2) t on t.y > 0",
    "lateral_sum": "select k, n from a, lateral (select count(*) as n from (select y + 1 as v from b where b.k = a.k) where v > 1)",
    "latest": "select a.k, a.x, b.y, b.w from a left asof join b match_condition (a.x >= b.y) on a.k = b.k",
    "next_one": "select a.k, a.x, t.y from a asof join b as t match_condition (a.x < t.y) on a.k = t.k",
    "common": (
        "with r(p, q) as (select k, sum(y) from b group by k)"
        " select a.k, a.x from a join r on r.p = a.k where q = (select max(q) from r) or x in (select q from r as o where o.p = x)"
    ),
}  # fmt: skip
Rows = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def compiled(sessions: SparkSessions) -> Program:
    views = [f"create view {name} as {query};" for name, query in QUERIES.items()]
    return compile_program("\n".join([DDL, *views]), sessions)


def _value(chance: random.Random, kind: str) -> Any:
    if chance.random() < 0.15:
        return None
    return chance.choice("pq") if kind == "s" else chance.randint(0, 4)


class Contents:
    """What the tables should hold."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}

    def changes(self, running: Running, most: int) -> Iterator[TableChanges]:
        """Some rows of each table go, others come; now and then all of a table's rows go."""
        for name, kinds in TABLES.items():
            rows = self.rows[name]
            self.chance.shuffle(rows)
            gone = len(rows) if self.chance.random() < 0.2 else min(len(rows), self.chance.randint(0, most))
            new = [tuple(_value(self.chance, kind) for kind in kinds) for _ in range(self.chance.randint(0, most))]
            if gone:
                yield running.changes(name, *rows[:gone], op=Op.DELETE)
            if new:
                yield running.changes(name, *new)
            self.rows[name] = rows[gone:] + new


class Oracle:
    """Spark's answers to all queries over the tables, in one job."""

    def __init__(self, sessions: SparkSessions, compiled: Program) -> None:
        self.session = sibling(sessions.small, SMALL_CONF)
        self.program = compiled

    def answers(self, contents: Mapping[str, list[tuple[Any, ...]]]) -> dict[str, Rows]:
        for name, rows in contents.items():
            schema = self.program.schemas[name]
            columns = [pa.array([row[at] for row in rows], column.type) for at, column in enumerate(schema.arrow)]
            table = pa.table(columns, names=schema.arrow.names)
            self.session.createDataFrame(table, spark_schema(schema)).createOrReplaceTempView(quote(name))
        as_text = "TO_JSON(STRUCT(*), MAP('ignoreNullFields', 'false'))"
        queries = [f"SELECT '{name}', {as_text} FROM ({self.program.plans[name].query})" for name in QUERIES]
        found: dict[str, Rows] = {name: Counter() for name in QUERIES}
        for name, text in self.session.sql(" UNION ALL ".join(queries)).collect():
            found[name][tuple(json.loads(text).values())] += 1
        return found


def _add(sums: dict[str, Rows], deltas: Mapping[str, Any]) -> None:
    for name, delta in deltas.items():
        if name in sums and delta is not None:
            for row in delta.to_arrow().to_pylist():
                weight = row.pop("__weight")
                values = tuple(row.values())
                sums[name][values] += weight
                if not sums[name][values]:
                    del sums[name][values]


@pytest.mark.parametrize(("size", "seed", "steps"), [("small", 11, 3), ("narrow", 12, 2)])
def test_views_equal_the_batch_answer_after_every_step(
    sessions: SparkSessions, compiled: Program, size: str, seed: int, steps: int
) -> None:
    contents, oracle = Contents(random.Random(seed)), Oracle(sessions, compiled)
    sums: dict[str, Rows] = {name: Counter() for name in QUERIES}
    running = Running("", sessions, compiled=compiled, limits=SIZES[size])
    for _ in range(steps):
        _add(sums, running.step(*contents.changes(running, 5)).view_deltas)
        expected = oracle.answers(contents.rows)
        for name in QUERIES:
            assert sums[name] == expected[name], (name, compiled.plans[name].stages)
    running.circuit.close()


def test_nothing_is_recomputed_in_full(compiled: Program) -> None:
    strategies = {name: {stage.strategy for stage in compiled.plans[name].stages} for name in QUERIES}
    assert {name for name, found in strategies.items() if "full" in found} == set()


@pytest.mark.core
def test_two_rows_where_one_value_is_wanted_fail_the_step(sessions: SparkSessions) -> None:
    running = Running(
        "create table t (k int); create materialized view v as select k, (select k from t where k > 1) as o from t;", sessions
    )
    running.insert("t", (1,), (2,))
    assert running.rows("v") == [(1, 2), (2, 2)]
    with pytest.raises(Exception, match="More than one row"):
        running.insert("t", (3,))
    assert running.rows("v") == [(1, 2), (2, 2)]
