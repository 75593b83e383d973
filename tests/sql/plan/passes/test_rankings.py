"""What a ranking ranks by."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.description import describe_node
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Scan
from airflow_pipelines.sql.plan.ir.ranking import OrderColumn, RankFunction, Ranking
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.passes.rankings import derive_rankings, ranking

COLUMNS = ("k", "a", "b c")


def test_each_part_of_the_window_is_there() -> None:
    found = ranking(Expression("DENSE_RANK() OVER (PARTITION BY `k`, (`a`) ORDER BY `b c` DESC, `a`)"), COLUMNS)
    order = (OrderColumn("b c", descending=True, nulls_first=False), OrderColumn("a", descending=False, nulls_first=True))
    assert found == Ranking(RankFunction.DENSE_RANK, ("k", "a"), order)


@pytest.mark.parametrize(
    ("order", "descending", "nulls_first"),
    [
        ("`a`", False, True),
        ("`a` ASC", False, True),
        ("`a` DESC", True, False),
        ("`a` NULLS LAST", False, False),
        ("`a` ASC NULLS FIRST", False, True),
        ("`a` DESC NULLS FIRST", True, True),
        ("`a` DESC NULLS LAST", True, False),
    ],
)
def test_null_comes_where_spark_puts_it(order: str, descending: bool, nulls_first: bool) -> None:
    found = ranking(Expression(f"RANK() OVER (PARTITION BY `k` ORDER BY {order})"), COLUMNS)
    assert found == Ranking(RankFunction.RANK, ("k",), (OrderColumn("a", descending, nulls_first),))


@pytest.mark.parametrize(
    "text",
    [
        "RANK() OVER (PARTITION BY `k` ORDER BY `a` + 1)",
        "RANK() OVER (PARTITION BY `k` ORDER BY 1)",
        "RANK() OVER (PARTITION BY `k` + 1 ORDER BY `a`)",
        "RANK() OVER (PARTITION BY `k` ORDER BY `a`.`b`)",
        "RANK() OVER (PARTITION BY `k` ORDER BY `other`)",
        "RANK() OVER (PARTITION BY `k`)",
        "NTILE(2) OVER (PARTITION BY `k` ORDER BY `a`)",
        "RANK() OVER (PARTITION BY `k` ORDER BY `a`) + 1",
        "RANK(",
    ],
)
def test_an_expression_is_left_to_spark(text: str) -> None:
    assert ranking(Expression(text), COLUMNS) is None


def test_rows_that_differ_only_in_what_is_not_named_are_left_to_spark() -> None:
    text = "ROW_NUMBER() OVER (PARTITION BY `k` ORDER BY `a`"
    assert ranking(Expression(f"{text})"), COLUMNS) is None
    assert ranking(Expression(f"{text}, `b c`)"), COLUMNS) is not None


def test_the_ranking_is_no_part_of_the_layout() -> None:
    source = Scan("t", COLUMNS)
    node = AppendOnlyTopK(
        source, (Expression("`k`"),), ("bigint",), Expression("RANK() OVER (PARTITION BY `k` ORDER BY `a`)"), 1, "w0"
    )
    finished = derive_rankings(Stage("v", (("k", "bigint"),), node), {}).node
    assert isinstance(finished, AppendOnlyTopK)
    assert finished.ranking is not None
    assert finished == node
    assert describe_node(finished) == describe_node(node)
