from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal

import pytest

from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.changes import Op
from tests.engine.asked import asked_of_spark
from tests.engine.programs import Running, emitted
from tests.engine.sizes import SIZES

GRADES = """
create table students (id bigint, name varchar) with ('materialized' = 'true');
create table grades (student_id bigint, class string, grade decimal(5,2), class_date date) with ('materialized' = 'true');
create view avg_grade as select student_id, class, avg(grade) as grade from grades
    where class_date between date '2025-09-01' and date '2025-12-15' group by student_id, class;
create materialized view avg_grade_enriched as
    select s.name, a.class, a.grade from avg_grade a join students s on s.id = a.student_id;
create view total as select count(*) as n, sum(grade) as s from grades;
"""
DAY = datetime.date(2025, 10, 1)


@pytest.fixture(scope="module")
def grades(sessions: SparkSessions) -> Running:
    return Running(GRADES, sessions)


def _fresh(running: Running) -> Running:
    running.circuit = Circuit(running.program, running.sessions, running.store)
    return running


@pytest.mark.core
def test_chained_views_follow_a_change_and_have_sparks_scale(grades: Running) -> None:
    running = _fresh(grades)
    first = running.step(
        running.changes("students", (1, "Alice"), (2, "Bob")),
        running.changes("grades", (1, "algebra", Decimal(97), DAY), (2, "algebra", Decimal(85), datetime.date(2026, 1, 1))),
    )
    assert [name for name, _ in running.program.plans["avg_grade"].columns] == ["student_id", "class", "grade"]
    assert running.rows("avg_grade_enriched") == [("Alice", "algebra", Decimal("97.00"))]
    assert str(running.rows("avg_grade_enriched")[0][2]) == "97.000000"
    assert emitted(first, "total") == [(2, Decimal("182.00"), 1)]
    step = running.insert("grades", (1, "algebra", Decimal(90), DAY))
    assert emitted(step, "avg_grade") == [(1, "algebra", Decimal("93.50"), 1), (1, "algebra", Decimal("97.00"), -1)]
    assert {figures.strategy for figures in step.stats.operators} == {"accumulators", "join"}
    gone = running.delete("grades", (1, "algebra", Decimal(97), DAY), (1, "algebra", Decimal(90), DAY))
    assert emitted(gone, "avg_grade_enriched") == [("Alice", "algebra", Decimal("93.50"), -1)]


@pytest.mark.core
def test_a_step_says_why_it_has_recomputed_a_view(sessions: SparkSessions) -> None:
    text = """create table a (x int);
create table b (y int) with ('materialized' = 'true');
create view pairs as
    select a.x, B.y from a
    left join b on a.x <= B.Y;
create view met as select x from a where exists (select 1 from b where b.y < a.x);
"""
    running = Running(text, sessions)
    parts = [(part["view"], part["expression"], part["start_line_number"]) for part in running.program.info.to_wire()["recomputed"]]
    assert parts == [("pairs", "a.x <= B.Y", 5), ("met", "b.y < a.x", 6)]
    running.step(running.changes("a", (1,)), running.changes("b", (2,)))
    wire = running.insert("b", (0,)).stats.to_wire()["operators"]
    assert {each["view"]: (each["strategy"], each["reason"]["expression"]) for each in wire} == {
        "pairs": ("join by recomputing", "a.x <= B.Y"),
        "met": ("subquery by recomputing", "b.y < a.x"),
    }
    # A row of the other side affects its own value alone.
    assert {each.view: (each.strategy, each.reason) for each in running.insert("a", (5,)).stats.operators} == {
        "pairs": ("join by touched keys", None),
        "met": ("subquery by touched keys", None),
    }


@pytest.mark.core
def test_a_total_has_one_row_from_the_first_step_on(grades: Running) -> None:
    running = _fresh(grades)
    assert emitted(running.step(), "total") == [(0, None, 1)]
    assert emitted(running.step(), "total") == []
    assert emitted(running.insert("grades", (1, "x", Decimal(1), DAY)), "total") == [(0, None, -1), (1, Decimal("1.00"), 1)]
    assert emitted(running.delete("grades", (1, "x", Decimal(1), DAY)), "total") == [(0, None, 1), (1, Decimal("1.00"), -1)]


@pytest.mark.core
def test_readers_see_a_step_only_when_it_is_published(grades: Running) -> None:
    running = _fresh(grades)
    step = running.circuit.step([running.changes("students", (1, "Alice"))])
    assert running.rows("students") == []
    before = running.circuit.snapshot
    running.circuit.publish(step)
    assert running.rows("students") == [(1, "Alice")]
    assert running.circuit.relation("students", before).count() == 0


