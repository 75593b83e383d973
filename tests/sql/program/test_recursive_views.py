"""Declarations of recursive views, the order of circles, and what they must not do, with its place."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.relations import ViewKind
from airflow_pipelines.sql.program.parser import parse_program
from tests.sql.program.test_parser import caught_texts, errors, the_error

EDGES = "create table edges (x int, y int);\n"
DECLARED = EDGES + "declare recursive view c(x int, y int);\n"


def test_declared_columns_and_kinds() -> None:
    program = parse_program(
        """declare recursive view "C"(x int not null, "Y" row(a int) null);
        create local view "C" as select * from "C";"""
    )
    view = program.views["C"]
    assert view.declared is not None
    assert [(column.name, str(column.type.name), column.type.nullable) for column in view.declared] == [
        ("x", "INTEGER", False),
        ("Y", "STRUCT", True),
    ]
    assert view.kind is ViewKind.LOCAL
    assert view.cycle == ("C",)


def test_declared_views_come_before_the_others_of_their_circle() -> None:
    program = parse_program(
        """create view last as select * from c, step;
        create view step as select e.x, c.y from more e join c on e.y = c.x;
        create view c as select * from edges union select * from step;
        declare recursive view c(x int, y int);
        create view more as select * from edges;"""
        + EDGES
    )
    assert list(program.views) == ["more", "c", "step", "last"]
    assert program.views["c"].cycle == program.views["step"].cycle == ("step", "c")
    assert program.views["last"].cycle == ()


def test_a_declaration_without_recursion_is_allowed() -> None:
    view = parse_program(DECLARED + "create view c as select * from edges").views["c"]
    assert view.declared is not None
    assert view.cycle == ()


def test_declarations_that_do_not_fit() -> None:
    never = "View c is declared and never created: add CREATE VIEW c AS <query>"
    assert the_error(DECLARED, "c", DECLARED[: DECLARED.index("c(x")].count("c")) == never
    assert caught_texts(errors("declare recursive view edges(x int);" + EDGES)) == [
        "edges is declared as a recursive view and created as a table"
    ]
    twice = errors(DECLARED + "declare recursive view c(x int);\ncreate view c as select * from edges")
    assert caught_texts(twice) == ["c is declared twice: first at line 2, column 24, again at line 3, column 24"]
    assert "may have a type and NOT NULL, nothing else" in the_error(
        "declare recursive view c(x int primary key); create view c as select 1 as x", "x"
    )
    assert "x of c is declared twice" in the_error("declare recursive view c(x int, x int); create view c as select 1 as x", "x", 1)
    assert "Expected the end of the statement" in the_error(DECLARED[:-2] + " as select 1", "as")
    assert "A recursive view is declared first" in the_error("create recursive view c as select 1", "create recursive view")


def test_a_view_that_could_not_be_read_is_not_called_missing() -> None:
    messages = caught_texts(errors(DECLARED + "create view c as select from where"))
    assert len(messages) == 1
    assert "found 'where'" in messages[0]


def test_a_circle_without_declaration_says_what_to_add() -> None:
    message = the_error("create view a as select * from b; create view b as select * from a", "a", 1)
    assert message.startswith(
        "Views read each other in a cycle: a -> b -> a. To compute them by recursion, add DECLARE RECURSIVE VIEW a("
    )
    text = DECLARED + "create view c as select * from p; create view p as select * from q, c; create view q as select * from p;"
    assert [m for m in caught_texts(errors(text)) if "p -> q -> p" in m]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select * from edges except select * from «c»", "on the right side of EXCEPT"),
        ("select e.* from edges e left join «c» on e.x = c.x", "on the right side of a LEFT JOIN"),
        ("select e.* from «c» right join edges e on e.x = c.x", "on the left side of a RIGHT JOIN"),
        ("select e.* from edges e full join «c» on e.x = c.x", "on the right side of a FULL JOIN"),
        ("select e.* from edges e left anti join «c» on e.x = c.x", "on the right side of an ANTI JOIN"),
        ("select * from edges where x not in (select x from «c»)", "in NOT IN"),
        ("select * from edges e where not exists (select 1 from «c» where c.x = e.x)", "in NOT EXISTS"),
        ("select * from edges where x = 1 or not (x in (select x from «c»))", "in a subquery of an expression"),
        ("select x, (select max(y) from edges) as y from edges where x > (select min(x) from «c»)", "by an aggregate"),
        ("select * from edges where x > (select x from «c»)", "in a subquery of an expression"),
        ("select x, (select max(y) from «c») as y from edges", "by an aggregate"),
        ("select x, max(y) as y from «c» group by x", "under GROUP BY"),
        ("select count(*) as x, max(y) as y from «c»", "by an aggregate"),
        ("select x, row_number() over (order by x) as y from «c»", "by a window function"),
        ("select x, y from «c» order by x limit 3", "under LIMIT"),
        ("with d as (select x, count(*) as y from «c» group by x) select * from edges union select * from d", "under GROUP BY"),
        ("with d as (select * from «c») select * from edges except select * from d", "right side of EXCEPT"),
    ],
)
def test_what_more_rows_could_take_away_is_refused_at_its_place(query: str, reason: str) -> None:
    start = query.index("«")
    query = query.replace("«", "").replace("»", "")
    text = DECLARED + "create view c as\n" + query
    messages = errors(text)
    assert reason in messages[0].message
    assert "View c is part of a recursion and reads c" in messages[0].message
    assert messages[0].span is not None
    assert (messages[0].span.start_line, messages[0].span.start_column, messages[0].span.end_column) == (4, start + 1, start + 1)


def test_the_view_in_between_is_blamed_for_its_own_query() -> None:
    text = DECLARED + "create view s as select x, count(*) as y from c group by x; create view c as select * from s;"
    assert "View s is part of a recursion and reads c under GROUP BY" in the_error(
        text, "c", text.count("c", 0, text.index("from c"))
    )


@pytest.mark.parametrize(
    "query",
    [
        "select * from edges union select c.x, e.y from c join edges e on c.y = e.x",
        "select distinct c.x, e.y from c, edges e where c.y = e.x or e.x is null",
        "select c.x, e.y from c left join edges e on c.y = e.x",
        "select c.x, c.y from c where not exists (select 1 from edges e where e.x = c.x) and c.x not in (select x from edges)",
        "select * from c except select * from edges",
        "select * from edges intersect select * from c",
        "select * from edges e where e.x in (select x from c) or exists (select 1 from c where c.y = e.y)",
        "select c.x, m.y from c join (select x, max(y) as y from edges group by x) m on m.x = c.x",
        "with c as (select x, count(*) as y from edges group by x) select * from c",
        "with d as (select * from c) select d.x, f.y from d join d as f on d.y = f.x",
        "select c.x, u.z as y from c lateral view explode(array(c.y)) u as z",
    ],
)
def test_what_only_adds_rows_is_allowed(query: str) -> None:
    assert parse_program(DECLARED + "create view c as " + query).views["c"].declared is not None
