"""A field of a row by its place is named; elements of arrays, keys of maps and VARIANTs stay as they are."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.rewrite.row_fields import name_row_fields
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure
from airflow_pipelines.sql.syntax.edits import Edited

ROW = "struct<item:string,`the price`:int,inner:struct<a:int,b:int>>"
TYPES = {
    "r": ROW, "t.r": ROW, "(r)": ROW, "rows": f"array<{ROW}>", "rows[0]": ROW, "rows[i]": ROW, "m": f"map<int,{ROW}>", "m[1]": ROW,
    "a": "array<int>", "v": "variant", "STRUCT(1, 'x')": "struct<col1:int,col2:string>",
}  # fmt: skip


class Types:
    """Knows the types of a few expressions over ``t``, and that no other can be analyzed."""

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None: ...

    def columns(self, query: str) -> ColumnTypes:
        value = query.removeprefix("SELECT ").partition(" AS p0")[0]
        if value not in TYPES:
            raise AnalysisFailed(value)
        return (("p0", TYPES[value]),)

    def same_plan(self, one: str, other: str) -> bool:
        return one == other

    def planning_error(self, query: str) -> str | None:
        return None


def named(expression: str) -> str:
    """An expression over ``t`` after the rewriting."""
    return name_row_fields(Edited(f"select {expression} from t"), Types()).text.removeprefix("select ").removesuffix(" from t")


@pytest.mark.parametrize(
    ("expression", "rewritten"),
    [
        ("r[1]", "r.`item`"),
        ("t.r[2] + 1", "t.r.`the price` + 1"),
        ("(r)[2]", "(r).`the price`"),
        ("rows[0][2]", "rows[0].`the price`"),
        ("rows[i][3].a", "rows[i].`inner`.a"),
        ("m[1][1]", "m[1].`item`"),
        ("STRUCT(1, 'x')[2]", "STRUCT(1, 'x').`col2`"),
        # The type of what was a bracket is asked when Spark refuses the query again.
        ("r[3][1] + a[0] + r['item']", "r.`inner`[1] + a[0] + r['item']"),
        ("a[1] + v[1]", "a[1] + v[1]"),
    ],
)
def test_rows_have_fields_by_place(expression: str, rewritten: str) -> None:
    assert named(expression) == rewritten


@pytest.mark.parametrize(
    ("expression", "place", "message"),
    [
        ("rows[0][0]", "[0]", "Fields of a row count from 1, and this one has 3: item, the price, inner"),
        ("r[4]", "[4]", "Fields of a row count from 1, and this one has 3: item, the price, inner"),
        ("r[i]", "[i]", "The field of a row is known by a number, from 1 to 3, or by its name, and not by i"),
        (
            "transform(rows, e -> e[1])",
            "[1]",
            "The type of e is not known here: if it is a row, write the name of its field behind a point",
        ),
    ],
)
def test_what_is_no_place_is_refused(expression: str, place: str, message: str) -> None:
    query = f"select {expression} from t"
    with pytest.raises(SyntaxFailure) as refused:
        name_row_fields(Edited(query), Types())
    assert refused.value.message == message
    assert refused.value.start == query.rindex(place)
    assert refused.value.end == query.rindex(place) + len(place)
