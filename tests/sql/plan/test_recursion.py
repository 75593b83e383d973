"""How circles of views and WITH RECURSIVE are planned, and what is wrong with declarations as far as only types tell."""

from __future__ import annotations

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.messages import ProgramErrors, ProgramMessage
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.recursive import Recursive

EDGES = "create table edges (x int, y int); create table names (id int not null, name varchar);\n"
CLOSURE = """declare recursive view c(x int, y int);
create view c as select x, y from edges union select c.x, e.y from c join edges e on c.y = e.x;
"""


def _strategies(text: str, sessions: SparkSessions) -> dict[str, str]:
    program = compile_program(EDGES + text, sessions)
    return {stage.relation: stage.strategy for plan in program.plans.values() for stage in plan.stages}


def _recursive(program: Program, view: str) -> Recursive:
    return next(stage.node for stage in program.plans[view].stages if isinstance(stage.node, Recursive))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CLOSURE, {"c": "recursion"}),
        (CLOSURE.replace("union", "union all"), {"c": "recursion"}),
        (CLOSURE.replace("select x, y from edges", "select distinct x, y from (select distinct * from edges)"), {"c": "recursion"}),
        (
            "declare recursive view c(x int, n bigint);"
            "create view c as select e.x, m.n from edges e join (select x, count(*) as n from edges group by x) m on m.x = e.x"
            " union select e.x, c.n from c join edges e on e.y = c.x;",
            {"c$1": "accumulators", "c": "recursion"},
        ),
        (
            "declare recursive view c(x int, n bigint); create view c as select x, count(*) as n from edges group by x;",
            {"c$base": "accumulators", "c": "recursion"},
        ),
        (
            "declare recursive view a(x int); declare recursive view b(y int, z int);"
            "create view a as select x from edges union select z from b;"
            "create view b as select a.x as y, e.y as z from a join edges e on e.x = a.x;",
            {"a$r": "recursion", "a": "linear", "b": "linear"},
        ),
        (
            "declare recursive view c(x int, y int); create local view s(p, q) as select c.x, e.y from c join edges e on c.y = e.x;"
            "create view c as select * from edges union select * from s;",
            {"c": "recursion", "s": "join"},
        ),
        (
            "create view v as with recursive r(x, n) as (select x, 0 from edges union all"
            " select e.y, n + 1 from r join edges e on e.x = r.x where n < 5) select n, count(*) as m from r group by n;",
            {"v$r1": "recursion", "v": "accumulators"},
        ),
        (
            "create view v as with recursive top as (select min(x) as x from edges), r as (select x from top union all"
            " select y from r join edges e on e.x = r.x), s as (select x from r union all select s.x + 1 from s where s.x < 3)"
            " select r.x from r join s on r.x = s.x;",
            {"v$r2": "recursion", "v$r3": "recursion", "v": "join"},
        ),
    ],
)
def test_linear_recursion_is_followed(text: str, expected: dict[str, str], sessions: SparkSessions) -> None:
    found = _strategies(text, sessions)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "create view v as with recursive r(x, y) as (select x, y from edges union all"
            " select a.x, b.y from r a join r b on a.y = b.x) select * from r;",
            "more than once",
        ),
        (
            "create view v as with recursive r as (select x from edges"
            " union all select distinct y from r join edges e on e.x = r.x) select * from r;",
            "has no rule that adds up over rounds",
        ),
    ],
)
def test_other_recursive_queries_are_left_to_spark(text: str, reason: str, sessions: SparkSessions) -> None:
    plan = compile_program(EDGES + text, sessions).plans["v"]
    assert isinstance(plan.stages[-1].node, Full)
    assert plan.stages[-1].reads == {"edges"}
    assert reason in (plan.reason or "")


def test_recursion_below_the_top_of_a_query_is_left_to_spark(sessions: SparkSessions) -> None:
    text = (
        "create view v as select * from (with recursive r as (select x from edges union all select x + 1 from r where x < 3)"
        " select x from r);"
    )
    assert "full" in _strategies(text, sessions).values()


