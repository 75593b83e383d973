"""Joins that are evaluated in the driver, compared with what Spark gives for the same query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.step import Step
from airflow_pipelines.rows.changes import Op
from tests.engine.asked import asked_of_spark
from tests.engine.programs import Running, emitted, only
from tests.engine.sizes import SIZES

TABLES = """
create table a (k int, b bigint, s varchar, d decimal(38,10), f double, r real, t timestamp, day date, y boolean, n int);
create table z (k int, b bigint, s varchar, d decimal(38,10), f double, r real, t timestamp, day date, y boolean, n int);
create table m (k smallint, v varchar);
"""
CONDITIONS = {
    **{f"by_{name}": f"a.{name} = z.{name}" for name in ("k", "b", "s", "d", "f", "r", "t", "day", "y")},
    "widths": "a.k = z.b",
    "two_columns": "a.k = z.k and a.s = z.s",
    "two_for_one": "a.k = z.k and a.n = z.k",
    "other_types": "a.k = z.d",
    "key_expression": "mod(a.b, 3) = z.k",
    "both_expressions": "a.k + 1 = z.k + 1",
    "null_safe": "a.k = z.k and a.s <=> z.s",
    "times": "a.k = z.k and a.t between z.t and z.t",
    "days": "a.k = z.k and a.day < z.day",
    "numbers": "a.k = z.k and a.b > z.n and z.n <= 3 and a.n >= 0",
    "too_large_a_number": "a.k = z.k and a.b < 99999999999999999999",
    "constants": "a.k = z.k and a.s in ('x', '') and z.day >= date '2024-01-01' and a.n in (0, 1)",
    "other_constants": "a.k = z.k and a.s = 'x ' and a.b <= 2 and z.k in (0, 1, 9999999999)",
    "constants_of_other_types": "a.k = z.k and a.n = '1' and z.t >= date '2024-01-01' and a.d in (0, 1) and a.f = 0",
    "texts": "a.k = z.k and a.s < z.s",
    "decimals": "a.k = z.k and a.d <= z.d",
    "floats": "a.k = z.k and a.f >= z.f",
    "alternatives": "(a.k = z.k and a.n = 1) or (a.k = z.k and z.n = 2)",
    "guarded_item": "a.k = z.k and a.n <> 0",
    "key_of_few_values": "a.n + 1 = z.k",
    "one_column": "a.k = z.k and not a.y",
}
"""Conditions of joins of ``a`` and ``z``."""
VIEWS = {
    **{name: f"select a.s, z.n, a.d, z.f from a join z on {condition}" for name, condition in CONDITIONS.items()},
    "guarded_item": "select 12 div a.n as q, z.s from a join z on a.k = z.k where a.n <> 0",
    "item_of_few_values": "select coalesce(a.n, 7) as n, z.s from a join z on a.k = z.k where z.n > 0",
    "constant": "select 1 as one from a join z on a.k = z.k",
    "computed": "select a.n + z.n as total, upper(a.s) as s, a.t from a join z on a.k = z.k where length(z.s) > 0",
    "itself": "select x.s, y.n from a x join a y on x.k = y.n",
    "three": "select a.s, z.n, m.v from a join z on a.k = z.k join m on m.k = z.n",
    "circle": "select a.s, z.n, m.v from a join z on a.k = z.k join m on m.k = z.n and m.k = a.n",
    "star": "select a.s, z.n, m.v from a join m on m.k = a.k join z on z.k = a.k where concat(a.s, z.s) <> m.v",
    "passed": "select p.q, z.n from (select k as q, k from a) p join z on p.k = z.k",
    "filtered": "select p.q, z.n from (select k as q, k from a where n > 0) p join z on p.k = z.k",
    "grouped_by_floats": "select a.f, z.r + a.f as g, count(*) as c from a join z on a.k = z.k group by a.f, z.r + a.f",
    "grouped": "select z.n, count(*) as c, sum(a.n) as total from a join z on a.k = z.k group by z.n",
}
NOON = datetime(2024, 1, 1, 12)
NAN = float("nan")


def _rows(seed: int) -> list[tuple[Any, ...]]:
    """Rows with all that may be peculiar about a value."""
    keys = [None, 0, 1, 2, 2**31 - 2, -(2**31)]
    texts = [None, "", "x", "X", "é", "e\u0301", "x ", "\U0001f600"]
    decimals = [None, Decimal(0), Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001")]
    floats = [None, 0.0, -0.0, NAN, float("inf"), 1.5]
    times = [None, NOON, NOON.replace(microsecond=1), datetime(1, 1, 1)]
    days = [None, date(2024, 1, 1), date(1, 1, 1)]
    columns: list[Sequence[Any]] = [
        keys,
        [*keys[:-1], 2**63 - 1, 2**31],
        texts,
        decimals,
        floats,
        floats,
        times,
        days,
        [None, True, False],
        [0, 1, 2, None],
    ]
    return [tuple(values[(at * step + seed) % len(values)] for step, values in enumerate(columns, 1)) for at in range(9)]


@pytest.fixture(scope="module")
def compiled(sessions: SparkSessions) -> Program:
    return compile_program(
        TABLES + "".join(f"create materialized view {name} as {query};" for name, query in VIEWS.items()), sessions
    )


def test_joins_of_all_kinds_of_values_follow_changes_of_each_side(compiled: Program, sessions: SparkSessions) -> None:
    _follow(Running("", sessions, compiled=compiled), list(VIEWS))


def test_rows_in_files_are_joined_as_those_in_memory(compiled: Program, sessions: SparkSessions) -> None:
    names = ["two_columns", "three", "computed"]
    _follow(Running("", sessions, compiled=only(compiled, names), limits=SIZES["files"]), names)


def _follow(running: Running, views: Sequence[str]) -> None:
    first, second = _rows(0), _rows(3)
    steps = [
        [
            running.changes("a", *first),
            running.changes("z", *second),
            running.changes("m", (0, "v"), (1, None), (2, "w"), (None, "")),
        ],
        [running.changes("a", *first[:4], first[0])],
        [running.changes("z", *second[:3], op=Op.DELETE), running.changes("a", *second[:3])],
        [running.changes("m", (2, "w")), running.changes("a", *first[:4], first[0], op=Op.DELETE)],
    ]
    for changes in steps:
        running.step(*changes)
        for name in views:
            # As texts: NaN is not equal to itself.
            stored = Counter(map(repr, map(tuple, running.circuit.relation(name).collect())))
            assert stored == _answer(running, name), name
    running.circuit.close()


def _answer(running: Running, view: str) -> Counter[str]:
    snapshot = running.circuit.snapshot
    contents = ", ".join(f"{t} as ({running.circuit.contents(t, snapshot)})" for t in running.program.tables)
    query = f"with {contents} select * from ({running.program.plans[view].query})"
    return Counter(map(repr, map(tuple, running.sessions.small.sql(query).collect())))


def _asked(running: Running, *changes: Any) -> tuple[Step, int]:
    """A step, and how often it asked Spark."""
    context = running.sessions.small.sparkContext
    before = asked_of_spark(context)
    step = running.step(*changes)
    return step, asked_of_spark(context) - before


PAIR = "create table l (k int, v int); create table r (k int, w int);"


@pytest.mark.core
def test_a_join_with_more_matches_than_the_limit_is_left_to_spark(sessions: SparkSessions) -> None:
    view = "create view j as select l.v, r.w from l join r on l.k = r.k;"
    running = Running(PAIR + view, sessions, limits=replace(SIZES["small"], driver_rows=3))
    running.insert("r", *((1, w) for w in range(3)))
    step, asked = _asked(running, running.changes("l", (1, 0), (2, 0)))
    assert (emitted(step, "j"), asked) == ([(0, w, 1) for w in range(3)], 0)
    step, asked = _asked(running, running.changes("l", (1, 1), (1, 2)))
    assert emitted(step, "j") == [(v, w, 1) for v in (1, 2) for w in range(3)]
    assert asked > 0
    running.circuit.close()


@pytest.mark.core("files")
@pytest.mark.parametrize("size", ["small", "files"])
def test_nested_values_are_passed_on(sessions: SparkSessions, size: str) -> None:
    program = """
    create table n (k int, m map<varchar, int>, s row(a int, b varchar), l varchar array, h interval day to second, j varchar);
    create table r (k int, w int);
    create materialized view u as select k, m, s, l, h, parse_json(j) as v from n;
    create view p as select u.m, u.s, u.l, u.h, u.v, r.w from r join u on u.k = r.k;
    """
    full = (1, [("k", 1)], {"a": 1, "b": None}, ["x", None], timedelta(seconds=5), '{"a": [1, null]}')
    others = (1, None, None, None, None, None), (2, [], {"a": None, "b": ""}, [], timedelta(0), "7")
    answers = []
    for joined in (100, -1):
        running = Running(program, sessions, limits=replace(SIZES[size], driver_rows=joined))
        running.insert("n", full, *others)
        answers.append(emitted(running.insert("r", (1, 10), (2, 20), (None, 30)), "p"))
        running.circuit.close()
    assert len(answers[0]) == 3
    assert answers[0] == answers[1]


@pytest.mark.core
def test_rows_that_a_condition_leaves_out_do_not_fail_an_expression(sessions: SparkSessions) -> None:
    key = "create view j as select l.v, r.w from l join r on 12 div l.v = r.k where l.v <> 0;"
    running = Running(PAIR + key, sessions)
    running.insert("r", (4, 0), (6, 1))
    assert emitted(running.insert("l", (1, 0), (1, 3), (1, 2)), "j") == [(2, 1, 1), (3, 0, 1)]
    running.circuit.close()


@pytest.mark.core
def test_conditions_of_the_changes_of_each_side_are_evaluated_in_their_order(sessions: SparkSessions) -> None:
    # By the keys the first condition on rows of l is decided for changes of l, and not for those of r.
    view = "create view j as select l.v, r.w from l join r on l.k = mod(r.w, 3) and r.k = mod(l.k, 3)"
    running = Running(f"{PAIR} {view} where l.v <> 0 and 12 div l.v > r.w;", sessions)
    running.insert("l", (1, 0), (1, 5))
    step = running.step(running.changes("l", (1, 4)), running.changes("r", (1, 1)))
    assert emitted(step, "j") == [(4, 1, 1), (5, 1, 1)]
    running.circuit.close()


@pytest.mark.core
def test_an_expression_that_fails_for_a_match_fails_the_step_and_names_its_row(sessions: SparkSessions) -> None:
    running = Running(f"{PAIR} create view j as select r.w div l.v as q from l join r on l.k = r.k;", sessions)
    running.insert("r", (1, 5))
    running.insert("l", (2, 0))
    with pytest.raises(StepError, match="DIVIDE_BY_ZERO") as failed:
        running.insert("l", (1, 1), (1, 0))
    assert failed.value.failing_row is not None
    assert failed.value.failing_row.row == {"k": 1, "v": 0}
    running.circuit.close()


@pytest.mark.core("20000")
@pytest.mark.parametrize("driver_bytes", [100, 20_000])
def test_rows_that_take_more_bytes_than_the_limit_are_left_to_spark(sessions: SparkSessions, driver_bytes: int) -> None:
    text = "create table l (k int, v varchar); create table r (k int, w varchar); create table m (k int, u int);"
    text += "create view two as select l.v, r.w from l join r on l.k = r.k;"
    text += "create view three as select r.w, m.u from l join r on l.k = r.k join m on m.k = r.k;"
    text += "create view compared as select l.v from l join r on l.k = r.k where r.w = 'w';"
    text += "create view made as select concat(r.w, '!') as w from l join r on l.k = r.k;"
    running = Running(text, sessions, limits=replace(SIZES["small"], driver_bytes=driver_bytes))
    running.step(running.changes("r", *((1, "w" * 1000) for _ in range(20))), running.changes("m", (1, 7)))
    for rows in (1, 2):
        step, asked = _asked(running, running.changes("l", *((1, "v") for _ in range(rows))))
        # Each row brings twenty thousand bytes, so that no view does without Spark.
        assert asked >= 4
        assert _total(step, "two") == {("v", "w" * 1000): 20 * rows}
        assert _total(step, "three") == {("w" * 1000, 7): 20 * rows}
        assert not emitted(step, "compared")
        assert _total(step, "made") == {("w" * 1000 + "!",): 20 * rows}
    running.circuit.close()


@pytest.mark.core
@pytest.mark.parametrize(("driver_bytes", "in_driver"), [(500_000, True), (60_000, True), (500, False)])
def test_first_rows_of_a_join_are_chosen_of_parts_that_have_room(
    driver_bytes: int, in_driver: bool, sessions: SparkSessions
) -> None:
    text = """
    create table l (k int, v int) with ('append_only' = 'true');
    create table r (k int, w varchar) with ('append_only' = 'true');
    create view first as select w, v, place from (
        select r.k, r.w, l.v, row_number() over (partition by r.k order by l.v desc) as place from l join r on l.k = r.k
    ) where place <= 2;
    """
    running = Running(text, sessions, limits=replace(SIZES["small"], driver_bytes=driver_bytes))
    one, two = "1" * 1000, "2" * 1000
    running.insert("r", (1, one), (2, two))
    step, asked = _asked(running, running.changes("l", *((k, v) for v in range(60) for k in (1, 2, 3)), (None, 99)))
    assert emitted(step, "first") == [(w, v, place, 1) for w in (one, two) for v, place in ((58, 2), (59, 1))]
    assert (asked == 0) == in_driver
    step, asked = _asked(running, running.changes("l", (1, 70), (2, 0)))
    assert emitted(step, "first") == sorted([(one, 70, 1, 1), (one, 59, 2, 1), (one, 59, 1, -1), (one, 58, 2, -1)])
    assert (asked == 0) == in_driver
    running.circuit.close()


def _total(step: Step, view: str) -> Counter[tuple[Any, ...]]:
    total: Counter[tuple[Any, ...]] = Counter()
    for *row, weight in emitted(step, view):
        total[tuple(row)] += weight
    return total