@pytest.mark.core
def test_a_view_bootstrapped_later_gets_its_full_contents_and_others_emit_nothing(grades: Running, sessions: SparkSessions) -> None:
    running = _fresh(grades)
    running.step(running.changes("students", (1, "Alice")), running.changes("grades", (1, "a", Decimal(80), DAY)))
    manifest = json.loads(json.dumps(running.circuit.snapshot.flush(running.store).to_manifest()))
    changed = Running(
        GRADES + "create view names as select a.class, t.n from avg_grade a join total t on t.n = a.student_id;", sessions
    )
    changed.circuit = Circuit(changed.program, sessions, running.store)
    changed.circuit.restore(Snapshot.from_manifest(manifest, running.store))
    step = changed.circuit.bootstrap({"names"})
    changed.circuit.publish(step)
    assert set(step.view_deltas) == {"names"}
    assert emitted(step, "names") == [("a", 1, 1)]
    after = changed.insert("grades", (1, "b", Decimal(60), DAY))
    assert emitted(after, "names") == [("a", 1, -1)]
    assert emitted(after, "avg_grade") == [(1, "b", Decimal("60.00"), 1)]


@pytest.mark.core
def test_a_failing_step_names_view_and_condition_and_leaves_nothing(sessions: SparkSessions) -> None:
    running = Running(
        "create table t (a int, b int) with ('materialized' = 'true'); create view ratio as select a div b as r from t;", sessions
    )
    running.insert("t", (4, 2))
    with pytest.raises(StepError) as failed:
        running.insert("t", (1, 0))
    assert failed.value.view == "ratio"
    assert failed.value.condition == "DIVIDE_BY_ZERO"
    assert "Division by zero" in failed.value.message
    assert running.circuit.snapshot.step == 1
    assert running.circuit.progress == (0, 0), "no operator is being evaluated any more"
    assert running.rows("t") == [(4, 2)]
    assert emitted(running.insert("t", (9, 3)), "ratio") == [(3, 1)]


@pytest.mark.core
def test_many_small_steps_leave_few_batches(sessions: SparkSessions) -> None:
    running = Running("create table t (a int) with ('materialized' = 'true');", sessions)
    for number in range(30):
        running.insert("t", (number,))
        running.circuit.maintain()
    assert len(running.circuit.snapshot.traces["t"].batches) <= 9
    assert running.rows("t") == sorted(((number,) for number in range(30)), key=repr)


@pytest.mark.core
def test_compaction_leaves_one_batch_of_everything(grades: Running) -> None:
    running = _fresh(grades)
    for number in range(3):
        running.step(running.changes("grades", (number, "algebra", Decimal(90), DAY)))
    before = running.rows("grades")
    assert any(len(trace.batches) > 1 for trace in running.circuit.snapshot.traces.values())
    assert running.circuit.compact()
    snapshot = running.circuit.snapshot
    traces = [*snapshot.traces.values(), *(trace for kept in snapshot.states.values() for trace in kept.values())]
    assert max(len(trace.batches) for trace in traces) == 1
    assert running.rows("grades") == before
    assert not running.circuit.compact()
    after = running.insert("grades", (1, "algebra", Decimal(70), DAY))
    assert emitted(after, "total") == [(3, Decimal("270.00"), -1), (4, Decimal("340.00"), 1)]


@pytest.mark.core
def test_types_that_cannot_be_grouped_simply(sessions: SparkSessions) -> None:
    running = Running(
        "create table t (k int not null primary key, m map<varchar, int>, l int array);"
        "create materialized view v as select m, count(*) as n from t group by m;",
        sessions,
    )
    running.insert("t", (1, {"a": 1}, [1]), (2, {"a": 1}, None))
    assert running.rows("v") == [({"a": 1}, 2)]
    step = running.insert("t", (1, {"a": 2}, [1]))
    assert running.rows("v") == [({"a": 1}, 1), ({"a": 2}, 1)]
    assert len(emitted(step, "v")) == 3
    assert emitted(running.insert("t", (1, {"a": 2}, [1])), "v") == []


@pytest.mark.core
def test_an_unknown_strategy_is_refused(grades: Running) -> None:
    with pytest.raises(ValueError, match="auto, incremental, full"):
        Circuit(grades.program, grades.sessions, grades.store, "fast")


@pytest.mark.core
def test_a_total_of_non_linear_aggregates_starts_over_nothing(sessions: SparkSessions) -> None:
    running = Running(
        "create table t (a int, o boolean); create view v as select max(a) as m, count(*) filter (where o) as n from t;", sessions
    )
    assert emitted(running.step(), "v") == [(None, 0, 1)]
    assert emitted(running.insert("t", (3, True), (5, None)), "v") == [(5, 1, 1), (None, 0, -1)]
    assert emitted(running.delete("t", (5, None)), "v") == [(3, 1, 1), (5, 1, -1)]


