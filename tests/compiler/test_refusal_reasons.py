"""Refusals of Spark because of a type, in words of our own, at their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.compiler.refusal_reasons import explain_refusal
from airflow_pipelines.engine.spark.analysis import QueryRefused
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.source_text import SourceText

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

TABLE = "create table t (id int, m map<varchar, int>, tm time, a int array, ls row(x int, y varchar) array);"
ENTRIES = "SORT_ARRAY(MAP_ENTRIES(m)) gives what can be compared"
REFUSED = {
    "select cast(tm as timestamp) as x from t": (
        "cast(tm as timestamp)",
        "A TIME has no date: write MAKE_TIMESTAMP_NTZ(date, time) with the date that is meant",
    ),
    "select tm::date as x from t": (
        "tm::date",
        "A TIME has no date: write MAKE_TIMESTAMP_NTZ(date, time) with the date that is meant",
    ),
    "select cast(id as time) as x from t": (
        "cast(id as time)",
        "A number is no TIME: write TIME_FROM_SECONDS(n), TIME_FROM_MILLIS(n) or TIME_FROM_MICROS(n)",
    ),
    "select floor(tm to day) as x from t": (
        "floor(tm to day)",
        "A TIME is rounded to HOUR, MINUTE, SECOND, MILLISECOND or MICROSECOND, and not DAY",
    ),
    "select id, ls[0][3] as x from t": ("[3]", "Fields of a row count from 1, and this one has 2: x, y"),
    "select e.x from t, unnest(a) with ordinality as e(x, y, n)": (
        "unnest(a) with ordinality",
        "UNNEST of ARRAY<INT> WITH ORDINALITY gives two columns, the element and its place: name these two",
    ),
    "select greatest(m, m) as x from t": (
        "greatest(m, m)",
        f"greatest(m, m) compares values of type MAP<STRING, INT>, and MAPs cannot be compared there: {ENTRIES}",
    ),
    "select id from t where m in (select m from t)": (
        "in (select m from t)",
        f"(m IN (query)) compares values of type MAP<STRING, INT>, and MAPs cannot be compared there: {ENTRIES}",
    ),
}


@pytest.mark.core(slow_because="the compiler is asked for each query")
def test_what_has_no_meaning_says_what_to_write(sessions: SparkSessions) -> None:
    views = {f"v{at}": query for at, query in enumerate(REFUSED)}
    text = TABLE + "\n".join(f"create view {name} as {query};" for name, query in views.items())
    with pytest.raises(ProgramErrors) as caught:
        compile_program(text, sessions)
    source = SourceText(text)
    found = [(source.slice(message.span) if message.span else "", message.message) for message in caught.value.messages]
    assert found == list(REFUSED.values())


@pytest.mark.parametrize(
    ("condition", "message", "ours"),
    [
        (
            "UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE",
            "The feature is not supported: Cannot have MAP type columns in DataFrame which calls set operations (INTERSECT, "
            'EXCEPT, etc.), but the type of column `m` is "MAP<STRING, INT>".',
            "DISTINCT, UNION, INTERSECT and EXCEPT do not compare MAPs, and column `m` is a MAP<STRING, INT>: GROUP BY does, "
            f"and {ENTRIES}",
        ),
        (
            "EXPRESSION_TYPE_IS_NOT_ORDERABLE",
            'Column expression "m" cannot be sorted because its type "MAP<STRING, INT>" is not orderable.',
            f"Rows cannot be partitioned or sorted by m, which is a MAP<STRING, INT>: {ENTRIES}",
        ),
        (
            "NUM_TABLE_VALUE_ALIASES_MISMATCH",
            "Number of given aliases does not match number of output columns. Function name: `inline`; number of aliases: 4; "
            "number of output columns: 3.",
            "A relation has 3 columns here, and names for 4: name each of them, or none",
        ),
        ("DATATYPE_MISMATCH.INVALID_ORDERING_TYPE", 'The `=` does not support ordering on type "VARIANT".', None),
        (None, "Something else", None),
    ],
)
def test_sentences(condition: str | None, message: str, ours: str | None) -> None:
    assert explain_refusal(QueryRefused(0, 1, message, condition)) == (ours or message)
