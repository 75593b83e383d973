"""Values of rows in memory that Spark evaluates once for each distinct value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType, TimestampNTZType

from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.execution import row_queries
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.row_values import needs_spark, row_values
from airflow_pipelines.engine.execution.ways import Declined
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.sql.plan.ir.expression import Expression

pytestmark = pytest.mark.core

SCHEMA: Final = StructType(
    [
        StructField("a", IntegerType()),
        StructField("b", StringType()),
        StructField("t", TimestampNTZType()),
        StructField("x", DoubleType()),
    ]
)
NOON: Final = datetime(2026, 1, 1, 12)


PLUS_ONE = "a + INT('1')"
"""A value that Arrow does not evaluate."""


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


ROWS: Final[list[tuple[Any, ...]]] = [
    (1, "p", at(0), 0.5),
    (2, None, at(3), -0.0),
    (None, "p", None, None),
    (1, "p", at(3), 1.0),
    (1, "q", at(0), 2.0),
    (2, "p", at(0), 2.0),
    (1, "p", None, 2.0),
    (None, None, at(9), 2.0),
]


def rows() -> pa.Table:
    arrow = arrow_schema(SCHEMA)
    columns = zip(*ROWS, strict=True)
    return pa.table([pa.array(values, column.type) for values, column in zip(columns, arrow, strict=True)], schema=arrow)


def expressions(*texts: str) -> list[Expression]:
    return list(map(Expression, texts))


@pytest.fixture
def context(sessions: SparkSessions, tmp_path: Any) -> Iterator[Context]:
    views = BatchViews(sessions)
    yield Context(sessions, views, BatchStore(tmp_path), limits=Limits())
    views.close()


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list to which each query adds the number of rows that it reads."""
    sizes: list[int] = []
    number_rows = row_queries._number_rows

    def spied(rows: pa.Table, *given: Any) -> Any:
        sizes.append(rows.num_rows)
        return number_rows(rows, *given)

    monkeypatch.setattr(row_queries, "_number_rows", spied)
    return sizes


def test_columns_need_no_spark(context: Context, evaluated: list[int]) -> None:
    assert not needs_spark(expressions("a", "(a)", "((b))", "window(a, '1 second')"), ["a", "b"])
    assert not needs_spark(expressions("a", "a + 1"), ["a", "b"])
    assert needs_spark(expressions("a", PLUS_ONE), ["a", "b"])
    assert not needs_spark(expressions("(a) + (b)"), ["a", "b"])
    found = row_values(rows(), SCHEMA, expressions("(a)", "b"), context)
    assert found.columns["(a)"].to_pylist() == [row[0] for row in ROWS]
    assert evaluated == []


def test_an_expression_of_one_column_is_evaluated_for_its_distinct_values(context: Context, evaluated: list[int]) -> None:
    found = row_values(rows(), SCHEMA, expressions(PLUS_ONE, "COALESCE(b, '-')", "a", "7"), context)
    assert found.rows is None
    assert found.columns[PLUS_ONE].to_pylist() == [None if row[0] is None else row[0] + 1 for row in ROWS]
    assert found.columns["COALESCE(b, '-')"].to_pylist() == [row[1] or "-" for row in ROWS]
    assert found.columns["a"].to_pylist() == [row[0] for row in ROWS]
    assert found.columns["7"].to_pylist() == [7] * len(ROWS)
    assert evaluated == [3]


def test_an_expression_of_several_columns_is_evaluated_for_all_rows(context: Context, evaluated: list[int]) -> None:
    found = row_values(rows(), SCHEMA, expressions("CONCAT(a, b)", "a * 2", "CAST(x AS STRING)"), context)
    together = [None if row[0] is None or row[1] is None else f"{row[0]}{row[1]}" for row in ROWS]
    assert found.columns["CONCAT(a, b)"].to_pylist() == together
    assert found.columns["a * 2"].to_pylist() == [None if row[0] is None else 2 * row[0] for row in ROWS]
    assert found.columns["CAST(x AS STRING)"].to_pylist() == [None if row[3] is None else str(row[3]) for row in ROWS]
    assert evaluated == [len(ROWS)]


@pytest.mark.parametrize(
    ("window", "queries"), [("WINDOW(t, '4 seconds', '2 seconds')", 1), ("WINDOW(t, '0 hours 4 seconds', '2 seconds')", 2)]
)
def test_windows_give_none_one_or_several_rows(context: Context, evaluated: list[int], window: str, queries: int) -> None:
    found = row_values(rows(), SCHEMA, expressions(window, "a", PLUS_ONE), context)
    assert found.rows is not None
    starts = [value["start"] for value in found.columns[window].to_pylist()]
    places = found.rows.to_pylist()
    wanted = [
        (place, at(start))
        for place, row in enumerate(ROWS)
        if row[2] is not None
        for start in range(-4, 10, 2)
        if at(start) <= row[2] < at(start + 4)
    ]
    assert sorted(zip(places, starts, strict=True)) == wanted
    assert found.columns["a"].to_pylist() == [ROWS[place][0] for place in places]
    assert found.columns[PLUS_ONE].to_pylist() == [None if ROWS[place][0] is None else ROWS[place][0] + 1 for place in places]
    assert len(evaluated) == queries


@pytest.mark.parametrize(
    "texts", [["WINDOW(t, '4 seconds')", "WINDOW(t, '5 seconds')"], ["CONCAT(a, b)"], ["WINDOW(t, '0 hours 4 seconds')"]]
)
def test_two_windows_and_many_values_are_left_to_others(context: Context, texts: list[str]) -> None:
    few = replace(context, limits=Limits(small_input=3, driver_rows=3))
    with pytest.raises(Declined):
        row_values(rows(), SCHEMA, expressions(*texts), few)


def test_no_rows(context: Context) -> None:
    found = row_values(rows().slice(0, 0), SCHEMA, expressions(PLUS_ONE, "WINDOW(t, '4 seconds')"), context)
    assert found.columns[PLUS_ONE].to_pylist() == []
    assert found.columns["WINDOW(t, '4 seconds')"].to_pylist() == []
