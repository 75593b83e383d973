"""The TPC-H queries as views: equal to Spark's batch answer after loads, corrections and deletions, by both strategies.

``TPCH_LINEITEMS`` and ``TPCH_CHANGES`` (steps with changes) make it search longer, ``TPCH_SEED`` elsewhere. At the sizes where
much goes to files a sample of ``TPCH_SAMPLE`` queries is run; 22 are all.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, SparkSessions, sibling
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.sql.plan.ir.full import Full
from benchmarks.tpch.generator import Generator
from benchmarks.tpch.queries import NAMES, program, queries
from benchmarks.tpch.scale import Scale
from benchmarks.tpch.schema import TABLES
from tests.engine.programs import Running, only
from tests.engine.sizes import SIZES
from tests.tpch.contents import Contents

LINEITEMS = int(os.environ.get("TPCH_LINEITEMS", "600"))
CHANGES = int(os.environ.get("TPCH_CHANGES", "2"))
SEED = int(os.environ.get("TPCH_SEED", "2"))
SAMPLE = int(os.environ.get("TPCH_SAMPLE", "2"))
SCALE = Scale(LINEITEMS, seed=SEED, focus=0.7)
QUERIES = queries(SCALE)

# The fixture runs all queries at once, and counts for the test that comes first.
pytestmark = pytest.mark.timeout(1_200)

Rows = Counter[tuple[Any, ...]]


@dataclass
class History:
    """What a run of all queries gave, at some of its steps."""

    changes: list[list[TableChanges]] = field(default_factory=list)
    expected: list[dict[str, Rows]] = field(default_factory=list)
    incremental: list[dict[str, Rows]] = field(default_factory=list)
    emitted: list[dict[str, Rows]] = field(default_factory=list)
    full: list[dict[str, Rows]] = field(default_factory=list)


def _multiset(table: Any) -> Rows:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def _stored(running: Running, names: Sequence[str]) -> dict[str, Rows]:
    return {name: _multiset(running.circuit.relation(name).toArrow()) for name in names}


def _add(sums: dict[str, Rows], deltas: dict[str, Batch]) -> None:
    for name, delta in deltas.items():
        for row in delta.to_arrow().to_pylist():
            weight = row.pop("__weight")
            sums[name][tuple(row.values())] += weight


class _Batch:
    """Spark's batch answers."""

    def __init__(self, running: Running, sessions: SparkSessions, names: Sequence[str]) -> None:
        self.session = sibling(sessions.small, SMALL_CONF)
        self.queries = {name: QUERIES[name] for name in names}
        self.schemas = {name: spark_schema(running.program.schemas[name]) for name in TABLES if name in running.program.schemas}

    def answers(self, contents: Contents) -> dict[str, Rows]:
        for name in self.schemas:
            self.session.createDataFrame(contents.table(name), self.schemas[name]).createOrReplaceTempView(name)
        return {name: _multiset(self.session.sql(query).toArrow()) for name, query in self.queries.items()}


@pytest.fixture(scope="module")
def running(sessions: SparkSessions) -> Running:
    """One program with all queries: compiling them is a good part of the work."""
    return Running(program(QUERIES, NAMES), sessions)


def _follow(running: Running, sessions: SparkSessions, names: Sequence[str]) -> History:
    """Load and change rows in steps, and ask Spark after some of them."""
    full = Running("", sessions, "full", running.program)
    oracle, contents = _Batch(running, sessions, names), Contents(Generator(SCALE), random.Random(SEED))
    found, sums, waiting = History(), {name: Counter[tuple[Any, ...]]() for name in names}, []
    for number in range(2 + CHANGES):
        changes = contents.load(0.7) if number < 2 else contents.change(0.1)
        changes = [each for each in changes if each.table in running.program.tables]
        waiting += changes
        step = running.step(*changes)
        _add(sums, dict(step.view_deltas))
        # The answers of the first load and of the steps in the middle show up in the last ones.
        if number in {1, 1 + CHANGES}:
            found.expected.append(oracle.answers(contents))
            found.incremental.append(_stored(running, names))
            found.emitted.append({name: Counter({row: n for row, n in rows.items() if n}) for name, rows in sums.items()})
            found.changes.append(waiting)
            full.step(*waiting)
            found.full.append(_stored(full, names))
            waiting = []
    running.circuit.close()
    full.circuit.close()
    return found


@pytest.fixture(scope="module")
def history(running: Running, sessions: SparkSessions) -> History:
    return _follow(running, sessions, NAMES)


@pytest.mark.core
def test_a_view_equals_the_batch_answer(sessions: SparkSessions) -> None:
    history = _follow(Running(program(QUERIES, ["q3"]), sessions), sessions, ["q3"])
    assert history.emitted == history.incremental == history.full == history.expected
    assert history.expected[0] != history.expected[-1]


@pytest.mark.parametrize("query", NAMES)
def test_views_equal_the_batch_answer(history: History, query: str) -> None:
    for at, expected in enumerate(history.expected):
        assert history.incremental[at][query] == expected[query], "contents"
        assert history.emitted[at][query] == expected[query], "sum of the deltas"
        assert history.full[at][query] == expected[query], "full"


@pytest.mark.parametrize("size", [size for size in SIZES if size != "small"])
def test_views_equal_the_batch_answer_at_every_size(history: History, running: Running, sessions: SparkSessions, size: str) -> None:
    names = NAMES if size == "looked up" else random.Random(f"{SEED} {size}").sample(NAMES, min(SAMPLE, len(NAMES)))
    sized = Running("", sessions, compiled=only(running.program, names), limits=SIZES[size])
    sums = {name: Counter[tuple[Any, ...]]() for name in names}
    for changes, expected in zip(history.changes, history.expected, strict=True):
        _add(sums, dict(sized.step(*changes).view_deltas))
        for name in names:
            assert Counter({row: n for row, n in sums[name].items() if n}) == expected[name], (name, "sum of the deltas")
            assert _multiset(sized.circuit.relation(name).toArrow()) == expected[name], (name, "contents")
        sized.circuit.maintain()
    sized.circuit.close()


def test_small_data_has_answers_that_change(history: History) -> None:
    # Otherwise the comparison above would prove little. Sums over nothing are NULL.
    found = {name for answer in history.expected for name in NAMES for row in answer[name] if set(row) != {None}}
    assert found == set(NAMES)
    assert sum(history.expected[0][name] != history.expected[-1][name] for name in NAMES) >= len(NAMES) - 3


@pytest.mark.parametrize("query", NAMES)
def test_every_query_has_an_incremental_strategy(running: Running, query: str) -> None:
    plan = running.program.plans[query]
    assert [(stage.relation, stage.node.reason) for stage in plan.stages if isinstance(stage.node, Full)] == []
    strategies = [stage.strategy for stage in plan.stages]
    assert ("touched groups" in strategies) == (query in TOUCHED_GROUPS), strategies


TOUCHED_GROUPS = {
    # The smallest cost and the largest revenue follow from no sums.
    "q2",
    "q15",
}
"""The queries of which groups are computed anew; the cost of all others follows from accumulators and touched keys."""
