"""The first rows per key of append-only relations: kept from themselves and new rows, whatever the sizes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.linear import Select
from tests.engine.programs import Running, emitted
from tests.engine.sizes import SIZES

TABLES = """
create table bids (auction int, bidder varchar, price int) with ('append_only' = 'true');
create table auctions (id int, category int) with ('append_only' = 'true');
"""
RANKED = "select *, {function} over (partition by auction order by price desc) as place from bids"
QUERIES = {
    "the best": f"select * from ({RANKED.format(function='row_number()')}) where place = 1",
    "the first three": f"select auction, price, place from ({RANKED.format(function='row_number()')}) where 3 >= place",
    "with equal ranks": f"select * from ({RANKED.format(function='rank()')}) where place < 3",
    "dense ranks": f"select bidder, price from ({RANKED.format(function='dense_rank()')}) where place between 1 and 2",
    "some of the first": f"select * from ({RANKED.format(function='row_number()')}) where place between 2 and 3",
    "qualify": "select auction, max(price) as best from bids group by auction, bidder"
    " qualify row_number() over (partition by auction order by best desc) <= 2",
    "of a join": "select * from (select a.category, b.bidder, b.price,"
    " row_number() over (partition by a.category order by b.price desc, b.bidder) as place"
    " from auctions a join bids b on a.id = b.auction where b.price > 10) where place <= 2",
    "no key that is a column": "select * from (select auction, price,"
    " row_number() over (partition by auction % 3 order by price desc) as place from bids) where place <= 2",
}
LEADING = QUERIES.keys() - {"qualify"}
"""An aggregate changes the rows it has given, so that it is no relation that only gains."""


def test_only_ranks_of_what_never_loses_a_row_are_kept_by_themselves(sessions: SparkSessions) -> None:
    def uses_top_k(query: str, tables: str = TABLES) -> bool:
        plans = compile_program(f"{tables} create view v as {query};", sessions).plans
        return any(isinstance(stage.node, AppendOnlyTopK) for stage in plans["v"].stages)

    assert {name for name, query in QUERIES.items() if uses_top_k(query)} == LEADING
    first = RANKED.format(function="row_number()")
    assert not uses_top_k(f"select * from ({first}) where place = 1", TABLES.replace("true", "false"))
    assert not uses_top_k(f"select * from ({first}) where place >= 2"), "all but the first have to be kept"
    assert not uses_top_k(f"select * from ({first}) where place = 1 or price = 7")
    assert not uses_top_k(first), "every place is read"
    twice = f"with r as ({first}) select x.price from r x join r y on x.auction = y.auction where x.place = 1"
    assert not uses_top_k(twice), "the other reader wants all"


def test_what_all_first_rows_fulfil_is_not_asked_of_them_again(sessions: SparkSessions) -> None:
    def condition(where: str) -> str | None:
        query = f"select * from ({RANKED.format(function='rank()')}) where {where}"
        plan = compile_program(f"{TABLES} create view v as {query};", sessions).plans["v"]
        assert [type(stage.node) for stage in plan.stages] == [AppendOnlyTopK, Select]
        node = plan.stages[-1].node
        assert isinstance(node, Select)
        return node.filter

    for where in ("place <= 2", "2 > place", "place = 1", "place between 1 and 3", "place <= 7 and place < 3"):
        assert condition(where) is None, where
    for where in (
        "place = 2",
        "place between 2 and 3",
        "place = 3 and place <= 1",
        "place <= 2 and price > 5",
        "place <= 1 and 1 = 1",
    ):
        assert condition(where) is not None, where


@pytest.mark.parametrize("size", SIZES)
def test_first_rows_equal_the_batch_answer(size: str, sessions: SparkSessions) -> None:
    views = "".join(f"create materialized view `{name}` as {query};" for name, query in QUERIES.items())
    running, full = Running(TABLES + views, sessions, limits=SIZES[size]), Running(TABLES + views, sessions, "full")
    chance = random.Random(7)
    sums: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in QUERIES}
    for number in range(3):
        # Few values, so that many rows are equal, and NULL among the keys and the prices.
        bids = [(chance.choice([None, *range(6)]), chance.choice("abc"), chance.choice([None, *range(10, 40)])) for _ in range(25)]
        auctions = [(number, number % 2), (chance.randrange(6), chance.choice([None, 1]))]
        step = running.step(running.changes("bids", *bids), running.changes("auctions", *auctions))
        full.step(full.changes("bids", *bids), full.changes("auctions", *auctions))
        for name in QUERIES:
            for *row, weight in emitted(step, name):
                sums[name][tuple(row)] += weight
            expected = full.rows(name)
            assert running.rows(name) == expected, (number, name)
            assert sorted(sums[name].elements(), key=repr) == expected, (number, name, "sum of the deltas")
            assert min(sums[name].values()) >= 0, (number, name, "sum of the deltas")
    for each in (running, full):
        each.circuit.close()


@pytest.mark.core
def test_input_of_a_top_k_is_not_kept(sessions: SparkSessions) -> None:
    query = QUERIES["of a join"]
    running = Running(f"{TABLES} create materialized view v as {query};", sessions)
    running.step(running.changes("auctions", (1, 1)), running.changes("bids", (1, "a", 20), (1, "b", 30), (1, "c", 40)))
    kept = {name: trace.rows for name, trace in running.circuit.snapshot.traces.items() if name.startswith("v$")}
    assert list(kept.values()) == [2], "the two first rows, and neither the third nor the join's result"
    running.circuit.close()
