"""The columns of views: those that cannot be stored, and those of a view that is declared recursive."""

from __future__ import annotations

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.messages import ProgramErrors, ProgramMessage

pytestmark = pytest.mark.core

EDGES = "create table edges (x int, y int);\n"
CLOSURE = """declare recursive view c(x int, y int);
create view c as select x, y from edges union select c.x, e.y from c join edges e on c.y = e.x;
"""


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


@pytest.mark.parametrize("value", ["map()", "array(map())", "struct(map() as a)"])
def test_maps_have_types(value: str, sessions: SparkSessions) -> None:
    assert "has a MAP without types" in _errors(f"create view v as select {value} as m from edges;", sessions)[0].message


def test_the_declared_columns_are_the_views_columns(sessions: SparkSessions) -> None:
    program = compile_program(EDGES + CLOSURE.replace("create view", "create materialized view"), sessions)
    described = program.info.outputs[0]
    assert (described.name, described.materialized) == ("c", True)
    assert [(column.name, column.type.name) for column in described.columns] == [("x", "INTEGER"), ("y", "INTEGER")]
