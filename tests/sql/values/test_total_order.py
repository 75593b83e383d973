"""Types that Spark orders, and the expressions that order values of the others."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.blocks.query_blocks import is_key_type
from airflow_pipelines.sql.values.total_order import has_order, sortable


@pytest.mark.parametrize(
    "kind",
    ["int", "string collate UTF8_LCASE", "interval day", "array<struct<a:double>>", "struct<variant:int,map:int,interval:int>"],
)
def test_types_that_spark_orders_are_left_alone(kind: str) -> None:
    assert has_order(kind)
    assert is_key_type(kind), "they can be keys"
    assert sortable("`x`", kind) == "`x`"


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        ("map<string,int>", "SORT_ARRAY(MAP_ENTRIES(`x`))"),
        ("array<map<int,int>>", "TRANSFORM(`x`, __e0 -> SORT_ARRAY(MAP_ENTRIES(__e0)))"),
        ("struct<a:int,`b c`:map<int,int>>", "STRUCT((`x`) IS NOT NULL, (`x`).`a`, SORT_ARRAY(MAP_ENTRIES((`x`).`b c`)))"),
        (
            "map<int,map<int,int>>",
            "SORT_ARRAY(TRANSFORM(MAP_ENTRIES(`x`), __e0 -> STRUCT(__e0.key, SORT_ARRAY(MAP_ENTRIES(__e0.value)))))",
        ),
        ("interval", "TO_JSON(NAMED_STRUCT('v', `x`))"),
        ("array<examplepoint>", "`x`"),
        ("MAP<INT, STRUCT<a: INT, ... 30 more fields>>", "TO_JSON(NAMED_STRUCT('v', `x`))"),
    ],
)
def test_other_types_are_ordered_by_their_parts(kind: str, order: str) -> None:
    assert sortable("`x`", kind) == order


def test_variants_are_ordered_by_their_texts_and_types() -> None:
    assert sortable("`x`", "variant").startswith("STRUCT(TO_JSON(`x`), SCHEMA_OF_VARIANT(`x`), ")
    assert not is_key_type("struct<a:array<variant>>")
