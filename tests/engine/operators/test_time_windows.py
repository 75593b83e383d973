"""Windows of time that are computed in the driver are Spark's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import pyarrow as pa
import pytest

from airflow_pipelines.engine.execution.row_values import windows_of
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.sql.plan.ir.expression import Expression

CALLS: Final = (
    "window(t, '10 seconds')",
    "WINDOW(`t`, 'INTERVAL 1 WEEK')",
    "window(t, '10 seconds', '2 seconds')",
    "window(t, '7 seconds', '3 seconds')",
    "window( t , '1 Day' , '1 day' , '19 hours')",
    "window(t, '90 minutes', '1 hour', '15 minutes')",
    "window(t, '1500 milliseconds', '1 second', '0 seconds')",
    "window((t), '250 microseconds')",
    "(window(t, '10 seconds'))",
    "window(t, ' 10 seconds ')",
)
NOON: Final = datetime(2025, 3, 30, 12)
TIMES: Final[list[datetime | None]] = [
    *(NOON + timedelta(seconds=number) for number in range(-4, 5)),
    *(datetime(1970, 1, 1) + timedelta(microseconds=number) for number in (-10_000_000, -1, 0, 1, 9_999_999, 10_000_000)),
    None,
    datetime(1, 1, 8),
    datetime(2025, 3, 30, 0, 59, 59, 999999),
    datetime(2025, 3, 30, 1),
    datetime(9999, 12, 30, 23, 59, 59, 999999),
]


@pytest.mark.core
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_windows_are_sparks(sessions: SparkSessions, zone: str | None) -> None:
    numbers = range(len(TIMES))
    times = pa.chunked_array([pa.array(part, pa.timestamp("us", zone)) for part in (TIMES[:5], TIMES[5:])])
    rows = sessions.small.createDataFrame(pa.table({"i": pa.array(numbers), "t": times}).combine_chunks())
    for text in CALLS:
        windows = windows_of(Expression(text))
        assert windows is not None
        found = windows.of_rows(times)
        assert found is not None
        own = zip(found.rows.tolist(), *(_numbers(found.windows.field(at)) for at in (0, 1)), strict=True)
        sparks = rows.selectExpr("i", f"{text} AS w").selectExpr("i", "w.start", "w.end").toArrow()
        assert sorted(own) == sorted(zip(*(_numbers(column) for column in sparks.columns), strict=True)), text
        assert found.windows.type.field("start").type == times.type


def _numbers(column: pa.Array | pa.ChunkedArray) -> list[int]:
    numbers: list[int] = column.cast(pa.int64()).to_pylist()
    return numbers


@pytest.mark.parametrize(
    "text",
    [
        "window(t, '1 month')",
        "window(t, '-1 seconds')",
        "window(t, '0 seconds')",
        "window(t, '1 minute 5 seconds')",
        "window(t, '10 seconds', '11 seconds')",
        "window(t, '10 seconds', '5 seconds', '5 seconds')",
        "window(t, '10 seconds', '5 seconds', '-1 seconds')",
        "window(t + INTERVAL 1 DAY, '10 seconds')",
        "session_window(t, '10 seconds')",
        "window(s.t, '10 seconds')",
        "window(t)",
        "window(t, 10)",
        "window(t, '10 seconds', t)",
        "window(t, '999999999 weeks')",
        "window(t, '10 seconds').start",
        "t",
    ],
)
def test_anything_else_is_left_to_spark(text: str) -> None:
    assert windows_of(Expression(text)) is None


@pytest.mark.parametrize("times", [pa.array([1]), pa.array(["2026-01-01"]), pa.array([2**62], pa.timestamp("us"))])
def test_other_times_are_left_to_spark(times: pa.Array) -> None:
    windows = windows_of(Expression("window(t, '10 seconds')"))
    assert windows is not None
    assert windows.of_rows(times) is None
