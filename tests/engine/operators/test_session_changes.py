"""What is added up by session equals Spark's, and is added up without it where it may be."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from airflow_pipelines.engine.operators import affected_keys, session_changes
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared
from tests.engine.noted_ways import noted
from tests.engine.sizes import SIZES

TABLES = """
create table t (k int, s varchar, d decimal(20,2), at timestamp, n timestamp_ntz, x double, b bigint)
with ('materialized' = 'true');
"""
QUERIES = {
    "by_number": "select k, count(*) as n, session_window.start as s, session_window.end as e"
    " from t group by k, session_window(n, '10 seconds')",
    "by_several": "select session_window(at, '1 minute').end as e, d, s, count(*) as n, count(*) as m"
    " from t group by s, d, session_window(at, '1 minute')",
    "totals": "select k, session_window.end as e, sum(b) as sb, sum(d) as sd, max(s) as ms, min(at) as mi, count(x) as cx,"
    " sum(k) as sk"
    " from t group by session_window(n, '10 seconds'), k",
    "of_expressions": "select k, avg(b) as v from t group by k, session_window(n, '10 seconds')",
    "with_condition": "select k, count(*) filter (where b > 0) as c from t group by k, session_window(n, '10 seconds')",
    "of_some": "select k, count(*) as c from t group by k, session_window(n, '10 seconds') having count(*) > 1",
    "only_counts": "select count(*) as n from t group by session_window(at, '2 seconds'), s",
}
START = datetime.datetime(2025, 3, 30, 0, 59, 30)


def _row(draw: random.Random) -> tuple[Any, ...]:
    # A microsecond less than the gap, the gap, and a microsecond more; few values, so that rows are equal.
    at = START + datetime.timedelta(seconds=10 * draw.randrange(12), microseconds=draw.choice([0, 0, -1, 1]))
    return (
        draw.choice([None, 1, 2]),
        draw.choice([None, "", "a"]),
        draw.choice([None, Decimal("0.00"), Decimal("-1.50")]),
        draw.choice([None, at, at, at]),
        draw.choice([None, at, at, at]),
        draw.choice([None, 0.0, -0.0, float("nan")]),
        draw.choice([None, 1, -1, 2**40]),
    )


WITH_SPARK = 3
"""So many of the queries have expressions over groups."""


@pytest.mark.parametrize("size", ["small", "mixed", "large"])
def test_totals_by_session_equal_the_batch_answer(size: str, sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    change_of_sessions = noted(session_changes.change_of_sessions, lambda _, change: taken.append(change is not None))
    monkeypatch.setattr(affected_keys, "change_of_sessions", change_of_sessions)
    views = "".join(f"create view {name} as {query};\n" for name, query in QUERIES.items())
    compared = Compared(TABLES + views, sessions, {"t": _row}, seed=5, limits=SIZES[size])
    for inserts, deletes in ((8, 0), (6, 5), (0, 4), (60, 9)):
        compared.step(inserts, deletes)
    plans = compared.running.program.plans
    assert len(taken) == 4 * (len(QUERIES) - WITH_SPARK), plans
    assert set(taken) == {"small": {True}, "mixed": {True, False}, "large": {False}}[size]
    compared.running.circuit.close()


@pytest.mark.core
def test_times_at_both_ends_of_their_range(sessions: SparkSessions) -> None:
    last = datetime.datetime(9999, 12, 31, 23, 59, 49, 999999)
    first = datetime.datetime(1, 1, 1)
    program = f"{TABLES} create view v as {QUERIES['by_number']};"
    compared = Compared(program, sessions, {"t": lambda draw: (1, "", Decimal(0), None, draw.choice([first, last]), None, None)})
    compared.step(5)
    compared.step(3, 2)
    compared.running.circuit.close()
