"""Windows of time in Spark's words."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.rewrite.time_windows import time_windows
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.syntax.relation_names import references
from airflow_pipelines.sql.values.durations import duration, microseconds

BOUNDS = "window({0}).`start` AS window_start, window({0}).`end` AS window_end"


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("table(tumble(table t, descriptor(ts), interval '1' minute))", "ts, '1 minutes'"),
        ("tumble(table t, descriptor(ts), interval 90 second, interval '10' second)",
         "ts, '90 seconds', '90 seconds', '10 seconds'"),
        ("table(hop(table t, descriptor(ts), interval '1' minute, interval '1' hour))", "ts, '1 hours', '1 minutes'"),
        ("table(hop(data => table t, timecol => descriptor(ts), slide => interval '1' minute, size => interval '1' hour))",
         "ts, '1 hours', '1 minutes'"),
        ("tumble(data => table t, size => interval '1' day, timecol => descriptor(ts))", "ts, '1 days'"),
    ],
)  # fmt: skip
def test_tables_with_windows(written: str, wanted: str) -> None:
    query = f"select * from {written} as w join u on u.k = w.k"
    assert [reference.name for reference in references(parse_query(query))] == ["t", "u"]
    expected = f"select * from (SELECT *, {BOUNDS.format(wanted)} FROM t) as w join u on u.k = w.k"
    assert time_windows(Edited(query)).text == expected


def test_windows_of_windows() -> None:
    inner = "table(tumble(table t, descriptor(ts), interval '1' minute))"
    outer = f"select * from table(tumble(table (select k, window_end from {inner}), descriptor(window_end), interval '1' hour))"
    text = time_windows(Edited(outer)).text
    assert "tumble" not in text
    assert text.count("window(ts, '1 minutes')") == 2
    assert text.count("window(window_end, '1 hours')") == 2


def test_sessions_are_told_apart_by_their_keys() -> None:
    for table in (
        "session(table t partition by k, j, descriptor(ts), interval '1' minute)",
        "session(table t, descriptor(ts), descriptor(k, j), interval '1' minute)",
    ):
        text = time_windows(Edited(f"select * from table({table})")).text
        assert "PARTITION BY k, j, __session" in text
        assert "LAG(ts) OVER (PARTITION BY k, j ORDER BY ts) + INTERVAL '1 minutes'" in text


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("tumble_start(ts, interval '1' hour)", "window(ts, '1 hours').`start`"),
        ("tumble(ts, interval '1' hour, interval '5' minute)", "window(ts, '1 hours', '1 hours', '5 minutes')"),
        ("hop_end(ts, interval '1' minute, interval '1' hour)", "window(ts, '1 hours', '1 minutes').`end`"),
        ("session_start(ts, interval '1' day)", "session_window(ts, '1 days').`start`"),
        ("window_time(w)", "((w).`end` - INTERVAL '0.000001' SECOND)"),
    ],
)
def test_functions_of_windows(written: str, wanted: str) -> None:
    assert time_windows(Edited(f"select {written} from t")).text == f"select {wanted} from t"


def test_the_column_that_group_by_makes() -> None:
    query = "select window.start, window.end as e from t group by k, window(ts, '1 hour') having window.end > x order by window"
    assert time_windows(Edited(query)).text == (
        "select window(ts, '1 hour').start AS `start`, window(ts, '1 hour').end as e from t group by k, window(ts, '1 hour')"
        " having window(ts, '1 hour').end > x order by window(ts, '1 hour')"
    )
    other = "select window, t.window from t where window = 1"
    assert time_windows(Edited(other)).text == other


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("INTERVAL '1' MINUTE", 60_000_000),
        ("interval 5 seconds", 5_000_000),
        ("INTERVAL '1:30' MINUTE TO SECOND", 90_000_000),
        ("INTERVAL '1 02:00' DAY TO MINUTE", 93_600_000_000),
        ("INTERVAL '1 day 2 hours'", 93_600_000_000),
        ("'90 seconds'", 90_000_000),
        ("interval '0.5' second", 500_000),
        ("interval -'1' hour", -3_600_000_000),
    ],
)
def test_lengths_of_time(written: str, wanted: int) -> None:
    assert microseconds(written) == wanted


def test_a_length_is_shown_in_the_largest_unit_that_fits() -> None:
    assert [duration(text) for text in ("'120 minutes'", "'90 minutes'", "'1 week'")] == ["2 hours", "90 minutes", "7 days"]


@pytest.mark.parametrize("length", ["interval '1' month", "interval k minute", "'soon'", "interval '1:2:3' hour to minute"])
def test_lengths_that_are_no_constants_are_refused_at_their_place(length: str) -> None:
    query = f"select tumble_start(ts, {length}) from t"
    with pytest.raises(SyntaxFailure) as failed:
        time_windows(Edited(query))
    assert query[failed.value.start : failed.value.end] == length


def test_a_table_function_that_lacks_an_argument_is_refused() -> None:
    with pytest.raises(SyntaxFailure, match="HOP takes DATA, TIMECOL, SLIDE, SIZE"):
        parse_query("select * from table(hop(table t, descriptor(ts), interval '1' minute))")


def test_an_argument_that_is_given_twice_is_refused() -> None:
    size = "size => interval '1' minute"
    with pytest.raises(SyntaxFailure, match="TUMBLE has two arguments SIZE"):
        parse_query(f"select * from table(tumble(data => table t, timecol => descriptor(ts), {size}, {size}))")
