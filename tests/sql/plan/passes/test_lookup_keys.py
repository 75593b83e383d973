"""By which columns the rows with some keys can be looked up."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.description import describe_node
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select, Source, UnionAll
from airflow_pipelines.sql.plan.ir.lookup import Lookup
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.passes.lookup_keys import derive_lookup_keys, lookup

T = Scan("t", ("id", "name", "at"))


def projection(*items: tuple[str, str], where: str | None = None, laterals: tuple[str, ...] = ()) -> Select:
    return Select(
        (Source("t", T),),
        tuple(Item(name, Expression(text)) for name, text in items),
        None if where is None else WhereClause(where),
        tuple(map(LateralView, laterals)),
    )


@pytest.mark.parametrize(
    ("node", "key", "found"),
    [
        (T, "`id`", Lookup("t", ("id",), frozenset(T.columns))),
        (T, "CAST(`id` AS bigint)", Lookup("t", ("id",), frozenset(T.columns))),
        (T, "(CAST((CAST(id AS BIGINT)) AS bigint))", Lookup("t", ("id",), frozenset(T.columns))),
        (projection(("c0", "`t`.`id`")), "`c0`", Lookup("t", ("id",), frozenset({"id"}))),
        (projection(("c0", "(`t`.`id`)"), ("n", "UPPER(`t`.`name`)")), "`c0`", Lookup("t", ("id",), frozenset({"id", "name"}))),
        (projection(("c0", "`t`.`id`"), where="`t`.`at` > 1"), "`c0`", Lookup("t", ("id",), frozenset({"id", "at"}))),
        # Another cast, and one that makes values NULL, change what is compared.
        (T, "CAST(`id` AS int)", None),
        (T, "TRY_CAST(`id` AS bigint)", None),
        (T, "`id` + 1", None),
        # A field of a struct is written like a column of a table.
        (T, "`at`.`id`", None),
        (projection(("c0", "`t`.`id` + 1")), "`c0`", None),
        (projection(("c0", "`t`.`at`.`id`")), "`c0`", None),
        (projection(("c0", "`t`.`id`"), laterals=("LATERAL VIEW EXPLODE(`t`.`name`) x AS `y`",)), "`c0`", None),
        (UnionAll((T, T), (("id", "bigint"),)), "`id`", None),
    ],
)
def test_a_key_is_looked_up_when_it_is_a_column_of_a_relation(node: Linear, key: str, found: Lookup | None) -> None:
    assert lookup(node, [Expression(key)], ["bigint"]) == found


def test_parts_of_a_key_that_are_expressions_are_left_out() -> None:
    found = lookup(T, [Expression("`id`"), Expression("`name` || 'x'")], ["bigint", "string"])
    assert found is not None
    assert found.columns == ("id", None)


def test_stored_answers_are_looked_up_in_the_stage_itself() -> None:
    node = AffectedKeys(
        (KeyedSource("s", T, (Expression("`id`"),)),),
        "SELECT id, SUM(at) FROM s",
        ("id", "x"),
        ("bigint",),
        Shape.WINDOW,
        (Expression("`id`"),),
    )
    finished = derive_lookup_keys(Stage("v", (("id", "bigint"), ("x", "double")), node), {}).node
    assert isinstance(finished, AffectedKeys)
    assert finished.remembered_lookup == Lookup("v", ("id",), frozenset({"id", "x"}))
    assert finished.sources[0].lookup == Lookup("t", ("id",), frozenset(T.columns))
    # What is derived is no part of the node's identity, nor of its layout.
    assert finished == node
    assert describe_node(finished) == describe_node(node)
