"""Windows without ORDER BY are ordered by NULL where Spark asks for an order, and stay as they are elsewhere."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited


def translated(text: str) -> str:
    return translate(Edited(text), Definitions({})).text


@pytest.mark.parametrize(
    ("written", "rewritten"),
    [
        ("lead(x) over ()", "lead(x) over (ORDER BY NULL)"),
        ("lag(x, 1, 0) ignore nulls over (partition by k, j)", "lag(x, 1, 0) ignore nulls over (partition by k, j ORDER BY NULL)"),
        ("lag(x ignore nulls) over ()", "lag(x) IGNORE NULLS over (ORDER BY NULL)"),
        (
            "row_number() over () + rank() over (partition by k)",
            "row_number() over (ORDER BY NULL) + rank() over (partition by k ORDER BY NULL)",
        ),
        ("nth_value(x, 2) over (rows 1 preceding)", "nth_value(x, 2) over (ORDER BY NULL rows 1 preceding)"),
        ("lead(lag(x) over ()) over (order by y)", "lead(lag(x) over (ORDER BY NULL)) over (order by y)"),
        ("sum(x) over (range unbounded preceding)", "sum(x) over (ORDER BY NULL range unbounded preceding)"),
        (
            "sum(x) filter (where x > 0) over (partition by k range between current row and unbounded following)",
            "sum(x) filter (where x > 0) over (partition by k ORDER BY NULL range between current row and unbounded following)",
        ),
    ],
)  # fmt: skip
def test_what_needs_an_order_has_one(written: str, rewritten: str) -> None:
    assert translated(f"select {written} from t") == f"select {rewritten} from t"


def test_a_named_window_is_written_out() -> None:
    text = "select lag(x) over w, sum(x) over w, ntile(2) over (w) from t window w as (partition by k)"
    window = "(partition by k ORDER BY NULL)"
    assert (
        translated(text)
        == f"select lag(x) over {window}, sum(x) over w, ntile(2) over {window} from t window w as (partition by k)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "select lead(x) over (order by y), rank() over (partition by k order by y desc), sum(x) over () from t",
        "select first_value(x) over (), last_value(x) over (partition by k), array_agg(x) over () from t",
        "select sum(x) over (rows between 1 preceding and current row), lag(x) over w from t window w as (order by y)",
        "select count(*) over from t",
        "select lag(x) over w from t",
        "select max(x) over (partition by range) from t",
    ],
)
def test_other_windows_stay_as_they_are(text: str) -> None:
    assert translated(text) == text


@pytest.mark.parametrize(
    "frame",
    [
        "range between 1 preceding and current row",
        "range interval '1' hour preceding",
        "range between unbounded preceding and 2 following",
    ],
)
def test_a_distance_from_no_value_is_refused(frame: str) -> None:
    text = f"select sum(x) over (partition by k {frame}) from t"
    with pytest.raises(CallRefused) as refused:
        translated(text)
    assert text[refused.value.start : refused.value.end] == frame
    assert refused.value.message.startswith("RANGE measures from the value of ORDER BY, which this window has none of")
