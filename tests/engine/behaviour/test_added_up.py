"""Groups that are added up in the driver, with keys, values and conditions of all kinds, next to what Spark says of them."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pytest

from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.limits import Limits, MergeLimits
from airflow_pipelines.engine.operators import accumulate
from airflow_pipelines.engine.operators.column_totals import united_totals
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared
from tests.engine.noted_ways import noted

COLUMNS: Final = "k INTEGER, s VARCHAR, t TIMESTAMP, n INTEGER, b BIGINT, d DECIMAL(27, 2), x DOUBLE, f BOOLEAN"
FIRST: Final = datetime(2026, 1, 1, 23, 59, 50)
SIZES: Final = {
    "added up": Limits(tiny=-1),
    "state in files": Limits(tiny=-1, small_rows=25, held_bytes=-1, merges=MergeLimits(memory_batches=1, file_batches=2)),
    "much for Spark": Limits(tiny=-1, small_input=12, driver_rows=12),
    "many rows": Limits(tiny=-1, read_rows=12),
}
VIEWS: Final = """
CREATE VIEW windows AS SELECT k, COUNT(*) AS c, window.start AS s, window.end AS e
    FROM r GROUP BY k, window(t, '10 seconds', '4 seconds');
CREATE VIEW tumbling AS SELECT window.end AS e, SUM(b) AS b, COUNT(DISTINCT s) AS s FROM r GROUP BY window(t, '5 seconds');
CREATE VIEW filtered AS SELECT DATE_FORMAT(t, 'yyyy-MM-dd') AS day, s, COUNT(*) FILTER (WHERE n > 0) AS c,
    SUM(n) FILTER (WHERE f) AS n, AVG(d) AS d, SUM(b) AS b, COUNT(x) AS x, COUNT(n, b) AS nb FROM r GROUP BY 1, s;
CREATE VIEW computed AS SELECT s || '!' AS s, SUM(n + 1) AS n, SUM(-d) AS d, AVG(n) AS b, COUNT_IF(n < k) AS i, SOME(f) AS f
    FROM r GROUP BY s || '!' HAVING COUNT(*) <> 2;
CREATE VIEW floats AS SELECT x, -x AS y, COUNT(*) AS c FROM r GROUP BY x, -x;
CREATE VIEW parts AS SELECT STRUCT(k, s) AS p, f, SUM(d) AS d, COUNT(*) AS c, EVERY(f) AS e FROM r GROUP BY STRUCT(k, s), f;
CREATE VIEW shown AS SELECT k, CASE WHEN COUNT(*) > 1 THEN 100 DIV (COUNT(*) - 1) END AS c, SUM(n) AS n
    FROM r GROUP BY k HAVING SUM(n) > 0 OR k IS NULL;
"""
EXTREMES: Final = """
CREATE VIEW extremes AS SELECT k, MIN(t) AS t, MAX(s) AS s, MIN(s) FILTER (WHERE f) AS f, MAX(d * 2) AS d, MAX(n) AS n, MIN(b) AS b
    FROM r GROUP BY k;
"""


def row(draw: random.Random) -> tuple[Any, ...]:
    values = (
        draw.randrange(4),
        draw.choice(["", "a", "A", "ä", "a ", "b'`", "__c0"]),
        FIRST + timedelta(milliseconds=draw.randrange(20) * 1000),
        draw.choice([0, 1, -1, 2**31 - 2, -(2**31)]),
        draw.choice([0, 7, 2**60, -(2**60)]),
        draw.choice([Decimal("0.00"), Decimal("9" * 25 + ".99"), Decimal("-0.01")]),
        draw.choice([0.0, -0.0, 1.5, math.nan, math.inf]),
        draw.choice([True, False]),
    )
    return tuple(None if draw.random() < 0.15 else value for value in values)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("append_only", [False, True])
def test_what_is_added_up_is_what_spark_says(sessions: SparkSessions, size: str, append_only: bool) -> None:
    properties = " WITH ('append_only' = 'true')" if append_only else ""
    table = f"CREATE TABLE r ({COLUMNS}){properties};"
    program = Compared(table + VIEWS + (EXTREMES if append_only else ""), sessions, {"r": row}, seed=7, limits=SIZES[size])
    program.step(20)
    program.step(8, deletes=6)
    program.step(0, deletes=3)
    program.step(12, deletes=20)


@pytest.mark.core
@pytest.mark.parametrize("item", ["SUM(b)", "SUM(b) > 0", "CASE WHEN SUM(b) IS NULL THEN k ELSE -1 END"])
def test_a_sum_that_does_not_fit_is_an_error(sessions: SparkSessions, item: str) -> None:
    text = f"CREATE TABLE r (k INTEGER, b BIGINT); CREATE VIEW v AS SELECT k, {item} AS b FROM r GROUP BY k;"
    rows = iter([(1, 2**63 - 1), (2, 1), (1, 1)])
    program = Compared(text, sessions, {"r": lambda _: next(rows)}, limits=SIZES["added up"])
    program.step(2)
    with pytest.raises(StepError, match="9223372036854775808"):
        program.step(1)


def test_a_sum_of_squares_that_does_not_fit_is_an_error(sessions: SparkSessions) -> None:
    text = "CREATE TABLE r (k INTEGER, d DECIMAL(19, 4)); CREATE VIEW v AS SELECT k, STDDEV(d) AS s FROM r GROUP BY k;"
    rows = iter([(1, Decimal("9" * 15 + ".9999")), (2, Decimal(1)), (2, Decimal(3)), (1, Decimal("9" * 15 + ".9999"))])
    program = Compared(text, sessions, {"r": lambda _: next(rows)})
    program.step(3)
    with pytest.raises(StepError, match=r"(?i)overflow|cannot be represented"):
        program.step(1)


def test_expressions_of_few_rows_are_evaluated_with_the_groups(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    added_up: list[bool] = []
    totals = noted(united_totals, lambda _, batch: added_up.append(batch is not None))
    monkeypatch.setattr(accumulate, "united_totals", totals)
    query = "CREATE VIEW v AS SELECT UPPER(s) AS s, COUNT(*) AS c FROM r GROUP BY UPPER(s);"
    program = Compared(f"CREATE TABLE r ({COLUMNS});{query}", sessions, {"r": row}, seed=1, limits=Limits(tiny=20))
    program.step(20)
    program.step(0, deletes=3)
    assert added_up == []
    program.step(21)
    program.step(1)
    program.step(18, deletes=3)
    assert added_up == [True, True]
