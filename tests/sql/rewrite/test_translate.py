"""What Spark writes in another way is said in Spark's words, and knows where it came from."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.rows.types import decimal
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited


def translated(text: str) -> str:
    return translate(Edited(text), Definitions({"money": decimal(10, 2)})).text


@pytest.mark.parametrize(
    "text",
    [
        "select cast(a as int), cast(b as decimal(5,2)), try_cast(c as bigint), a::int, 1L, cast(i as interval day to hour)",
        "select extract(year from d), floor(a), date_trunc('month', d), greatest(a, b), a[1], date_part('day', d)",
        # Columns that are called like units.
        "select date_trunc('month', day), date_trunc('MON', year), time_trunc('hour', minute), date_trunc('week', century)",
        "select `array`[1], t.row(a), 'cast(a as money)', values from v",
    ],
)
def test_what_spark_reads_alike_stays_as_it_is(text: str) -> None:
    assert translated(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cast(a as money)", "CAST(a AS DECIMAL(10,2))"),
        ("(a + b)::money array", "CAST((a + b) AS ARRAY<DECIMAL(10,2)>)"),
        ("t.a::text", "CAST(t.a AS STRING)"),
        ("f(a)[1]::varchar(3)", "LEFT(CAST(f(a)[1] AS STRING), 3)"),
        ("safe_cast(a as date)", "TRY_CAST(a AS DATE)"),
        ("cast(cast(a as varchar(3)) as char(5))", "RPAD(CAST(LEFT(CAST(a AS STRING), 3) AS STRING), 5, ' ')"),
        ("cast(a as timestamp)", "CAST(a AS TIMESTAMP_NTZ)"),
        ("cast(a as timestamp with time zone)", "CAST(a AS TIMESTAMP)"),
        ("cast(a as row(x int, y varchar))", "CAST(a AS STRUCT<`x`: INT,`y`: STRING>)"),
        ("timestamp '2020-01-01 00:00:00'", "TIMESTAMP_NTZ '2020-01-01 00:00:00'"),
        ("values (1), (2)", "SELECT * FROM VALUES (1), (2)"),
        ("table t union all values (1)", "SELECT * FROM t union all SELECT * FROM VALUES (1)"),
        ("array[1, array[2]]", "ARRAY(1, ARRAY(2))"),
        ("a.b[safe_offset(i + 1)]", "GET(a.b, i + 1)"),
    ],
)
def test_other_spellings(text: str, expected: str) -> None:
    assert translated(text) == expected


def test_places_lead_back_to_the_text() -> None:
    edited = translate(Edited("select cast(a as money), nope from t"), Definitions({"money": decimal(10, 2)}))
    at = edited.text.index("nope")
    assert edited.origin(at, at + 4) == (25, 29)
    at = edited.text.index("DECIMAL")
    assert edited.origin(at, at + 3) == (7, 23)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("floor(a to day)", "CAST(DATE_TRUNC('DAY', a) AS TIMESTAMP_NTZ)"),
        (
            "ceil(a to day)",
            "CAST(CASE WHEN DATE_TRUNC('DAY', a) = a THEN DATE_TRUNC('DAY', a) ELSE TIMESTAMPADD(DAY, 1, DATE_TRUNC('DAY', a)) END"
            " AS TIMESTAMP_NTZ)",
        ),
        ("date_trunc(a, month)", "CAST(DATE_TRUNC('MONTH', a) AS DATE)"),
        ("timestamp_trunc(a, hour)", "CAST(DATE_TRUNC('HOUR', a) AS TIMESTAMP_NTZ)"),
    ],
)
def test_translations_are_those_that_stored_layouts_have(text: str, stored: str) -> None:
    assert translated(text) == stored, "views with another text are evaluated anew"
