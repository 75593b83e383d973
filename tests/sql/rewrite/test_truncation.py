"""Rounding of a TIME, for which Spark has other words than for dates, once Spark says that it is one."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.rewrite.truncation import of_times
from airflow_pipelines.sql.syntax.edits import Edit, Edited


def told(expression: str, refused: str) -> str | None:
    """An expression of a TIME after Spark has refused a part of its translation, or why it has no meaning."""
    text = translate(Edited(expression), Definitions({})).text
    found = of_times(text, text.index(refused), text.index(refused) + len(refused))
    return Edited(text).edit([found]).text if isinstance(found, Edit) else found


@pytest.mark.parametrize(
    ("expression", "refused", "rewritten"),
    [
        ("floor(t.a to hour)", "DATE_TRUNC('HOUR', t.a)", "TIME_TRUNC('HOUR', t.a)"),
        ("1 + floor(f(a, b) to millisecond)", "DATE_TRUNC('MILLISECOND', f(a, b))", "1 + TIME_TRUNC('MILLISECOND', f(a, b))"),
        (
            "ceil(a to minute)",
            "DATE_TRUNC('MINUTE', a)",
            "TIME_FROM_MICROS((TIME_TO_MICROS(a) + 59999999) DIV 60000000 * 60000000 % 86400000000)",
        ),
        ("timestampdiff(second, a, b)", "timestampdiff(second, a, b)", "TIME_DIFF('SECOND', a, b)"),
        ("datediff(hour, a, b)", "datediff(hour, a, b)", "TIME_DIFF('HOUR', a, b)"),
    ],
)
def test_times(expression: str, refused: str, rewritten: str) -> None:
    assert told(expression, refused) == rewritten


@pytest.mark.parametrize(
    ("expression", "refused", "message"),
    [
        (
            "ceiling(a to day)",
            "DATE_TRUNC('DAY', a)",
            "A TIME is rounded to HOUR, MINUTE, SECOND, MILLISECOND or MICROSECOND, and not DAY",
        ),
        (
            "timestampdiff(month, a, b)",
            "timestampdiff(month, a, b)",
            "A TIME differs from another one by HOUR, MINUTE, SECOND, MILLISECOND or MICROSECOND, and not MONTH",
        ),
        ("date_trunc('hour', a)", "date_trunc('hour', a)", "DATE_TRUNC is of dates: write TIME_TRUNC(time, unit) for a TIME"),
        ("cast(a as timestamp)", "CAST(a AS TIMESTAMP_NTZ)", None),
    ],
)
def test_what_a_time_does_not_have(expression: str, refused: str, message: str | None) -> None:
    assert told(expression, refused) == message