@pytest.mark.core(slow_because="it merges batches many times")
def test_an_update_that_leaves_the_number_of_rows_survives_merging(grades: Running) -> None:
    running = _fresh(grades)
    running.insert("grades", (1, "algebra", Decimal(10), DAY), (2, "algebra", Decimal(50), DAY))
    # What a large state looks like after a restart: its rows are only in files.
    snapshot = running.circuit.snapshot.flush(running.store)
    states = {
        relation: {name: replace(state, batches=tuple(replace(batch, table=None) for batch in state.batches))}
        for (relation, name), state in snapshot.all_states().items()
    }
    running.circuit.restore(replace(snapshot, states=states))
    for grade in range(10, 24):
        running.step(
            running.changes("grades", (1, "algebra", Decimal(grade), DAY), op=Op.DELETE),
            running.changes("grades", (1, "algebra", Decimal(grade + 1), DAY)),
        )
        running.circuit.maintain()
    step = running.insert("grades", (1, "algebra", Decimal(26), DAY))
    assert emitted(step, "avg_grade") == [(1, "algebra", Decimal("24.00"), -1), (1, "algebra", Decimal("25.00"), 1)]
    assert emitted(step, "total") == [(2, Decimal("74.00"), -1), (3, Decimal("100.00"), 1)]


@pytest.mark.core("views0", "views2")
@pytest.mark.parametrize("views", [{"avg_grade"}, {"avg_grade_enriched"}, {"total"}, {"avg_grade", "total"}])
def test_bootstrapping_any_views_gives_their_contents(grades: Running, views: set[str]) -> None:
    running = _fresh(grades)
    running.step(
        running.changes("students", (1, "Alice"), (2, "Bob")),
        running.changes("grades", (1, "a", Decimal(80), DAY), (1, "a", Decimal(90), DAY), (2, "b", Decimal(70), DAY)),
    )
    contents = {
        "avg_grade": [(1, "a", Decimal("85.00"), 1), (2, "b", Decimal("70.00"), 1)],
        "avg_grade_enriched": [("Alice", "a", Decimal("85.00"), 1), ("Bob", "b", Decimal("70.00"), 1)],
        "total": [(3, Decimal("240.00"), 1)],
    }
    step = running.circuit.bootstrap(views)
    assert {name: emitted(step, name) for name in step.view_deltas} == {name: contents[name] for name in views}
    running.circuit.publish(step)
    after = running.insert("grades", (2, "b", Decimal(90), DAY))
    assert emitted(after, "avg_grade_enriched") == [("Bob", "b", Decimal("70.00"), -1), ("Bob", "b", Decimal("80.00"), 1)]


def test_a_step_asks_spark_equally_often_however_many_came_before(grades: Running) -> None:
    running = _fresh(grades)
    running.insert("students", *((number, f"n{number}") for number in range(20)))
    context = running.sessions.small.sparkContext
    asked = []
    for number in range(10):
        before = asked_of_spark(context)
        running.insert("grades", (number, "algebra", Decimal(number), DAY), (1, "algebra", Decimal(50), DAY))
        running.circuit.maintain()
        asked.append(asked_of_spark(context) - before)
    # Not for the join: its rows find each other in the process.
    assert asked == [2] * 10


EVENTS = """
create table events (k int, v int) with ('append_only' = 'true');
create table counted (k int) with ('append_only' = 'true');
create table shown (k int) with ('append_only' = 'true', 'materialized' = 'true');
create table plain (k int);
create view ratios as select k, 100 / v as ratio from events;
create view totals as select k, sum(v) as v from events group by k;
create view pairs as select a.k from counted a join counted b on a.k = b.k;
create view others as select k from shown union all select k from plain;
"""


@pytest.mark.core
def test_what_nobody_can_need_again_is_not_kept(sessions: SparkSessions) -> None:
    running = Running(EVENTS, sessions)
    for name in ("counted", "shown", "plain"):
        running.insert(name, (1,))
    running.insert("events", (1, 4), (1, 5))
    assert {"counted", "shown", "plain"} <= running.circuit.snapshot.traces.keys()
    assert not {"events", "ratios", "totals"} & running.circuit.snapshot.traces.keys()
    assert emitted(running.insert("events", (1, 1)), "totals") == [(1, 10, 1), (1, 9, -1)]
    running.circuit.close()


def test_many_rows_that_nobody_takes_are_computed_and_counted_only(sessions: SparkSessions) -> None:
    running, asked = Running(EVENTS, sessions, limits=SIZES["large"]), []

    def has_consumers(view: str) -> bool:
        asked.append(view)
        return view == "totals"

    running.circuit.has_consumers = has_consumers
    step = running.insert("events", (1, 4), (1, 5), (2, 10))
    assert {figures.view: figures.rows_out for figures in step.stats.operators} == {"ratios": 3, "totals": 2}
    assert emitted(step, "totals") == [(1, 9, 1), (2, 10, 1)]
    assert "ratios" not in step.view_deltas
    assert "events" not in asked, "only views can have takers"
    with pytest.raises(StepError, match="ratios"):
        running.insert("events", (1, 0))
    running.circuit.has_consumers = lambda _: True
    assert emitted(running.insert("events", (1, 2)), "ratios") == [(1, 50.0, 1)]
    running.circuit.close()
