"""Which aggregates are over rows of several relations, column by column."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_pipelines.sql.plan.ir.aggregate import UnionPart
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select, Source, UnionAll
from airflow_pipelines.sql.plan.passes.union_parts import union_parts

TYPES = (("k0", "string"), ("rv0", "int"), ("d", "bigint"))
RAW = Select(
    (Source("t", Scan("t", ("a b", "n"))),),
    (
        Item("k0", Expression("UPPER(`t`.`a b`)")),
        Item("rv0", Expression("CASE WHEN `t`.`n` < 1 THEN '`t`.`n`' END")),
        Item("d", Expression("CAST(NULL AS BIGINT)")),
    ),
)
PAIRS = Select(
    (Source("u", Scan("v$1", ("k0", "x"))),),
    (Item("k0", Expression("`u`.`k0`")), Item("rv0", Expression("CAST(NULL AS INT)")), Item("d", Expression("`u`.`x`"))),
)


def _over(*parts: Linear) -> Select:
    items = (Item("__c0", Expression("`d`.`k0`")), Item("__c1", Expression("`d`.`d`")), Item("__c2", Expression("`d`.`rv0`")))
    return Select((Source("d", UnionAll(parts, TYPES)),), items)


def test_the_parts_of_a_union() -> None:
    assert union_parts(_over(RAW, PAIRS)) == (
        UnionPart(
            "t",
            {"__u0": "a b", "__u1": "n"},
            {
                Expression("__c0"): Expression("UPPER(__u0)"),
                Expression("__c1"): None,
                Expression("__c2"): Expression("CASE WHEN __u1 < 1 THEN '`t`.`n`' END"),
            },
        ),
        UnionPart(
            "v$1",
            {"__u0": "k0", "__u1": "x"},
            {Expression("__c0"): Expression("__u0"), Expression("__c1"): Expression("__u1"), Expression("__c2"): None},
        ),
    )


@pytest.mark.parametrize(
    "part",
    [
        replace(RAW, where=WhereClause("`t`.`n` > 1")),
        replace(RAW, laterals=(LateralView("LATERAL VIEW EXPLODE(ARRAY(1)) AS `l`"),)),
        replace(RAW, sources=(*RAW.sources, *PAIRS.sources)),
        replace(RAW, items=(Item("k0", Expression("`other`.`n`")), *RAW.items[1:])),
        replace(RAW, items=(Item("k0", Expression("`t`.`n`.`field`")), *RAW.items[1:])),
        replace(RAW, sources=(Source("t", UnionAll((RAW, PAIRS), TYPES)),)),
    ],
)
def test_other_parts_are_left_to_spark(part: Linear) -> None:
    assert union_parts(_over(part, PAIRS)) == ()


def test_other_blocks_are_left_to_spark() -> None:
    block = _over(RAW, PAIRS)
    assert union_parts(replace(block, where=WhereClause("`d`.`d` > 1"))) == ()
    assert union_parts(replace(block, items=(Item("__c0", Expression("`d`.`d` + 1")),))) == ()
    assert union_parts(RAW) == ()
