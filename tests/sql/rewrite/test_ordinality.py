"""UNNEST ... WITH ORDINALITY: columns are what is unnested, and the places from 1."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.rewrite.ordinality import name_fields_of_elements, with_columns_of
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edit, Edited

ROWS = "ARRAY<STRUCT<item: STRING NOT NULL, `the price`: INT, m: MAP<STRING, INT>>>"
ELEMENTS = "INLINE(TRANSFORM(a, (__e, __i) -> STRUCT(__e, __i + 1)))"
ENTRIES = "INLINE(TRANSFORM(MAP_ENTRIES(a), (__e, __i) -> STRUCT(__e.key, __e.value, __i + 1)))"
NAMED = "INLINE(TRANSFORM(a, (__e, __i) -> STRUCT(__e AS col, __i + 1 AS ordinality)))"


def translated(join: str) -> str:
    """Return the translation of what stands behind ``select 1 from t``."""
    return translate(Edited(f"select 1 from t{join}"), Definitions({})).text.removeprefix("select 1 from t")


@pytest.mark.parametrize(
    ("join", "rewritten"),
    [
        (", unnest(a) with ordinality as e(x, n)", f", LATERAL {ELEMENTS} as e(x, n)"),
        (" left join unnest(a) with ordinality e(k, v, n) on true", f" left join LATERAL {ENTRIES} e(k, v, n) on true"),
        (" cross join unnest(a) with ordinality as e(x, y, z, n)", f" cross join LATERAL {ENTRIES} as e(x, y, z, n)"),
        (", lateral unnest(a) with ordinality as e where n > 1", f", lateral {NAMED} as e where n > 1"),
        (", unnest(a) with ordinality where ordinality > 1", f", LATERAL {NAMED} AS unnest where ordinality > 1"),
        (
            ", unnest(a, t.b) with ordinality as e(x, y, n)",
            ", LATERAL INLINE(TRANSFORM(ARRAYS_ZIP(COALESCE(a), COALESCE(t.b)), (__e, __i) -> STRUCT(__e.`0`, __e.`1`, __i + 1 AS "
            "ordinality))) as e(x, y, n)",
        ),
    ],
)
def test_the_number_of_names_tells_arrays_from_maps(join: str, rewritten: str) -> None:
    assert translated(join) == rewritten


def test_a_place_without_a_name_is_refused() -> None:
    text = "select x from t, unnest(a) with ordinality as e(x)"
    with pytest.raises(CallRefused, match="WITH ORDINALITY adds the places as a last column") as refused:
        translate(Edited(text), Definitions({}))
    assert text[refused.value.start : refused.value.end] == "(x)"


@pytest.mark.parametrize(
    ("kind", "made", "rewritten"),
    [
        (ROWS, ENTRIES, "INLINE(TRANSFORM(a, (__e, __i) -> STRUCT(__e.`item`, __e.`the price`, __e.`m`, __i + 1)))"),
        (
            "MAP<STRING, INT>",
            NAMED,
            "INLINE(TRANSFORM(MAP_ENTRIES(a), (__e, __i) -> STRUCT(__e.key AS key, __e.value AS value, __i + 1 AS ordinality)))",
        ),
    ],
)
def test_spark_says_what_is_unnested(kind: str, made: str, rewritten: str) -> None:
    text = f"select 1 from t, LATERAL {made} as e"
    call = "MAP_ENTRIES(a)" if made == ENTRIES else made.removeprefix("INLINE(").removesuffix(")")
    start = text.index(call)
    edit = with_columns_of(kind, text, start, start + len(call))
    assert isinstance(edit, Edit)
    assert Edited(text).edit([edit]).text == f"select 1 from t, LATERAL {rewritten} as e"


@pytest.mark.parametrize(
    ("kind", "made", "message"),
    [
        (
            "ARRAY<INT>",
            ENTRIES,
            "UNNEST of ARRAY<INT> WITH ORDINALITY gives two columns, the element and its place: name these two",
        ),
        (
            "MAP<STRING, INT>",
            ELEMENTS,
            "UNNEST of MAP<STRING, INT> WITH ORDINALITY gives three columns, the key, the value and the place: name these three",
        ),
    ],
)
def test_another_number_of_columns_is_refused(kind: str, made: str, message: str) -> None:
    start = made.index("a")
    assert with_columns_of(kind, made, start, start + 1) == message


def test_what_else_has_a_wrong_type_is_left_alone() -> None:
    text = "select transform(a, e -> e), MAP_ENTRIES(a) from t"
    start = text.index("MAP_ENTRIES")
    assert with_columns_of("ARRAY<INT>", text, start, start + len("MAP_ENTRIES(a)")) is None


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("array<struct<item:string,price:int>>", "STRUCT(__e.`item` AS `item`, __e.`price` AS `price`, __i + 1 AS ordinality)"),
        ("array<int>", "STRUCT(__e AS col, __i + 1 AS ordinality)"),
    ],
)
def test_fields_of_rows_without_names_keep_theirs(kind: str, row: str) -> None:
    class Types:
        """Has one type for everything."""

        def declare(self, relations: Mapping[str, ColumnTypes]) -> None: ...

        def columns(self, query: str) -> ColumnTypes:
            return (("p0", kind),)

        def same_plan(self, one: str, other: str) -> bool:
            return one == other

        def planning_error(self, query: str) -> str | None:
            return None

    query = Edited(f"select 1 from t, LATERAL {NAMED} as e")
    found = name_fields_of_elements(query, Types()).text
    assert found == f"select 1 from t, LATERAL INLINE(TRANSFORM(a, (__e, __i) -> {row})) as e"
