"""Conditions that Arrow decides, and those that it leaves to Spark."""

from __future__ import annotations

from datetime import date
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, DateType, DecimalType, DoubleType, IntegerType, LongType, StringType, TimestampType

from airflow_pipelines.engine.operators.comparisons import can_compare, holds
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.sql.plan.ir.join_graph import Comparison, Conjunct, Constant, Operator, SourceColumn

LEFT, RIGHT = ("l", "c"), ("r", "c")
TEXTS = [None, "", "x", "X", "x ", "é", "e\u0301"]


def condition(*comparisons: Comparison) -> Conjunct:
    columns = {side for part in comparisons for side in (part.left, part.right) if isinstance(side, tuple)}
    return Conjunct("", frozenset({"l"}), is_plain=True, comparisons=comparisons, columns=frozenset(columns))


def passing(comparison: Comparison, values: pa.Array) -> list[object]:
    """Those values of the left side for which a comparison with constants is true."""
    mask = holds([condition(comparison)], {LEFT: pa.chunked_array([values.slice(0, 1), values.slice(1)])})
    return values.filter(pa.array(mask)).to_pylist()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [({"x"}, ["x"]), ({""}, [""]), ({"x ", "é"}, ["x ", "é"]), ({"no"}, [])],
)
def test_texts_are_equal_byte_for_byte_and_null_is_none_of_them(wanted: set[str], found: list[str]) -> None:
    assert passing(Comparison(LEFT, Operator.ONE_OF, frozenset(wanted)), pa.array(TEXTS)) == found


def test_whole_numbers_of_any_width_are_compared_with_numbers_that_their_type_lacks() -> None:
    narrow = pa.array([None, -128, 0, 127], pa.int8())
    assert passing(Comparison(LEFT, Operator.ONE_OF, frozenset({127, 2**63 - 1})), narrow) == [127]
    assert passing(Comparison(LEFT, Operator.LESS, 128), narrow) == [-128, 0, 127]


@pytest.mark.parametrize(
    ("operator", "found"),
    [
        (Operator.EQUAL, [date(2024, 2, 29)]),
        (Operator.LESS, [date(1, 1, 1)]),
        (Operator.LESS_OR_EQUAL, [date(1, 1, 1), date(2024, 2, 29)]),
        (Operator.GREATER, [date(9999, 12, 31)]),
        (Operator.GREATER_OR_EQUAL, [date(2024, 2, 29), date(9999, 12, 31)]),
    ],
)
def test_days_are_compared(operator: Operator, found: list[date]) -> None:
    days = pa.array([None, date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)])
    assert passing(Comparison(LEFT, operator, date(2024, 2, 29)), days) == found


def test_all_comparisons_of_all_conditions_have_to_hold() -> None:
    numbers = {LEFT: pa.chunked_array([[1, 2], [3, None]]), RIGHT: pa.chunked_array([[1, 1, 1, 1]], pa.int16())}
    above = condition(Comparison(LEFT, Operator.GREATER, RIGHT))
    below = condition(Comparison(LEFT, Operator.GREATER_OR_EQUAL, 0), Comparison(LEFT, Operator.LESS, 3))
    assert holds([above, below], numbers).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("kind", "right"),
    [
        (StringType("UTF8_LCASE"), frozenset({"x"})),
        (StringType(), 1),
        (StringType(), frozenset({1})),
        (StringType(), date(2024, 1, 1)),
        (StringType(), RIGHT),
        (IntegerType(), frozenset({"1"})),
        (IntegerType(), frozenset({1, 2**63})),
        (IntegerType(), date(2024, 1, 1)),
        (DateType(), frozenset({"2024-01-01"})),
        (DateType(), frozenset({1})),
        (TimestampType(), date(2024, 1, 1)),
        (DecimalType(10, 0), frozenset({1})),
        (DecimalType(10, 0), RIGHT),
        (DecimalType(10, 0), date(2024, 1, 1)),
        (DecimalType(10, 2), Decimal("1.001")),
        (DecimalType(10, 2), 10**8),
        (DecimalType(10, 2), Decimal("100000000.5")),
        (DecimalType(38, 19), 1),
        (DecimalType(38, 2), Decimal("1.000")),
        (IntegerType(), Decimal("1.0")),
        (DoubleType(), frozenset({1})),
        (DoubleType(), RIGHT),
    ],
)
def test_what_spark_may_compare_in_another_way_is_left_to_it(kind: DataType, right: SourceColumn | Constant) -> None:
    operator = Operator.ONE_OF if isinstance(right, frozenset) else Operator.EQUAL
    assert not can_compare(condition(Comparison(LEFT, operator, right)), {LEFT: kind, RIGHT: kind})


KINDS = [DecimalType(1, 0), DecimalType(2, 2), DecimalType(10, 2), DecimalType(20, 0), DecimalType(38, 2), DecimalType(38, 18)]
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
    "9.50",
    "99999999.99",
    "12345678901.5",
    "9" * 20,
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
    compared = 0
    for number in NUMBERS:
        for operator in set(Operator) - {Operator.ONE_OF}:
            wanted = Comparison(LEFT, operator, Decimal(number) if "." in number else int(number))
            if can_compare(condition(wanted), {LEFT: kind}):
                compared += 1
                found = sessions.small.sql(f"SELECT c FROM decimals WHERE c {operator.value} {number}").toArrow()["c"].to_pylist()
                assert sorted(passing(wanted, column)) == sorted(found), f"{kind} {operator.value} {number}"
    assert compared >= 15


def test_a_condition_with_one_comparison_that_is_left_to_spark_is_left_to_it_whole() -> None:
    kinds: dict[SourceColumn, DataType] = {LEFT: LongType(), RIGHT: DoubleType()}
    number, other = Comparison(LEFT, Operator.LESS, 3), Comparison(RIGHT, Operator.LESS, 3)
    assert can_compare(condition(number), kinds)
    assert not can_compare(condition(number, other), kinds)
    assert not can_compare(condition(), kinds)
