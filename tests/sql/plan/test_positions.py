"""Reasons say which part of the program they are about."""

from __future__ import annotations

import pytest
from sqlglot import exp

from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.sql.plan.expressions import NotIncremental, planning
from airflow_pipelines.sql.plan.positions import Places
from airflow_pipelines.sql.syntax.dialect import parse_query

QUERY = """select t.id, (u.c) + 1 as x, max(struct(t.at, n)) as m,
    rank() over (order by t.b) as r
from t left join (select 1 as c from u2) as u on (u.at > date_trunc('hour', t.at))
order by t.id limit 3"""


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        (exp.Add, "(u.c) + 1", 1),
        (exp.Max, "max(struct(t.at, n))", 1),
        (exp.Window, "rank() over (order by t.b)", 2),
        (exp.Join, "join (select 1 as c from u2) as u on (u.at > date_trunc('hour', t.at))", 3),
        (exp.Subquery, "(select 1 as c from u2) as u", 3),
        (exp.GT, "u.at > date_trunc('hour', t.at)", 3),
        (exp.Limit, "limit 3", 4),
    ],
)
def test_a_part_of_a_query_is_found_in_its_text(kind: type[exp.Expr], text: str, line: int) -> None:
    tree = parse_query(QUERY).find(kind)
    assert tree is not None
    found = Places.within(QUERY).reason("because", tree)
    assert found.span is not None
    assert (found.message, found.expression, found.span.start_line) == ("because", text, line)


def test_places_lead_back_to_the_program() -> None:
    program = f"-- a comment\ncreate view v as {QUERY.upper()};"
    start = program.index("SELECT")
    places = Places(QUERY, SourceText(program), lambda first, last: (start + first, start + last))
    found = places.reason("because", parse_query(QUERY).find(exp.Max))
    assert found.span is not None
    assert (found.expression, found.span.start_line) == ("MAX(STRUCT(T.AT, N))", 2)
    # Of a query that was made of another one, the text is known and the place is not.
    other = places.of_other_text("select 1").reason("because", parse_query(QUERY).find(exp.GT))
    assert other == Reason("because", None, "u.at > DATE_TRUNC('hour', t.at)")


def test_an_error_is_about_the_smallest_part_that_is_known() -> None:
    tree = parse_query(QUERY)
    with pytest.raises(NotIncremental) as caught, planning(tree), planning(tree.args["joins"][0]):
        raise NotIncremental("no rule", tree.find(exp.GT))
    assert caught.value.tree == tree.find(exp.GT)
    with pytest.raises(NotIncremental) as outer, planning(tree.args["limit"]):
        raise NotIncremental("no rule")
    assert Places.within(QUERY).reason(outer.value).expression == "limit 3"


def test_long_expressions_are_shortened() -> None:
    query = f"select {' + '.join(f'column_{number}' for number in range(50))} as x from t"
    found = Places.within(query).reason("because", parse_query(query).find(exp.Add)).expression
    assert len(found) == 200
    assert found.endswith(" ...")
