"""Recursive views on the engine, compared after every step with fixed points computed in Python."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.operators import recursive
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.sessions import RECURSION_LEVELS, SparkSessions
from airflow_pipelines.rows.changes import Op
from tests.engine.asked import asked_of_spark
from tests.engine.programs import Running, emitted
from tests.engine.sizes import SIZES

Pair = tuple[int, int]

EDGES = "create table edges (x int, y int) with ('materialized' = 'true');\n"
CLOSURE = (
    EDGES
    + """declare recursive view closure(x int, y int);
create materialized view closure as select x, y from edges union select c.x, e.y from closure c join edges e on c.y = e.x;
"""
)
SQUARE = (
    EDGES
    + """declare recursive view closure(x int, y int);
create view hop as select a.x, b.y from closure a join closure b on a.y = b.x;
create materialized view closure as (select * from edges) union (select distinct * from hop);
create materialized view pairs as select count(*) as n from hop;
"""
)
PARITY = (
    EDGES
    + """declare recursive view odd(x int, y int);
declare recursive view even(a int, b int);
create materialized view odd as select * from edges union all select e.a, s.y from even e join edges s on e.b = s.x;
create materialized view even(a, b) as select o.x, s.y from odd o join edges s on o.y = s.x;
create materialized view both_ways as select o.x, o.y from odd o join even e on o.x = e.a and o.y = e.b;
"""
)
REACH = (
    EDGES
    + """declare recursive view reach(x int, y int, n int);
create local view reach as select distinct x, y, 1 as n from edges
    union all select r.x, e.y, r.n + 1 from reach r, edges e where r.y = e.x and r.n < 3;
create materialized view nearest as select x, y, min(n) as n from reach group by x, y;
"""
)
PATHS = (
    EDGES
    + """create materialized view paths as
    with recursive roots as (select x from edges except select y from edges),
    path(x, y, n) as (
        select e.x, e.y, 1 from edges e join roots r on e.x = r.x
        union all
        select p.x, e.y, p.n + 1 from path p join edges e on p.y = e.x where p.n < 4)
    select x, y, n, count(*) as times from path group by x, y, n;
