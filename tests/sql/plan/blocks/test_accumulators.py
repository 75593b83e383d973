"""Which accumulators are sums, numbers or extremes of values of rows, and which values are accumulators as they are."""

from __future__ import annotations

from typing import Final

import pytest

from airflow_pipelines.sql.plan.blocks.accumulators import Accumulators, LinearCall
from airflow_pipelines.sql.plan.ir.aggregate import ColumnTotal, KeptValue, Total
from airflow_pipelines.sql.plan.ir.expression import Expression

ROWS: Final = ColumnTotal(Total.ROWS)
VALUES: Final = ColumnTotal(Total.VALUES, Expression("__c1"))
SUM: Final = ColumnTotal(Total.SUM, Expression("__c1"))


def truth(condition: str) -> ColumnTotal:
    return ColumnTotal(Total.VALUES, Expression(f"CASE WHEN {condition} THEN TRUE END"))


def totals(call: LinearCall, kind: str) -> list[ColumnTotal | None]:
    accumulators = Accumulators(append_only=True)
    assert accumulators.value(call, (kind,), "x") is not None
    return [accumulator.column_total for accumulator in accumulators.accumulators]


@pytest.mark.parametrize(
    ("function", "text", "kind", "expected"),
    [
        ("count", "*", "", [ROWS]),
        ("count", "__c1", "array<int>", [VALUES]),
        ("sum", "__c1", "int", [VALUES, SUM]),
        ("sum", "__c1", "bigint", [VALUES, SUM]),
        ("avg", "__c1", "decimal(10,2)", [VALUES, SUM]),
        ("sum", "__c1", "decimal(27,10)", [VALUES, SUM]),
        ("max", "__c1", "string", [ColumnTotal(Total.MAX, Expression("__c1"))]),
        ("min", "__c1", "decimal(38,2)", [ColumnTotal(Total.MIN, Expression("__c1"))]),
        # The sum may have more digits than there are.
        ("sum", "__c1", "decimal(28,2)", [VALUES, None]),
        (
            "sum",
            "__c1 + 1",
            "int",
            [ColumnTotal(Total.VALUES, Expression("__c1 + 1")), ColumnTotal(Total.SUM, Expression("__c1 + 1"))],
        ),
        ("max", "upper(__c1)", "string", [ColumnTotal(Total.MAX, Expression("upper(__c1)"))]),
        ("count", "__c1.x", "int", [ColumnTotal(Total.VALUES, Expression("__c1.x"))]),
        ("count_if", "__c1", "boolean", [truth("(__c1)")]),
        ("some", "__c1", "boolean", [truth("(__c1)"), truth("NOT ((__c1))")]),
    ],
)
def test_what_is_added_up(function: str, text: str, kind: str, expected: list[ColumnTotal | None]) -> None:
    assert totals(LinearCall(function, (text,), None), kind) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [("sum", [Total.VALUES, Total.SUM]), ("avg", [Total.VALUES, Total.SUM]), ("max", [Total.MAX]), ("min", [Total.MIN])],
)
def test_a_filter_leaves_null(function: str, expected: list[Total]) -> None:
    value = "CASE WHEN (__c2 > 0) THEN (__c1) END"
    assert totals(LinearCall(function, ("__c1",), "__c2 > 0"), "int") == [
        ColumnTotal(total, None if value is None else Expression(value)) for total in expected
    ]


@pytest.mark.parametrize(
    ("arguments", "condition", "expected"),
    [
        (("__c1", "__c2"), None, "(__c1) IS NOT NULL AND (__c2) IS NOT NULL"),
        (("__c1",), "__c2 > 0", "(__c2 > 0) AND (__c1) IS NOT NULL"),
        (("*",), "__c2 > 0", "(__c2 > 0)"),
    ],
)
def test_rows_that_meet_a_condition_are_counted(arguments: tuple[str, ...], condition: str | None, expected: str) -> None:
    assert totals(LinearCall("count", arguments, condition), "int") == [truth(expected)]


@pytest.mark.parametrize(
    ("function", "kind", "result", "expected"),
    [
        ("count", "int", "bigint", KeptValue("__a0")),
        ("count_if", "boolean", "bigint", KeptValue("__a0")),
        ("max", "string", "string", KeptValue("__a0max")),
        ("sum", "bigint", "bigint", KeptValue("__a1", "__a0")),
        ("sum", "decimal(10,2)", "decimal(20,2)", KeptValue("__a1", "__a0")),
        ("avg", "int", "double", None),
        ("avg", "decimal(10,2)", "decimal(14,6)", None),
        ("some", "boolean", "boolean", None),
    ],
)
def test_values_that_are_accumulators(function: str, kind: str, result: str, expected: KeptValue | None) -> None:
    value = Accumulators(append_only=True).value(LinearCall(function, ("__c1",), None), (kind,), result)
    assert value is not None
    assert value.kept == expected