def test_circles_that_are_not_linear_are_recomputed_with_the_reason(sessions: SparkSessions) -> None:
    text = CLOSURE.replace("union select", "union (select").replace("e.x;", "e.x except select id, id from names);")
    plan = compile_program(EDGES + text, sessions).plans["c"]
    assert [stage.strategy for stage in plan.stages] == ["recursion by recomputing"]
    assert (plan.reason or "").startswith("the recursion is recomputed: ")


def test_the_full_strategy_of_a_circle_reads_only_what_is_outside(sessions: SparkSessions) -> None:
    text = (
        "declare recursive view a(x int); declare recursive view b(x int); create view s as select x from b;"
        "create view a as select x from edges union select x from s;"
        "create view b as select e.y as x from a join edges e on e.x = a.x;"
    )
    program = compile_program(EDGES + text, sessions)
    for name in "ab":
        assert program.plans[name].full.reads == {"edges"}
        assert program.plans[name].full.strategy == "recursion by recomputing"
    assert _recursive(program, "a").inputs == ("edges",)


def _errors(text: str, sessions: SparkSessions) -> tuple[ProgramMessage, ...]:
    with pytest.raises(ProgramErrors) as caught:
        compile_program(EDGES + text, sessions)
    return caught.value.messages


@pytest.mark.parametrize(
    ("declared", "message", "place"),
    [
        ("x int, z int", "View c is declared with the columns x, z and its query gives x, y", (3, 13)),
        ("x int", "View c is declared with the columns x and its query gives x, y", (3, 13)),
        (
            "x int, y bigint",
            "Column y of view c is declared BIGINT and its query gives INT: "
            "declare that, or write CAST(... AS BIGINT) in the query",
            (2, 33),
        ),
        ("x int not null, y int", "Column x of view c is declared NOT NULL and its query may give NULL", (2, 26)),
    ],
)
def test_a_view_must_be_what_was_declared(declared: str, message: str, place: tuple[int, int], sessions: SparkSessions) -> None:
    text = f"declare recursive view c({declared});\ncreate view c as select x, y from edges union select y as x, x as y from edges;"
    found = _errors(text, sessions)
    assert [each.message for each in found] == [message]
    assert found[0].span is not None
    assert (found[0].span.start_line, found[0].span.start_column) == place


def test_columns_that_cannot_be_compared_and_columns_that_do_not_exist(sessions: SparkSessions) -> None:
    text = "declare recursive view c(m map<int, int>); create view c as select map(x, y) as m from edges;"
    assert "holds a MAP or VARIANT" in _errors(text, sessions)[0].message
    text = "declare recursive view c(x int); create view c as select x from edges union select z from c;"
    assert "`z`" in _errors(text, sessions)[0].message
    assert "`z`" in _errors(CLOSURE + "create view w as select z from c;", sessions)[0].message


def test_the_declared_columns_are_the_views_columns(sessions: SparkSessions) -> None:
    program = compile_program(EDGES + CLOSURE.replace("create view", "create materialized view"), sessions)
    described = program.info.outputs[0]
    assert (described.name, described.materialized) == ("c", True)
    assert [(column.name, column.type.name) for column in described.columns] == [("x", "INTEGER"), ("y", "INTEGER")]


def test_a_change_of_one_view_of_a_circle_changes_all(sessions: SparkSessions) -> None:
    text = (
        "declare recursive view c(x int, y int); create view s as select c.x, e.y from c join edges e on c.y = e.x;"
        "create view c as select * from edges union select * from s; create view w as select x from c;"
        "create view o as select 1 as x;"
    )
    old = compile_program(EDGES + text, sessions).fingerprints.views
    same = compile_program(EDGES + text.replace("* from s", "s.X, s.y from S"), sessions).fingerprints.views
    new = compile_program(EDGES + text.replace("c.y = e.x", "c.y = e.x and e.y > 0"), sessions).fingerprints.views
    assert old == same
    assert {name for name in old if old[name] != new[name]} == {"c", "s", "w"}
    assert len(set(old.values())) == len(old)
