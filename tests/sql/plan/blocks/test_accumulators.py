"""Which accumulators are sums, numbers or extremes of a column as it is."""

from __future__ import annotations

from typing import Final

import pytest

from airflow_pipelines.sql.plan.blocks.accumulators import Accumulators, LinearCall
from airflow_pipelines.sql.plan.ir.aggregate import ColumnTotal, Total

ROWS: Final = ColumnTotal(Total.ROWS)
VALUES: Final = ColumnTotal(Total.VALUES, "__c1")
SUM: Final = ColumnTotal(Total.SUM, "__c1")


def totals(call: LinearCall, kind: str) -> list[ColumnTotal | None]:
    accumulators = Accumulators(append_only=True)
    assert accumulators.value(call, (kind,), "x") is not None
    return [accumulator.column_total for accumulator in accumulators.found]


@pytest.mark.parametrize(
    ("function", "text", "kind", "expected"),
    [
        ("count", "*", "", [ROWS]),
        ("count", "__c1", "array<int>", [VALUES]),
        ("sum", "__c1", "int", [VALUES, SUM]),
        ("sum", "__c1", "bigint", [VALUES, SUM]),
        ("avg", "__c1", "decimal(10,2)", [VALUES, SUM]),
        ("sum", "__c1", "decimal(27,10)", [VALUES, SUM]),
        ("max", "__c1", "string", [ColumnTotal(Total.MAX, "__c1")]),
        ("min", "__c1", "decimal(38,2)", [ColumnTotal(Total.MIN, "__c1")]),
        # The sum may have more digits than there are.
        ("sum", "__c1", "decimal(28,2)", [VALUES, None]),
        ("sum", "__c1 + 1", "int", [None, None]),
        ("sum", "-__c1", "bigint", [None, None]),
        ("max", "upper(__c1)", "string", [None]),
        ("count", "__c1.x", "int", [None]),
        ("count_if", "__c1", "boolean", [None]),
        ("some", "__c1", "boolean", [None, None]),
    ],
)
def test_columns_as_they_are(function: str, text: str, kind: str, expected: list[ColumnTotal | None]) -> None:
    assert totals(LinearCall(function, (text,), None), kind) == expected


@pytest.mark.parametrize("function", ["sum", "avg", "max", "count"])
def test_a_filter_is_an_expression(function: str) -> None:
    assert set(totals(LinearCall(function, ("__c1",), "__c2 > 0"), "int")) == {None}


def test_several_columns_of_which_none_is_null_are_an_expression() -> None:
    assert totals(LinearCall("count", ("__c1", "__c2"), None), "int") == [None]
