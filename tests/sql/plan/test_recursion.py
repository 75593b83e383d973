"""How circles of views and WITH RECURSIVE are planned."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.ir.recursive import Recursive
from airflow_pipelines.sql.plan.ir.stage import ViewPlan
from airflow_pipelines.sql.plan.recursion import CycleMember, plan_query, plan_recursive_views
from airflow_pipelines.sql.program.declarations import ViewDeclaration
from airflow_pipelines.sql.program.parser import parse_program

TABLES = "create table edges (x int, y int); create table names (id int not null, name varchar);\n"
RELATIONS: dict[str, ColumnTypes] = {
    "edges": (("x", "int"), ("y", "int")),
    "names": (("id", "int"), ("name", "string")),
}
CLOSURE = """declare recursive view c(x int, y int);
create view c as select x, y from edges union select c.x, e.y from c join edges e on c.y = e.x;
"""


class _Planned:
    """The plans of a program's views, of which at most one group reads each other in a cycle."""

    def __init__(self, text: str, analyzer: Analyzer) -> None:
        self.plans: dict[str, ViewPlan] = {}
        self._analyzer = analyzer
        self._types = dict(RELATIONS)
        views = parse_program(TABLES + text).views.values()
        recursive = [view for view in views if view.declared is not None]
        for view in recursive:
            self._declare(view.name, tuple((column.name, column.type.spark_ddl().lower()) for column in view.declared or ()))
        others = [view for view in views if view.declared is None]
        for view in others:
            given = analyzer.columns(view.query)
            names = view.column_names or [name for name, _ in given]
            self._declare(view.name, tuple((name, kind) for name, (_, kind) in zip(names, given, strict=True)))
            self.plans[view.name] = plan_query(
                view.name, view.query, self._read_by(view), self._types[view.name], view.reads, analyzer
            )
        if recursive:
            self._plan_cycle(recursive, [view for view in others if view.cycle])

    def strategies(self) -> dict[str, str]:
        """How each stage is kept up."""
        return {stage.relation: stage.strategy for plan in self.plans.values() for stage in plan.stages}

    def _plan_cycle(self, recursive: list[ViewDeclaration], others: list[ViewDeclaration]) -> None:
        cycle = [*recursive, *others]
        names = {view.name for view in cycle}
        outside = {name: kinds for view in cycle for name, kinds in self._read_by(view).items() if name not in names}
        members = [[self._member(view) for view in views] for views in (recursive, others)]
        self.plans |= plan_recursive_views(*members, outside, self._analyzer)

    def _declare(self, relation: str, columns: ColumnTypes) -> None:
        self._types[relation] = columns
        self._analyzer.declare({relation: columns})

    def _member(self, view: ViewDeclaration) -> CycleMember:
        names = tuple(name for name, _ in self._analyzer.columns(view.query))
        return CycleMember(view.name, view.query, names, self._types[view.name])

    def _read_by(self, view: ViewDeclaration) -> dict[str, ColumnTypes]:
        return {name: self._types[name] for name in view.reads}


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
def test_linear_recursion_is_followed(text: str, expected: dict[str, str], analyzer: Analyzer) -> None:
    found = _Planned(text, analyzer).strategies()
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
def test_other_recursive_queries_are_left_to_spark(text: str, reason: str, analyzer: Analyzer) -> None:
    plan = _Planned(text, analyzer).plans["v"]
    assert isinstance(plan.stages[-1].node, Full)
    assert plan.stages[-1].reads == {"edges"}
    assert reason in (plan.reason or "")


def test_recursion_below_the_top_of_a_query_is_left_to_spark(analyzer: Analyzer) -> None:
    text = (
        "create view v as select * from (with recursive r as (select x from edges union all select x + 1 from r where x < 3)"
        " select x from r);"
    )
    assert "full" in _Planned(text, analyzer).strategies().values()


def test_circles_that_are_not_linear_are_recomputed_with_the_reason(analyzer: Analyzer) -> None:
    text = CLOSURE.replace("union select", "union (select").replace("e.x;", "e.x except select id, id from names);")
    plan = _Planned(text, analyzer).plans["c"]
    assert [stage.strategy for stage in plan.stages] == ["recursion by recomputing"]
    assert (plan.reason or "").startswith("the recursion is recomputed: ")


def test_the_full_strategy_of_a_circle_reads_only_what_is_outside(analyzer: Analyzer) -> None:
    text = (
        "declare recursive view a(x int); declare recursive view b(x int); create view s as select x from b;"
        "create view a as select x from edges union select x from s;"
        "create view b as select e.y as x from a join edges e on e.x = a.x;"
    )
    plans = _Planned(text, analyzer).plans
    for name in "ab":
        assert plans[name].full.reads == {"edges"}
        assert plans[name].full.strategy == "recursion by recomputing"
    (recursive,) = [stage.node for stage in plans["a"].stages if isinstance(stage.node, Recursive)]
    assert recursive.inputs == ("edges",)
