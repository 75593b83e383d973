"""Which columns of keyed stages are left out, because nothing reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select, Source, UnionAll
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.passes.drop_unread_columns import drop_unread_columns

COLUMNS = (("c0", "int"), ("c1", "bigint"), ("a `b", "string"), ("c10", "date"))
NAMES = tuple(name for name, _ in COLUMNS)
SIDES = (KeyedSource("l", Scan("t", ("k",)), (Expression("`k`"),)), KeyedSource("r", Scan("u", ("k",)), (Expression("`k`"),)))
JOIN = AffectedKeys(SIDES, "SELECT a, b, c, d FROM l LEFT JOIN r", NAMES, ("int",), Shape.JOIN)


def _rows(*texts: str, where: str | None = None, source: Linear | None = None) -> Select:
    items = tuple(Item(f"x{at}", Expression(text)) for at, text in enumerate(texts))
    return Select((Source("b", source or Scan("v$1", NAMES)),), items, None if where is None else WhereClause(where))


def _groups(rows: Select) -> Aggregate:
    return Aggregate(
        rows,
        (),
        (),
        (Call("__r0", Expression("COUNT(*)"), "bigint", Expression("__a0")),),
        (),
        (Item("n", Expression("__r0")),),
        None,
    )


def _planned(keyed: Node, *readers: Node) -> list[Node]:
    stages = [Stage("v$1", COLUMNS, keyed), *(Stage(f"v${at}", (("n", "bigint"),), node) for at, node in enumerate(readers, 2))]
    return [stage.node for stage in drop_unread_columns(tuple(stages), cast(Builder, None))]


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        (_rows("`b`.`c1`"), ("c1",)),
        (_rows("UPPER(`b`.`c10`)"), ("c10",)),
        (_rows("`b`.`c1`", where="`b`.`c0` > 1"), ("c0", "c1")),
        (_rows("`b`.`a ``b`"), ("a `b",)),
        (_rows("b.c0 + 1"), ("c0",)),
        (_rows("1"), ("c0",)),
        (replace(_rows("`l`.`x`"), laterals=(LateralView("LATERAL VIEW EXPLODE(`b`.`c10`) l AS x"),)), ("c10",)),
        (_rows("`i`.`x0`", source=_rows("`b`.`c1`")), ("c1",)),
        (_rows("STRUCT(`b`.*)"), NAMES),
        (_rows("`i`.`c1`", source=UnionAll((Scan("v$1", NAMES),), COLUMNS)), NAMES),
        (_rows("`i`.`x0`", source=UnionAll((_rows("`b`.`c0`"), _rows("`b`.`c1`")), (("x0", "bigint"),))), ("c0", "c1")),
    ],
)
def test_what_an_aggregate_reads_is_left(rows: Select, kept: tuple[str, ...]) -> None:
    keyed, groups = _planned(JOIN, _groups(rows))
    assert isinstance(keyed, AffectedKeys)
    assert isinstance(groups, Aggregate)
    assert keyed.columns == kept
    assert keyed.sources == JOIN.sources
    assert groups == _groups(cast(Select, _of(rows, kept)))
    if kept == NAMES:
        assert keyed is JOIN


def _of(node: Linear, columns: tuple[str, ...]) -> Linear:
    match node:
        case Scan():
            return Scan(node.relation, columns)
        case UnionAll():
            return replace(node, parts=tuple(_of(part, columns) for part in node.parts))
        case Select():
            return replace(node, sources=tuple(Source(source.alias, _of(source.node, columns)) for source in node.sources))


def test_the_query_gives_the_rest_by_name() -> None:
    keyed, _ = _planned(JOIN, _groups(_rows("`b`.`c10`", "`b`.`c1`")))
    assert isinstance(keyed, AffectedKeys)
    all_columns = "`c0`, `c1`, `a ``b`, `c10`"
    assert keyed.query == f"SELECT `c1`, `c10` FROM (SELECT a, b, c, d FROM l LEFT JOIN r) AS `__all`({all_columns})"


def test_every_reader_counts() -> None:
    keyed, *readers = _planned(JOIN, _groups(_rows("`b`.`c1`")), _groups(_rows("`b`.`c10`")))
    assert keyed.columns == ("c1", "c10")
    assert [node.input.sources[0].node.columns for node in readers] == [("c1", "c10")] * 2


COUNT = _groups(_rows("`b`.`c1`"))


@pytest.mark.parametrize(
    ("keyed", "readers"),
    [
        (replace(JOIN, remembered=("`c1`",)), (COUNT,)),
        (replace(JOIN, key_types=()), (COUNT,)),
        (JOIN, (COUNT, _rows("`b`.`c1`"))),
        (JOIN, (COUNT, replace(JOIN, sources=(KeyedSource("x", Scan("v$1", NAMES), (Expression("`c1`"),)),)))),
        (JOIN, (replace(COUNT, calls=(Call("__r0", Expression("FIRST(x0)"), "bigint", None),)),)),
        (JOIN, ()),
    ],
    ids=["answers that are kept", "no keys", "a view", "a keyed reader", "rows that are read again", "the view itself"],
)
def test_all_columns_stay_where_others_may_need_them(keyed: AffectedKeys, readers: tuple[Node, ...]) -> None:
    assert _planned(keyed, *readers) == [keyed, *readers]
