"""Which pairs of sources a join block's WHERE makes equal."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from airflow_pipelines.sql.plan.ir.join_graph import Comparison, Operator
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


COLUMN = ("p", "size")


@pytest.mark.parametrize(
    ("condition", "comparisons"),
    [
        ("p.size = l.quantity", (Comparison(COLUMN, Operator.EQUAL, ("l", "quantity")),)),
        ("p.size < 5", (Comparison(COLUMN, Operator.LESS, 5),)),
        (
            "p.size BETWEEN 1 AND l.k",
            (Comparison(COLUMN, Operator.GREATER_OR_EQUAL, 1), Comparison(COLUMN, Operator.LESS_OR_EQUAL, ("l", "k"))),
        ),
        ("p.size = '5'", (Comparison(COLUMN, Operator.ONE_OF, frozenset({"5"})),)),
        ("p.size IN ('a b', '')", (Comparison(COLUMN, Operator.ONE_OF, frozenset({"a b", ""})),)),
        ("p.size IN (1, 20)", (Comparison(COLUMN, Operator.ONE_OF, frozenset({1, 20})),)),
        ("p.size >= DATE '2024-02-29'", (Comparison(COLUMN, Operator.GREATER_OR_EQUAL, date(2024, 2, 29)),)),
        # All of these are left to Spark.
        ("p.size < '5'", ()),
        ("p.size <> '5'", ()),
        ("p.size = 'it''s'", ()),
        (r"p.size = 'a\\nb'", ()),
        ("p.size = '%'", ()),
        ("p.size IN ('a', 1)", ()),
        ("p.size IN (1, NULL)", ()),
        ("p.size IN (l.k, 1)", ()),
        ("p.size NOT IN (1, 2)", ()),
        ("p.size = DATE '2023-02-29'", ()),
        ("p.size = DATE '2024-2-9'", ()),
        ("p.size = TRY_CAST('2024-02-29' AS DATE)", ()),
        ("p.size = TIMESTAMP '2024-02-29'", ()),
        ("p.size BETWEEN 1 AND l.k + 1", ()),
        ("NOT p.size BETWEEN 1 AND 2", ()),
        ("p.size <> 5", ()),
        ("p.size <=> 5", ()),
        ("p.size = 5.0", (Comparison(("p", "size"), Operator.EQUAL, Decimal("5.0")),)),
        ("p.size > .5", (Comparison(("p", "size"), Operator.GREATER, Decimal("0.5")),)),
        ("p.size > 5.0E0", ()),
        ("p.size > 5.0BD", ()),
        ("p.size = -5", ()),
        ("p.size = 5L", ()),
        ("p.size = NULL", ()),
        ("p.size = 1 OR p.size = 2", ()),
        ("p.size.part.of = 5", ()),
        ("5 = p.size", ()),
    ],
)
def test_comparisons_are_those_of_columns_with_each_other_and_with_constants(
    condition: str, comparisons: tuple[Comparison, ...]
) -> None:
    (found,) = join_graph(block(condition)).conjuncts
    assert found.comparisons == comparisons


def test_what_each_condition_and_item_reads_is_known() -> None:
    node = Select(
        (Source("p", PART), Source("l", LINE)), (Item("a", "p.k + l.quantity"), Item("b", "1")), "p.k = l.k AND p.size > 1"
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
