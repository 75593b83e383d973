"""Contents that are merged while they are read are the same as when all rows are added up, whatever their types and changes.

``MERGE_EXAMPLES`` makes it search longer.
"""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.lookup.merge_on_read import merge_on_read, merge_split, split_changes
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.zsets import WEIGHT
from tests.engine.programs import Running
from tests.engine.random_changes import Tables, changes, exact, multiset, real_changes, row_of
from tests.engine.random_programs import TABLES, ddl

EXAMPLES = int(os.environ.get("MERGE_EXAMPLES", "4"))
FILES = Limits(small_rows=4, held_bytes=-1, small_input=6)
"""Few rows go to files."""
NESTED = """create table n (id int, at time, span interval day to second, months interval year to month,
    tz timestamp with time zone, bytes varbinary, day date, a int array, aa varchar array array, r row(x int, y row(z double)),
    m map<int, varchar>, mm map<varchar, map<int, real>>, ma map<int, varchar> array, rm row(m map<int, int>, v variant),
    va variant array, mv map<int, variant>, v variant, d decimal(9, 2), f real, u bigint unsigned, i uuid)
    with ('materialized' = 'true');
    create materialized view only_nested as select ma, rm, va, mv, v from n;"""


def _read(running: Running, sql: str) -> Counter[tuple[Any, ...]]:
    rows = collected(running.sessions.large.sql(running.circuit.batch_views.with_views(sql)))
    return Counter(exact(row.values()) for row in rows.to_pylist())


def _check(running: Running, trace: Trace, key: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """Compare the ways to read a trace that has rows which are only inserted and others."""
    views = running.circuit.batch_views
    sql = merge_on_read(trace, key, views)
    plan = running.sessions.large.sql(f"EXPLAIN {views.with_views(sql)}").collect()[0][0]
    assert "Exchange hashpartitioning" not in plan
    found = _read(running, sql)
    assert found == _read(running, views.contents(trace))
    in_memory = (batch if batch.insert_only else Batch.in_memory(trace.schema, batch.to_arrow()) for batch in trace.batches)
    split = split_changes(part := replace(trace, batches=tuple(in_memory)), key, views)
    assert found == _read(running, merge_split(part, key, split, views))
    return found


@pytest.fixture(scope="module")
def tables(sessions: SparkSessions) -> Running:
    return Running(ddl(), sessions, limits=FILES)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_changes(tables: Running, data: st.DataObject) -> None:
    running = Running("", tables.sessions, compiled=tables.program, limits=FILES)
    contents = Tables()
    for name in TABLES:
        rows = data.draw(st.lists(row_of(name), min_size=6, max_size=20))
        # Rows that are there several times.
        running.step(*real_changes(running, (name, "insert", [*rows, *rows[:3]], []), contents))
    for parts in data.draw(st.lists(changes(), min_size=1, max_size=4)):
        # The first change of a step sees the tables as they were, so each is a step of its own.
        for part in parts:
            running.step(*real_changes(running, part, contents))
    for name, key in TABLES.items():
        trace = running.circuit.snapshot.traces[name]
        if trace.insert_only or not any(batch.insert_only for batch in trace.batches):
            continue
        _check(running, trace, key or ())
        rows = collected(running.circuit.relation(name)).to_pylist()
        assert multiset(row.values() for row in rows) == multiset(contents.rows[name])
        # A trace may have rows whose weights add up to less than nothing, and rows that are stored in many pieces.
        mixed = next(batch for batch in trace.batches if not batch.insert_only)
        for times in (-3, -1, 2):
            table = mixed.to_arrow()
            weights = pa.array([times * weight for weight in table[WEIGHT].to_pylist()], pa.int64())
            other = Batch.in_memory(trace.schema, table.set_column(table.num_columns - 1, WEIGHT, weights))
            _check(running, replace(trace, batches=(*trace.batches, other)), ())
    running.circuit.close()


def test_every_type(sessions: SparkSessions) -> None:
    running = Running(NESTED, sessions, limits=FILES)
    arrow = running.program.schemas["n"].arrow
    variant = _variants(running)

    def row(number: int) -> tuple[Any, ...]:
        some = variant[number % 3] if number % 4 else None
        values = (
            number,
            dt.time(number),
            dt.timedelta(number),
            number,
            dt.datetime(2026, 1, 1, number, tzinfo=dt.UTC),
            bytes([number]),
            dt.date(2026, 1, 1 + number),
            [number, None],
            [["x", None], None, [str(number)]],
            {"x": number, "y": {"z": [-0.0, float("nan"), None][number % 3]}},
            [(2, "b"), (1, None), (number + 3, "a")],
            [("b", [(1, -0.0)]), ("a", None)],
            [[(2, "b"), (1, "a")], None],
            {"m": [(2, 1), (1, number)], "v": some},
            [some, None, variant[0]],
            [(1, some)],
            some,
            None,
            [-0.0, 0.0, float("nan")][number % 3],
            2**64 - 1,
            "00000000-0000-0000-0000-00000000000" + str(number % 10),
        )
        nulls = tuple(None if at and (number + at) % 5 == 0 else value for at, value in enumerate(values))
        assert len(nulls) == len(arrow)
        return nulls

    rows = [row(number) for number in range(12)]
    running.insert("n", *rows, *rows[:3])
    running.delete("n", rows[0], rows[4])
    running.delete("n", rows[0], rows[5])
    running.insert("n", rows[4], rows[6])
    wanted = Counter([*range(12), 1, 2, 6]) - Counter([0, 5])
    for relation in ("n", "only_nested"):
        trace = running.circuit.snapshot.traces[relation]
        assert any(batch.table is None for batch in trace.batches)
        found = _check(running, trace, ())
        assert "__hash" in running.circuit.contents(relation, running.circuit.snapshot)
        assert found.total() == wanted.total()
        if relation == "n":
            counts: Counter[int] = Counter()
            for values, count in found.items():
                counts[values[0]] += count
            assert counts == wanted


@pytest.mark.core
def test_few_columns(sessions: SparkSessions) -> None:
    running = Running("create table n (id int, s varchar) with ('materialized' = 'true');", sessions, limits=FILES)
    rows = [(number, f"text {number}" if number % 3 else None) for number in range(12)]
    running.insert("n", *rows, *rows[:3])
    running.delete("n", rows[0], rows[4])
    running.delete("n", rows[0], rows[5])
    running.insert("n", rows[4], rows[6])
    wanted = Counter([*rows, rows[1], rows[2], rows[6]]) - Counter([rows[0], rows[5]])
    found = _check(running, running.circuit.snapshot.traces["n"], ())
    assert found == Counter({exact(row): count for row, count in wanted.items()})
    running.circuit.close()


def _variants(running: Running) -> list[dict[str, bytes]]:
    """VARIANTs that Spark tells apart, two of them with the same text."""
    made = (
        """PARSE_JSON('{"b": [1, 1.5, null], "a": "x"}')""",
        """PARSE_JSON('["2026-01-01"]')""",
        "TO_VARIANT_OBJECT(ARRAY(DATE'2026-01-01'))",
    )
    found = collected(running.sessions.small.sql(f"SELECT EXPLODE(ARRAY({', '.join(made)})) AS v"))
    values: list[dict[str, bytes]] = found["v"].to_pylist()
    return values
