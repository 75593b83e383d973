"""Cases of comparisons of whole numbers, evaluated in the driver."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.engine.operators.plain_cases import PlainCase
from airflow_pipelines.engine.spark.sessions import SparkSessions

MOST = 2**63 - 1
ROWS = pa.table(
    {
        "a": pa.array([1, 2, 3, None, -(2**31), 2**31 - 1], pa.int32()),
        "b": pa.array([MOST, -MOST - 1, 0, 7, None, -1], pa.int64()),
        "s": pa.array(["x", None, "", "y", "z", "é"]),
    }
)


@pytest.mark.core
@pytest.mark.parametrize(
    "text",
    [
        "CASE WHEN a < 3 THEN TRUE END",
        "CASE WHEN (a >= 1 AND b < 999999999999999999) THEN 1 END",
        "(CASE WHEN b = 0 THEN (s) END)",
        "CASE WHEN a > -2147483648 AND a <= 3 AND b >= -1 THEN b END",
    ],
)
def test_values_are_sparks(sessions: SparkSessions, text: str) -> None:
    case = PlainCase.of(text)
    assert case is not None
    found: Any = case.values(lambda name: ROWS[name])
    spark = sessions.small.createDataFrame(ROWS).selectExpr(f"{text} AS v").toArrow()
    assert found.to_pylist() == spark["v"].to_pylist()
    assert found.type in (spark["v"].type, pa.string())


@pytest.mark.parametrize(
    "text",
    [
        "CASE WHEN a < b THEN TRUE END",
        "CASE WHEN a < 3 OR b < 1 THEN TRUE END",
        "CASE WHEN NOT a < 3 THEN TRUE END",
        "CASE WHEN a < 1.5 THEN TRUE END",
        "CASE WHEN a < 9999999999999999999 THEN TRUE END",
        "CASE WHEN (a < 3 THEN TRUE END",
        "CASE WHEN a < 3 THEN TRUE ELSE FALSE END",
        "CASE WHEN a < 3 THEN a + 1 END",
        "CASE WHEN a < 3 THEN 'x' END",
        "CASE WHEN a < 3 THEN TRUE WHEN b < 3 THEN FALSE END",
        "a < 3",
    ],
)
def test_anything_else_is_left_to_spark(text: str) -> None:
    assert PlainCase.of(text) is None


def test_only_whole_numbers_are_compared() -> None:
    case = PlainCase.of("CASE WHEN x < 3 THEN TRUE END")
    assert case is not None
    for values in (
        pa.array([1.0]),
        pa.array(["1"]),
        pa.array([True]),
        pa.array([1], pa.decimal128(5, 2)),
        pa.array([1], pa.date32()),
    ):
        assert case.values(lambda _, values=values: values) is None
