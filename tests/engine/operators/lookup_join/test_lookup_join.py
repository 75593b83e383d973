"""Joins whose large sides are looked up for a small delta."""

from __future__ import annotations

from collections import Counter

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.changes import Op
from tests.engine.programs import Running, emitted
from tests.engine.sizes import SIZES

PROGRAM = """
create table orders (o int, c int, region varchar);
create table items (o int, p int, n int);
create table customers (c int, name varchar);
create table parts (p int, price int);
create materialized view sold as
    select c.name, i.n * p.price as total, o.o from orders o, items i, customers c, parts p
    where o.o = i.o and o.c = c.c and i.p = p.p and o.region <> 'x' and c.name is not null;
create materialized view by_name as
    select c.name, sum(i.n) as n, max(i.n) as most
    from customers c join orders o on o.c = c.c join items i on i.o = o.o group by c.name;
"""


@pytest.mark.core("small")
@pytest.mark.parametrize("size", ["small", "looked up", "narrow"])
def test_a_join_of_four_relations_follows_changes_of_each(sessions: SparkSessions, size: str) -> None:
    running = Running(PROGRAM, sessions, limits=SIZES[size])
    running.step(
        running.changes("orders", *((o, o % 4 if o != 7 else None, "x" if o % 5 == 0 else "y") for o in range(12))),
        running.changes("items", *((o, o % 3, o + 1) for o in range(12)), (None, 1, 5), (3, 2, 9)),
        running.changes("customers", (0, "zero"), (1, "one"), (2, None), (3, "one"), (None, "nobody")),
        running.changes("parts", (0, 10), (1, 20), (None, 30)),
    )
    for change in (
        [running.changes("items", (1, 0, 100), (6, 1, 7))],
        [running.changes("parts", (2, 5), (0, 11))],
        [running.changes("customers", (2, "two")), running.changes("orders", (99, 2, "y"), (98, 3, "y"))],
        [running.changes("items", (99, 2, 1)), running.changes("orders", (99, 2, "y"), op=Op.DELETE)],
        [running.changes("customers", (1, "one"), op=Op.DELETE), running.changes("parts", (1, 20), op=Op.DELETE)],
    ):
        running.step(*change)
        for view in ("sold", "by_name"):
            stored = Counter(tuple(row) for row in running.circuit.relation(view).collect())
            assert stored == answer(running, view)
    running.circuit.close()


def answer(running: Running, view: str) -> Counter[tuple[object, ...]]:
    snapshot = running.circuit.snapshot
    contents = ", ".join(f"{t} as ({running.circuit.contents(t, snapshot)})" for t in running.program.tables)
    query = running.program.plans[view].query
    return Counter(tuple(row) for row in sessions_sql(running, f"with {contents} select * from ({query})"))


def sessions_sql(running: Running, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in running.sessions.small.sql(query).collect()]


@pytest.mark.core
def test_rows_nobody_asks_for_are_not_fetched(sessions: SparkSessions) -> None:
    running = Running(PROGRAM, sessions, limits=SIZES["narrow"])
    running.insert("orders", *((o, o, "y") for o in range(50)))
    running.insert("items", *((o, 1, 1) for o in range(50)))
    running.insert("customers", *((c, f"c{c}") for c in range(50)))
    running.insert("parts", (1, 3))
    step = running.insert("items", (4, 1, 2))
    assert emitted(step, "sold") == [("c4", 6, 4, 1)]
