"""Which calls follow from accumulators of all rows of a group."""

from __future__ import annotations

import pytest

from airflow_pipelines.rows.zsets import Merge
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call, ColumnTotal, KeptValue, Total
from airflow_pipelines.sql.plan.ir.description import describe_node
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.passes.calls_over_rows import calls_over_rows, derive_calls_over_rows

ROWS = Select(
    (Source("t", Scan("t", ("a", "b", "x"))),),
    (Item("__c0", Expression("`t`.`a`")), Item("__c1", Expression("`t`.`b`")), Item("__c2", Expression("`t`.`x`"))),
)


def _node(*calls: tuple[str, str, str | None]) -> Aggregate:
    made = tuple(
        Call(f"__r{at}", Expression(text), kind, None if value is None else Expression(value))
        for at, (text, kind, value) in enumerate(calls)
    )
    items = (Item("k", Expression("__k0")), *(Item(f"c{at}", call.name) for at, call in enumerate(made)))
    return Aggregate(ROWS, (Item("__k0", Expression("__c0")),), ("int",), made, (), items, input_types=("int", "bigint", "double"))


def test_extremes_and_what_is_next_to_them() -> None:
    found = calls_over_rows(_node(("MAX(__c1)", "bigint", None), ("COUNT(*)", "bigint", "__a0"), ("MAX(__c1)", "bigint", None)))
    assert found is not None
    assert [call.kept for call in found.calls] == [KeptValue("__a0max"), KeptValue("__a1"), KeptValue("__a0max")]
    assert [accumulator.merge for accumulator in found.accumulators] == [Merge.MAX, Merge.SUM]
    assert found.accumulators[0].column_total == ColumnTotal(Total.MAX, Expression("__c1"))


@pytest.mark.parametrize(
    "text", ["MAX(__c2)", "MAX(__c1 + 1)", "MAX(DISTINCT __c1)", "MAX_BY(__c1, __c0)", "COLLECT_LIST(__c1)", "SUM(__c2)"]
)
def test_other_calls_are_left_to_spark(text: str) -> None:
    assert calls_over_rows(_node((text, "bigint", None), ("COUNT(*)", "bigint", "__a0"))) is None


def test_what_is_derived_is_no_part_of_the_layout() -> None:
    stage = Stage("v", (("k", "int"), ("c0", "bigint")), _node(("MIN(__c1)", "bigint", None)))
    derived = derive_calls_over_rows(stage, {})
    assert isinstance(derived.node, Aggregate)
    assert derived.node.over_rows is not None
    assert derived == stage
    assert describe_node(derived.node) == describe_node(stage.node)
    linear = Stage("v", (("k", "int"), ("c0", "bigint")), _node(("COUNT(*)", "bigint", "__a0")))
    assert derive_calls_over_rows(linear, {}).node.over_rows is None  # type: ignore[union-attr]
