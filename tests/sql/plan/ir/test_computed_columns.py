"""What a block passes on as it is, and what is left of it for Spark."""

from __future__ import annotations

import cProfile
import pstats
from dataclasses import replace

import pytest

from airflow_pipelines.sql.plan.ir.computed_columns import computed_columns
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select, Source, TemporalFilter, UnionAll
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql

RELATION = Scan("r", ("a", "b", "two words", "s", "ab", "x`y"))


def over(node: Linear, *items: str, alias: str = "r", where: str | None = None, laterals: tuple[str, ...] = ()) -> Select:
    return Select(
        (Source(alias, node),),
        tuple(Item(f"i{at}", Expression(text)) for at, text in enumerate(items)),
        None if where is None else WhereClause(where),
        tuple(map(LateralView, laterals)),
    )


def test_columns_alone_need_no_spark() -> None:
    inner = over(RELATION, "`r`.`b`", "`r`.`two words`", "`r`.`b`")
    found = computed_columns(over(inner, "`q`.`i1`", "`q`.`i2`", alias="q"))
    assert found is not None
    assert (found.relation, dict(found.passed)) == ("r", {"i0": "two words", "i1": "b"})
    assert (found.block, found.read, found.may_grow) == (None, (), False)
    scanned = computed_columns(RELATION)
    assert scanned is not None
    assert (dict(scanned.passed), scanned.block) == ({name: name for name in RELATION.columns}, None)


def test_spark_gets_the_columns_that_expressions_and_filters_at_any_level_read() -> None:
    inner = over(RELATION, "`r`.`a` + 1", "`r`.`b`", "`r`.`s`", "`r`.`two words`", where="`r`.`x``y` > 0")
    node = over(inner, "`q`.`i1`", "`q`.`i0` * 2", alias="q", where="`q`.`i3` IS NULL")
    found = computed_columns(node)
    assert found is not None
    assert dict(found.passed) == {"i0": "b"}
    assert found.block is not None
    assert found.read == ("a", "two words", "x`y")
    assert found.block.columns == ("i1",)
    assert "`b`" not in linear_to_sql(found.block)
    filtered = computed_columns(over(inner, "`q`.`i1`", alias="q"))
    assert filtered is not None
    assert filtered.block is not None, "the filter below decides which rows there are"
    assert filtered.block.columns == ()


def test_what_is_computed_below_stays_there_because_it_may_unnest() -> None:
    inner = over(RELATION, "`r`.`a`", "EXPLODE(`r`.`s`)")
    found = computed_columns(over(inner, "`q`.`i0`", alias="q"))
    assert found is not None
    assert dict(found.passed) == {"i0": "a"}
    assert found.may_grow
    assert found.block is not None
    assert found.read == ("s",)
    assert "EXPLODE" in linear_to_sql(found.block)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("`r`.`a` + 1", {"a"}),
        ("a + 1", {"a"}),
        ("`r`.`s`.`f`", {"s"}),
        ("CONCAT(`r`.`two words`, 'b')", {"two words"}),
        ("`r`.`x``y` * 2", {"x`y"}),
        ("STRUCT(*)", set(RELATION.columns)),
        ("STRUCT(`r`.*)", set(RELATION.columns)),
        ("TO_JSON(STRUCT(1, *))", set(RELATION.columns)),
        ("2 * `r`.`ab`", {"ab"}),
        ("1", set()),
    ],
)
def test_the_columns_that_an_expression_may_read(text: str, read: set[str]) -> None:
    found = computed_columns(over(RELATION, text))
    assert found is not None
    assert set(found.read) == read


@pytest.mark.parametrize(
    ("node", "may_grow"),
    [
        (over(RELATION, "`r`.`a` + 1"), False),
        (over(RELATION, "`e`.`x`", laterals=("LATERAL VIEW EXPLODE(`r`.`s`) e AS x",)), True),
        (over(RELATION, "posexplode_outer(`r`.`s`)"), True),
        (over(over(RELATION, "inline(`r`.`s`)"), "`q`.`i0`", alias="q"), True),
    ],
)
def test_whether_a_row_may_become_many(node: Select, may_grow: bool) -> None:
    found = computed_columns(node)
    assert found is not None
    assert found.may_grow is may_grow
    if node.laterals:
        assert found.read == ("s",)


BLOCK = over(RELATION, "`r`.`a`")


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(UnionAll((BLOCK, BLOCK), (("i0", "int"),)), id="a union"),
        pytest.param(over(UnionAll((BLOCK, BLOCK), (("i0", "int"),)), "`r`.`i0`"), id="a block over a union"),
        pytest.param(replace(BLOCK, sources=(*BLOCK.sources, Source("s", RELATION))), id="a join"),
        pytest.param(replace(BLOCK, temporal_filters=(TemporalFilter(0, Expression("`r`.`a`")),)), id="a marker"),
        pytest.param(
            replace(BLOCK, items=(Item("i", Expression("`r`.`a`")), Item("i", Expression("`r`.`b`")))), id="two columns of a name"
        ),
    ],
)
def test_what_is_not_a_block_over_one_relation(node: Linear) -> None:
    assert computed_columns(node) is None


def calls(count: int) -> int:
    """The calls that it takes to split a block that computes all columns of a table."""
    names = tuple(f"c{number}" for number in range(count))
    node = over(Scan("wide", names), *(f"`r`.`{name}` + 1" for name in names))
    with cProfile.Profile() as profile:
        assert computed_columns(node) is not None
    return int(sum(entry[1] for entry in pstats.Stats(profile).stats.values()))  # type: ignore[attr-defined]


def test_the_work_follows_the_number_of_columns() -> None:
    few, many = calls(100), calls(400)
    assert many < 5 * few
