"""Which pairs of sources a join block's WHERE makes equal."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source
from airflow_pipelines.sql.plan.passes.join_graphs import join_graph

PART = Scan("part", ("k", "size"))
LINE = Scan("line", ("k", "quantity"))


def block(where: str) -> Select:
    return Select((Source("p", PART), Source("l", LINE)), (Item("quantity", "l.quantity"),), where)


@pytest.mark.parametrize(
    ("where", "equal"),
    [
        ("p.k = l.k AND l.quantity > 3", {("p.k", "l.k")}),
        ("p.k > l.k", set()),
        ("(p.k = l.k AND p.size = 1) OR (l.quantity = 2 AND p.k = l.k)", {("p.k", "l.k")}),
        ("(p.k = l.k AND p.size = 1) OR (p.k = l.k AND p.size = 2) OR (p.k = l.k AND p.size = 3)", {("p.k", "l.k")}),
        ("(p.k = l.k AND p.size = 1) OR p.size = 2", set()),
        ("NOT (p.k = l.k OR p.k = l.k)", set()),
    ],
)
def test_equalities_are_those_that_every_alternative_demands(where: str, equal: set[tuple[str, str]]) -> None:
    assert {equality.texts for equality in join_graph(block(where)).equalities} == equal


def test_an_alternative_is_a_condition_as_a_whole_too() -> None:
    texts = [part.text for part in join_graph(block("(p.k = l.k AND p.size = 1) OR (p.k = l.k AND p.size = 2)")).conjuncts]
    assert texts == ["(p.k = l.k AND p.size = 1) OR (p.k = l.k AND p.size = 2)", "p.k = l.k"]
