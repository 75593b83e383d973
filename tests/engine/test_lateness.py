"""Waterlines: the greatest value of a column with LATENESS less its bound."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.lateness import Bounds, LateColumn, late_rows
from airflow_pipelines.engine.spark.schemas import spark_schema
from tests.connectors.relations import col, relation

HOUR = dt.timedelta(hours=1)


class Waterline:
    """The waterline of one column, which advances with the values of each step."""

    def __init__(self, kind: str, bound: Any, **parts: Any) -> None:
        self._schema = relation(col("x", kind, **parts))
        self._bounds = Bounds([LateColumn("t", "x", "")], cast(SparkSession, None))
        # Spark would be asked what the text of the bound is.
        self._bounds._values = (bound,)
        self._waterlines: Any = {}

    def advanced(self, *values: Any) -> str | None:
        """Return the waterline after a step with these values."""
        rows = self._rows(*values)
        delta = Batch.in_memory(weighted(spark_schema(self._schema)), rows.append_column(WEIGHT, pa.array([1] * rows.num_rows)))
        self._waterlines = self._bounds.advance(self._waterlines, {"t": delta})
        waterline: str | None = self._waterlines.get("t", {}).get("x")
        return waterline

    def late(self, *values: Any) -> list[bool]:
        """Which of the values would be late now."""
        late: list[bool] = late_rows(self._rows(*values), self._waterlines.get("t", {})).to_pylist()
        return late

    def _rows(self, *values: Any) -> pa.Table:
        return pa.table({"x": pa.array(values, self._schema.arrow.field("x").type)})


def test_a_waterline_is_the_greatest_value_less_the_bound_and_never_falls() -> None:
    line = Waterline("BIGINT", 5)
    assert line.advanced(None) is None
    assert line.advanced(7, 12, None) == "7"
    assert line.advanced(9) == "7"
    assert line.late(6, 7, None) == [True, False, False]
    days = Waterline("DATE", dt.timedelta(hours=30))
    assert days.advanced(dt.date(2026, 1, 10)) == "2026-01-08", "whole days, rather too low"
    assert Waterline("DATE", 3).advanced(dt.date(2026, 1, 10)) == "2026-01-07"


@pytest.mark.parametrize(
    ("kind", "bound", "least", "later", "waterline"),
    [
        ("TIMESTAMP", HOUR, dt.datetime(1, 1, 1), dt.datetime(2026, 1, 1, 12), "2026-01-01 11:00:00.000000"),
        ("DATE", 1, dt.date(1, 1, 1), dt.date(2026, 1, 2), "2026-01-01"),
        ("TINYINT", 1, -128, 3, "2"),
        ("BIGINT", 5, -(2**63), 12, "7"),
        ("DECIMAL", 1, Decimal("-9.9"), Decimal("5.5"), "4.5"),
    ],
)
def test_values_at_the_lower_end_of_their_type_have_no_waterline_yet(
    kind: str, bound: Any, least: Any, later: Any, waterline: str
) -> None:
    line = Waterline(kind, bound, **({"precision": 2, "scale": 1} if kind == "DECIMAL" else {}))
    assert line.advanced(least) is None
    assert line.late(least) == [False]
    assert line.advanced(least, later) == waterline
    assert line.late(least, later) == [True, False]
    assert line.advanced(least) == waterline


def test_nan_is_never_late_and_moves_no_waterline() -> None:
    line = Waterline("DOUBLE", 1)
    assert line.advanced(math.nan) is None
    assert line.advanced(2.5, math.nan) == "1.5"
    assert line.advanced(math.nan) == "1.5"
    assert line.late(math.nan, 1.0, 1.5) == [False, True, False]
    assert line.advanced(4.5) == "3.5"
