"""Conditions that Arrow decides, and those that it leaves to Spark."""

from __future__ import annotations

from decimal import Context, Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    YearMonthIntervalType,
)

from airflow_pipelines.engine.execution.arrow_conditions import can_decide, holds
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.join_graph import Conjunct, SourceColumn
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source
from airflow_pipelines.sql.plan.passes.join_graphs import join_graph

LEFT, RIGHT = ("l", "c"), ("r", "c")


def conditions(where: str) -> tuple[Conjunct, ...]:
    sources = (Source("l", Scan("one", ("c",))), Source("r", Scan("other", ("c",))))
    return join_graph(Select(sources, (Item("c", Expression("l.c")),), None if where is None else WhereClause(where))).conjuncts


def passing(where: str, values: pa.Array) -> list[object]:
    """Those values of the left side for which a condition is true."""
    (condition,) = conditions(where)
    mask = holds([condition], {LEFT: pa.chunked_array([values.slice(0, 1), values.slice(1)])})
    return values.filter(pa.array(mask)).to_pylist()


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("l.c = 'x'", ["x"]),
        ("l.c = ''", [""]),
        ("l.c IN ('x ', 'é')", ["x ", "é"]),
        ("l.c IN ('no')", []),
        ("l.c <> 'x'", ["", "X", "x ", "é", "e\u0301"]),
        ("l.c IS NULL OR l.c = 'x'", [None, "x"]),
        ("NOT l.c IN ('x', NULL)", []),
    ],
)
def test_texts_are_compared_byte_for_byte(where: str, found: list[str]) -> None:
    assert passing(where, pa.array([None, "", "x", "X", "x ", "é", "e\u0301"])) == found


def test_integers_are_compared_with_numbers_that_their_type_lacks() -> None:
    narrow = pa.array([None, -128, 0, 127], pa.int8())
    assert passing("l.c IN (127, 9223372036854775807)", narrow) == [127]
    assert passing("l.c < 128", narrow) == [-128, 0, 127]
    assert passing("l.c < 0.5", narrow) == [-128, 0]


def test_all_conditions_have_to_hold() -> None:
    numbers = {LEFT: pa.chunked_array([[1, 2], [3, None]]), RIGHT: pa.chunked_array([[1, 1, 1, 1]], pa.int16())}
    assert holds(conditions("l.c > r.c AND l.c BETWEEN 0 AND 2"), numbers).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (StringType("UTF8_LCASE"), "l.c = 'x'"),
        (StringType(), "l.c = 1"),
        (StringType(), "l.c > DATE '2024-01-01'"),
        (IntegerType(), "l.c = '1'"),
        (IntegerType(), "l.c = 9223372036854775808"),
        (IntegerType(), "l.c + 1 = 2"),
        (DateType(), "l.c = '2024-01-01'"),
        (DateType(), "l.c = DATE '2024-2-1'"),
        (TimestampType(), "l.c = DATE '2024-01-01'"),
        (DecimalType(38, 30), "l.c = 1"),
        (DoubleType(), "l.c = 1"),
        (DoubleType(), "l.c = r.c"),
        (YearMonthIntervalType(), "l.c = r.c"),
    ],
)
def test_comparisons_with_rules_of_their_own_are_left_to_spark(kind: DataType, where: str) -> None:
    (condition,) = conditions(where)
    assert not can_decide(condition, {LEFT: kind, RIGHT: kind})


def test_a_condition_with_one_part_that_is_left_to_spark_is_left_to_it_whole() -> None:
    kinds: dict[SourceColumn, DataType] = {LEFT: LongType(), RIGHT: DoubleType()}
    decided = [can_decide(condition, kinds) for condition in conditions("l.c < 3 AND r.c < 3 AND (l.c < 3 OR r.c < 3)")]
    assert decided == [True, False, False]


def test_a_condition_without_columns_is_left_to_spark() -> None:
    assert [can_decide(condition, {}) for condition in conditions("1 = 1")] == [False]


KINDS = [DecimalType(1, 0), DecimalType(2, 2), DecimalType(10, 2), DecimalType(20, 0), DecimalType(38, 2), DecimalType(38, 18)]
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
NUMBERS = [
    "0",
    "1",
    "9",
    "10",
    "99999999",
    "100000000",
    "0.00",
    "0.5",
    "0.99",
    "1.0",
    "1.001",
    "9.50",
    "99999999.99",
    "100000000.5",
    "12345678901.5",
    "9" * 18,
]


@pytest.mark.core("DecimalType(1,0)", "DecimalType(2,2)")
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_decimals_are_compared_as_spark_compares_them(sessions: SparkSessions, kind: DecimalType) -> None:
    most = Decimal(10**kind.precision - 1).scaleb(-kind.scale, Context(prec=38))
    values = {
        value
        for number in (*map(Decimal, NUMBERS), most)
        for value in (number, -number)
        if abs(value) <= most and value == value.quantize(Decimal(1).scaleb(-kind.scale), context=Context(prec=60))
    }
    column = pa.array([None, *values], pa.decimal128(kind.precision, kind.scale))
    sessions.small.createDataFrame(pa.table({"c": column})).createOrReplaceTempView("decimals")
    texts = [f"l.c {operator} {number}" for number in NUMBERS for operator in OPERATORS]
    decided = [text for text in texts if can_decide(conditions(text)[0], {LEFT: kind})]
    items = ", ".join(f"{text} AS v{at}" for at, text in enumerate(decided))
    answers = sessions.small.sql(f"SELECT l.c, {items} FROM decimals l").toArrow()
    for at, text in enumerate(decided):
        assert passing(text, column) == [
            value for value, answer in zip(answers["c"].to_pylist(), answers[f"v{at}"].to_pylist(), strict=True) if answer
        ], f"{kind}: {text}"
    assert len(decided) >= 15
