"""Which aggregates are over rows of several relations, column by column."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_pipelines.sql.plan.ir.aggregate import UnionPart
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select, Source, UnionAll
from airflow_pipelines.sql.plan.passes.union_parts import union_parts

TYPES = (("k0", "string"), ("rv0", "int"), ("d", "bigint"))
RAW = Select(
    (Source("t", Scan("t", ("a b", "n"))),),
    (Item("k0", "UPPER(`t`.`a b`)"), Item("rv0", "CASE WHEN `t`.`n` < 1 THEN '`t`.`n`' END"), Item("d", "CAST(NULL AS BIGINT)")),
)
PAIRS = Select(
    (Source("u", Scan("v$1", ("k0", "x"))),), (Item("k0", "`u`.`k0`"), Item("rv0", "CAST(NULL AS INT)"), Item("d", "`u`.`x`"))
)


def _over(*parts: Linear) -> Select:
    items = (Item("__c0", "`d`.`k0`"), Item("__c1", "`d`.`d`"), Item("__c2", "`d`.`rv0`"))
    return Select((Source("d", UnionAll(parts, TYPES)),), items)


def test_the_parts_of_a_union() -> None:
    assert union_parts(_over(RAW, PAIRS)) == (
        UnionPart(
            "t",
            {"__u0": "a b", "__u1": "n"},
            {"__c0": "UPPER(__u0)", "__c1": None, "__c2": "CASE WHEN __u1 < 1 THEN '`t`.`n`' END"},
        ),
        UnionPart("v$1", {"__u0": "k0", "__u1": "x"}, {"__c0": "__u0", "__c1": "__u1", "__c2": None}),
    )


@pytest.mark.parametrize(
    "part",
    [
        replace(RAW, where="`t`.`n` > 1"),
        replace(RAW, laterals=("LATERAL VIEW EXPLODE(ARRAY(1)) AS `l`",)),
        replace(RAW, sources=(*RAW.sources, *PAIRS.sources)),
        replace(RAW, items=(Item("k0", "`other`.`n`"), *RAW.items[1:])),
        replace(RAW, items=(Item("k0", "`t`.`n`.`field`"), *RAW.items[1:])),
        replace(RAW, sources=(Source("t", UnionAll((RAW, PAIRS), TYPES)),)),
    ],
)
def test_other_parts_are_left_to_spark(part: Linear) -> None:
    assert union_parts(_over(part, PAIRS)) == ()


def test_other_blocks_are_left_to_spark() -> None:
    block = _over(RAW, PAIRS)
    assert union_parts(replace(block, where="`d`.`d` > 1")) == ()
    assert union_parts(replace(block, items=(Item("__c0", "`d`.`d` + 1"),))) == ()
    assert union_parts(RAW) == ()
