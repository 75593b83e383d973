"""Which pairs of sources a join block's WHERE makes equal."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source
from airflow_pipelines.sql.plan.passes.join_graphs import join_graph
from airflow_pipelines.sql.syntax.dialect import DIALECT

PART = Scan("part", ("k", "size"))
LINE = Scan("line", ("k", "quantity"))


def block(where: str) -> Select:
    return Select(
        (Source("p", PART), Source("l", LINE)),
        (Item("quantity", Expression("l.quantity")),),
        None if where is None else WhereClause(where),
    )


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


def test_a_condition_has_its_tree() -> None:
    conjuncts = join_graph(block("p.size BETWEEN 1 AND l.k AND (p.k = 1 OR l.k = 2)")).conjuncts
    assert [part.tree.sql(dialect=DIALECT) for part in conjuncts] == [part.text for part in conjuncts]
    assert all(part.tree.parent is None for part in conjuncts)


def test_what_each_condition_and_item_reads_is_known() -> None:
    node = Select(
        (Source("p", PART), Source("l", LINE)),
        (Item("a", Expression("p.k + l.quantity")), Item("b", Expression("1"))),
        WhereClause("p.k = l.k AND p.size > 1"),
    )
    graph = join_graph(node)
    assert [part.columns for part in graph.conjuncts] == [{("p", "k"), ("l", "k")}, {("p", "size")}]
    assert graph.item_columns == ({("p", "k"), ("l", "quantity")}, frozenset())
    assert graph.columns == {"p": {"k", "size"}, "l": {"k", "quantity"}}
    assert graph.is_complete


@pytest.mark.parametrize("where", ["p.k = l.k AND quantity > 3", "p.k = l.k AND EXISTS (SELECT 1 FROM other)"])
def test_a_condition_that_may_read_any_source_makes_the_graph_incomplete(where: str) -> None:
    graph = join_graph(block(where))
    assert not graph.is_complete
    assert graph.columns is None
