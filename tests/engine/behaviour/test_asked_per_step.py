"""How often a step asks Spark for rows, by a job or in the driver. Each time costs milliseconds: none may be added unnoticed."""

from __future__ import annotations

import itertools
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.jobs import begin_jobs, cancel_jobs, started_jobs
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.step import Step
from tests.engine.asked import asked_of_spark
from tests.engine.programs import Running
from tests.engine.sizes import SIZES

QUERIES = {
    "linear": "select k, v + 1 as v from {a} where v > 0",
    "union": "select k, v from {a} union all select k, w from {b}",
    "join": "select a.k, a.v, b.w from {a} a join {b} b on a.k = b.k",
    "threeway": "select a.k, a.v, b.w, c.w as u from {a} a join {b} b on a.k = b.k join {b} c on c.w = b.w",
    "accumulators": "select k, sum(v) as s, count(*) as n from {a} group by k",
    "touched": "select k, max(v) as m from {a} group by k",
    "distinct": "select distinct k from {a}",
    "outer": "select a.k, a.v, b.w from {a} a left join {b} b on a.k = b.k",
    "anti": "select k, v from {a} where not exists (select 1 from {b} b where b.k = {a}.k)",
    "window": "select k, v, row_number() over (partition by k order by v) as n from {a}",
}
ASKED = {
    # Not for rows that find each other by columns.
    "small": {name: 1 for name in QUERIES} | {"join": 0, "threeway": 0},
    # A broadcast counts as a job of its own.
    "narrow": {
        "linear": 1,
        "union": 1,
        "join": 2,
        "threeway": 6,
        "accumulators": 2,
        "touched": 3,
        "distinct": 2,
        "outer": 6,
        "anti": 6,
        "window": 4,
    },
}
"""At most so often when the first table of a view changes by a row."""

numbers = itertools.count()


@pytest.fixture(scope="module")
def compiled(sessions: SparkSessions) -> Program:
    statements = []
    for name, query in QUERIES.items():
        one, other = f"{name}_a", f"{name}_b"
        statements.append(f"create table {one} (k int, v int); create table {other} (k int, w int);")
        statements.append(f"create view {name} as {query.format(a=one, b=other)};")
    return compile_program("\n".join(statements), sessions)


@pytest.mark.parametrize("size", ASKED)
def test_a_change_of_one_row_asks_spark_seldom(compiled: Program, sessions: SparkSessions, size: str) -> None:
    running = Running("", sessions, compiled=compiled, limits=SIZES[size])
    for name in QUERIES:
        running.step(running.changes(f"{name}_a", (1, 5), (2, 6)), running.changes(f"{name}_b", (1, 7), (2, 8), (3, 9)))
    context = running.sessions.small.sparkContext
    taken = {}
    for name in QUERIES:
        before = asked_of_spark(context)
        running.insert(f"{name}_a", (1, 50 + next(numbers)))
        taken[name] = asked_of_spark(context) - before
    assert {name: times for name, times in taken.items() if times > ASKED[size][name]} == {}, taken
    running.circuit.close()


@pytest.mark.core
def test_small_steps_start_no_job(compiled: Program, sessions: SparkSessions) -> None:
    running = Running("", sessions, compiled=compiled)
    for name in QUERIES:
        running.step(running.changes(f"{name}_a", (1, 5), (2, 6)), running.changes(f"{name}_b", (1, 7), (2, 8), (3, 9)))
    before = started_jobs(running.sessions.small.sparkContext)
    for name in QUERIES:
        running.insert(f"{name}_a", (1, 50 + next(numbers)))
    assert started_jobs(running.sessions.small.sparkContext) == before
    running.circuit.close()


@pytest.mark.parametrize(("size", "jobs"), [("small", 0), ("large", 4)])
def test_views_that_need_nothing_of_each_other_are_under_way_at_once_and_in_the_callers_job_group(
    sessions: SparkSessions, size: str, jobs: int
) -> None:
    views = "".join(f"create view v{number} as select k + {number} as k from t where v > {number};" for number in range(4))
    running = Running(f"create table t (k int, v int); {views}", sessions, limits=SIZES[size])
    context, group = sessions.small.sparkContext, str(uuid.uuid4())

    def insert() -> Step:
        begin_jobs(context, group, "views at once")
        return running.insert("t", (1, 100))

    # A thread of its own, whose group ends with it.
    with ThreadPoolExecutor(1) as threads:
        before = asked_of_spark(context)
        step = threads.submit(insert).result()
        assert asked_of_spark(context) - before >= 4
        assert min(4, len(context.statusTracker().getJobIdsForGroup(group))) == jobs
        assert [figures.view for figures in step.stats.operators] == ["v0", "v1", "v2", "v3"]
        assert {name: delta.to_arrow()["k"].to_pylist() for name, delta in step.view_deltas.items()} == {
            f"v{number}": [1 + number] for number in range(4)
        }
        cancel_jobs(context, group)
        with pytest.raises(StepError, match=r"(?i)cancelled"):
            threads.submit(insert).result()
    running.circuit.close()