"""
)


def closure(edges: Iterable[Pair]) -> set[Pair]:
    """All pairs with a path of edges between them."""
    found = set(edges)
    while True:
        more = found | {(a, d) for a, b in found for c, d in found if b == c}
        if more == found:
            return found
        found = more


def walks(edges: Iterable[Pair], longest: int) -> set[tuple[int, int, int]]:
    """Pairs with the lengths of their walks up to ``longest``."""
    steps = set(edges)
    found = {(x, y, 1) for x, y in steps}
    for length in range(1, longest):
        found |= {(a, d, length + 1) for a, b, n in found if n == length for c, d in steps if b == c}
    return found


Moves = list[tuple[Op, int, int]]

_moves = st.lists(
    st.lists(st.tuples(st.sampled_from([Op.INSERT, Op.INSERT, Op.DELETE]), st.integers(0, 4), st.integers(0, 4)), max_size=4),
    min_size=3,
    max_size=4,
)


def _stream(seed: int) -> list[Moves]:
    """Steps that build circles, cut them, and close them again, and some at random."""
    draw = random.Random(seed)
    moves = [(Op.INSERT, 0, 1), (Op.INSERT, 1, 2), (Op.INSERT, 2, 0), (Op.INSERT, 2, 3)]
    some = [(draw.choice([Op.INSERT, Op.DELETE]), draw.randrange(4), draw.randrange(5)) for _ in range(4)]
    return [moves, [(Op.DELETE, 2, 0), (Op.INSERT, 3, 4)], some, [(Op.DELETE, 0, 1), (Op.INSERT, 3, 0)]]


def _apply(running: Running, edges: Counter[Pair], moves: Moves) -> None:
    """One step with the moves that make sense: only edges that are there are deleted."""
    changes = []
    for op, x, y in moves:
        if op is Op.DELETE and not edges[x, y]:
            continue
        edges[x, y] += 1 if op is Op.INSERT else -1
        changes.append(running.changes("edges", (x, y), op=op))
    running.step(*changes)


def _reopened(running: Running) -> None:
    """What a checkpoint and a restart do."""
    manifest = json.loads(json.dumps(running.circuit.snapshot.flush(running.store).to_manifest()))
    running.circuit.close()
    running.circuit = Circuit(running.program, running.sessions, running.store)
    running.circuit.restore(Snapshot.from_manifest(manifest, running.store))


def _compiled(text: str, sessions: SparkSessions, strategies: dict[str, str]) -> Running:
    running = Running(text, sessions)
    found = {stage.relation: stage.strategy for plan in running.program.plans.values() for stage in plan.stages}
    assert found | strategies == found
    return running


def _check_closure(program: Running, stream: list[Moves]) -> None:
    running = Running("", program.sessions, compiled=program.program)
    edges: Counter[Pair] = Counter()
    for number, moves in enumerate(stream):
        _apply(running, edges, moves)
        assert running.rows("closure") == sorted(closure(+edges), key=repr)
        if number == 1:
            _reopened(running)
        running.circuit.maintain()


def test_closures_follow_random_edges(sessions: SparkSessions) -> None:
    program = _compiled(CLOSURE, sessions, {"closure": "recursion"})

    @settings(max_examples=3, deadline=None)
    @given(_moves)
    def check(stream: list[Moves]) -> None:
        _check_closure(program, stream)

    check()


@pytest.mark.core("small--1-4")
@pytest.mark.parametrize(("size", "few", "steps"), [("small", -1, 4), ("looked up", 1000, 4), ("narrow", 1000, 2), ("mixed", 2, 2)])
def test_closures_in_all_sizes(sessions: SparkSessions, size: str, few: int, steps: int) -> None:
    # Without an allowance of few rows, deletions from small closures are computed anew.
    limits = dataclasses.replace(SIZES[size], few_losses=few)
    _check_closure(Running(CLOSURE, sessions, limits=limits), _stream(few)[:steps])


def test_views_between_recursive_ones_are_part_of_the_recursion(sessions: SparkSessions) -> None:
    running = _compiled(SQUARE, sessions, {"closure": "recursion", "hop": "join"})
    edges: Counter[Pair] = Counter()
    for moves in _stream(3):
        _apply(running, edges, moves)
        found = closure(+edges)
        assert set(running.rows("closure")) == found
        assert running.rows("pairs") == [(sum(1 for _, b in found for c, _ in found if b == c),)]


def test_mutually_recursive_views(sessions: SparkSessions) -> None:
    running = _compiled(PARITY, sessions, {"odd$r": "recursion"})
    full = Running("", sessions, "full", running.program)
    edges: Counter[Pair] = Counter()
    other: Counter[Pair] = Counter()
    for number, moves in enumerate(_stream(7)[:3]):
        _apply(running, edges, moves)
        found = walks(+edges, 2 * 25)
        odd, even = ({(x, y) for x, y, n in found if n % 2 == parity} for parity in (1, 0))
        assert set(running.rows("odd")) == odd
        assert set(running.rows("even")) == even
        assert set(running.rows("both_ways")) == odd & even
        if number == 0:
            _apply(full, other, moves)
            assert [full.rows(name) for name in ("odd", "even")] == [running.rows(name) for name in ("odd", "even")]


def test_bounded_lengths_and_what_is_made_of_them(sessions: SparkSessions) -> None:
    running = _compiled(REACH, sessions, {"reach": "recursion"})
    edges: Counter[Pair] = Counter()
    for moves in _stream(3):
        _apply(running, edges, moves)
        shortest: dict[Pair, int] = {}
        for x, y, n in sorted(walks(+edges, 3), key=lambda walk: walk[2]):
            shortest.setdefault((x, y), n)
        assert running.rows("nearest") == sorted(((*pair, n) for pair, n in shortest.items()), key=repr)


def test_a_recursive_query_counts_rows_as_often_as_spark_does(sessions: SparkSessions) -> None:
    running = _compiled(PATHS, sessions, {"paths$r2": "recursion"})
    full = Running("", sessions, "full", running.program)
    for op, rows in (
        (Op.INSERT, [(0, 1), (1, 2), (1, 2), (2, 3)]),
        (Op.INSERT, [(9, 0), (0, 2), (2, 1)]),
        (Op.DELETE, [(9, 0), (2, 1), (1, 2)]),
    ):
        steps = [each.step(each.changes("edges", *rows, op=op)) for each in (running, full)]
        assert running.rows("paths") == full.rows("paths")
        assert emitted(steps[0], "paths") == emitted(steps[1], "paths")
        if op is Op.DELETE:
            _reopened(running)
    assert {(0, 3, 3, 1), (0, 3, 2, 1)} <= set(running.rows("paths"))


def test_one_query_recomputed_by_spark_reaches_further_than_its_own_limit(sessions: SparkSessions) -> None:
    text = (
        "create table t (n int) with ('materialized' = 'true');"
        "create materialized view v as select * from (with recursive r as"
        " (select n, 0 as i from t union all select n, i + 1 from r where i < 150) select max(i) as m from r);"
    )
    running = Running(text, sessions)
    running.insert("t", (1,))
    assert running.rows("v") == [(150,)]


def test_a_recursion_that_is_not_linear_is_recomputed_round_by_round(sessions: SparkSessions) -> None:
    text = (
        EDGES
        + """create table stops (x int) with ('materialized' = 'true');
        declare recursive view closure(x int, y int);
        create materialized view closure as select x, y from edges
            union (select c.x, e.y from closure c join edges e on c.y = e.x except select x, x from stops);"""
    )
    running = _compiled(text, sessions, {"closure": "recursion by recomputing"})
    running.insert("edges", (1, 2), (2, 1))
    assert running.rows("closure") == [(1, 1), (1, 2), (2, 1), (2, 2)]
    step = running.insert("stops", (1,))
    assert emitted(step, "closure") == [(1, 1, -1)]
    running.step(running.changes("stops", (1,), op=Op.DELETE), running.changes("edges", (2, 1), op=Op.DELETE))
    assert running.rows("closure") == [(1, 2)]


@pytest.mark.core
def test_recursion_from_constants_starts_in_the_first_step(sessions: SparkSessions) -> None:
    text = """declare recursive view n(i int not null);
    create materialized view n as select 1 as i union select i * 2 from n where i < 20;"""
    running = Running(text, sessions)
    assert emitted(running.step(), "n") == [(1, 1), (16, 1), (2, 1), (32, 1), (4, 1), (8, 1)]
    assert emitted(running.step(), "n") == []


@pytest.mark.core
def test_a_declared_view_without_recursion_is_a_set(sessions: SparkSessions) -> None:
    running = Running(
        EDGES + "declare recursive view xs(x int); create materialized view xs as select x from edges where y > 0;", sessions
    )
    running.insert("edges", (1, 1), (1, 2), (2, 0))
    assert running.rows("xs") == [(1,)]
    assert emitted(running.delete("edges", (1, 1)), "xs") == []
    assert emitted(running.delete("edges", (1, 2)), "xs") == [(1, -1)]


@pytest.mark.core
def test_a_small_insertion_into_a_large_closure_follows_only_the_new_rows(
    sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(CLOSURE, sessions)
    # Thirty stars: many rows, but no long ways.
    running.insert("edges", *((hub, 100 + 50 * hub + leaf) for hub in range(30) for leaf in range(50)))
    running.insert("edges", (-1, 0))
    sizes: list[int] = []
    derived = recursive._Fixpoint._derived

    def spied(*arguments: object) -> object:
        batch = derived(*arguments)  # type: ignore[arg-type]
        sizes.append(batch.rows)
        return batch

    monkeypatch.setattr(recursive._Fixpoint, "_derived", spied)
    context = sessions.small.sparkContext
    before = asked_of_spark(context)
    step = running.insert("edges", (-2, -1))
    asked = asked_of_spark(context) - before
    assert len(emitted(step, "closure")) == 52
    assert sizes == [1, 1, 50, 0], "the edge; one step on; the star; nothing more"
    assert asked == len(sizes), "once a round"
    sizes.clear()
    step = running.delete("edges", (-2, -1))
    assert len(emitted(step, "closure")) == 52
    assert sum(sizes) <= 60


@pytest.mark.core
def test_a_recursion_without_an_end_fails_its_step_and_names_the_limit(sessions: SparkSessions) -> None:
    text = """create table t (n int) with ('materialized' = 'true');
    declare recursive view counted(n int);
    create materialized view counted as select n from t union select n + 1 from counted where n > 0;"""
    running = Running(text, sessions)
    running.insert("t", (0,))
    usual = sessions.small.conf.get(RECURSION_LEVELS)
    sessions.small.conf.set(RECURSION_LEVELS, "20")
    try:
        with pytest.raises(StepError) as failed:
            running.insert("t", (1,))
    finally:
        sessions.small.conf.set(RECURSION_LEVELS, usual or "1000")
    assert failed.value.view == "counted"
    assert failed.value.condition == "RECURSION_LEVEL_LIMIT_EXCEEDED"
    assert f"after 20 rounds, the limit that {RECURSION_LEVELS} sets" in failed.value.message
    assert running.rows("counted") == [(0,)]
    assert emitted(running.insert("t", (-5,)), "counted") == [(-5, 1)]


@pytest.mark.core
def test_a_bootstrapped_recursive_view_gets_its_fixed_point(sessions: SparkSessions) -> None:
    running = Running(EDGES + "create view e as select * from edges;", sessions)
    running.insert("edges", (1, 2), (2, 3), (3, 1))
    running.delete("edges", (3, 1))
    manifest = json.loads(json.dumps(running.circuit.snapshot.flush(running.store).to_manifest()))
    changed = Running(PARITY, sessions)
    changed.store = running.store
    changed.circuit = Circuit(changed.program, sessions, running.store)
    changed.circuit.restore(Snapshot.from_manifest(manifest, running.store))
    step = changed.circuit.bootstrap({"odd", "even", "both_ways"})
    changed.circuit.publish(step)
    assert emitted(step, "odd") == [(1, 2, 1), (2, 3, 1)]
    assert emitted(step, "even") == [(1, 3, 1)]
    assert emitted(changed.insert("edges", (3, 4)), "odd") == [(1, 4, 1), (3, 4, 1)]
