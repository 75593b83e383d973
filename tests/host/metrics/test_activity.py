"""What has gone through a pipeline in the last minutes."""

from __future__ import annotations

import pytest

from airflow_pipelines.host.metrics.activity import COARSE_S, EVERY_S, KEPT, Activity, Counter, Measure, counters_of

BEGIN_S = 1_800_000_000.0
TOTAL: Counter = (Measure.PROCESSED, "")


def counted(rows: float, **more: float) -> dict[Counter, float]:
    return {TOTAL: rows, (Measure.BUSY, ""): rows / 1000, **counters_of(Measure.RELATIONS, more)}


def test_rates_are_what_counters_have_grown_in_each_second() -> None:
    activity = Activity()
    activity.sample(lambda: counted(100), BEGIN_S)
    # One that asks too early gets no sample of its own: counters are not even read.
    activity.sample(lambda: pytest.fail("read too early"), BEGIN_S + 1)
    activity.sample(lambda: counted(300, t=200) | counters_of(Measure.VIEWS, {"v": 7.5}), BEGIN_S + 2)
    activity.sample(lambda: counted(300, t=200) | counters_of(Measure.VIEWS, {"v": 7.5}), BEGIN_S + 6)
    shown = activity.to_wire()
    assert (shown["begin"], shown["t"]) == (int(BEGIN_S * 1000), [int((BEGIN_S + 2) * 1000), int((BEGIN_S + 6) * 1000)])
    assert (shown["rows_per_second"], shown["busy"]) == ([100, 0], [0.1, 0])
    # Times are those of the interval, and what was not known before had counted nothing.
    assert (shown["relations"], shown["views_ms"]) == ({"t": [100, 0]}, {"v": [7.5, 0]})
    assert activity.to_wire(since_ms=shown["t"][0])["rows_per_second"] == [0]
    assert activity.to_wire(since_ms=shown["t"][0])["begin"] == shown["t"][0]
    nothing = activity.to_wire(since_ms=shown["t"][1])
    assert (nothing["begin"], nothing["t"]) == (None, [])


def test_a_counter_that_begins_anew_is_not_known_for_that_interval() -> None:
    activity = Activity()
    for at, rows in ((0, 500), (2, 20), (4, 40)):
        activity.sample(lambda rows=rows: counted(rows), BEGIN_S + at)
    assert activity.to_wire()["rows_per_second"] == [None, 10]


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    activity = Activity()
    for at, rows in ((0, 0), (-3600, 10), (-3598, 30)):
        activity.sample(lambda rows=rows: counted(rows), BEGIN_S + at)
    assert activity.to_wire()["rows_per_second"] == [None, 10]


def test_only_the_last_minutes_are_kept() -> None:
    activity = Activity()
    for number in range(KEPT + 50):
        activity.sample(lambda number=number: counted(number), BEGIN_S + number * EVERY_S)
    shown = activity.to_wire()
    assert len(shown["t"]) == len(shown["rows_per_second"]) == KEPT
    assert shown["t"][-1] == int((BEGIN_S + (KEPT + 49) * EVERY_S) * 1000)


def test_a_sparkline_has_a_number_for_each_ten_seconds_and_none_before_the_first_sample() -> None:
    activity = Activity()
    assert set(activity.sparkline(int(BEGIN_S * 1000))["rows_per_second"]) == {None}
    assert activity.rate(Measure.PROCESSED, 0) is None
    for second in range(0, 41, 2):
        # 5 rows in each second, and 50 from the twentieth on.
        rows = 5 * second + 45 * max(0, second - 20)
        activity.sample(lambda rows=rows: counted(rows), BEGIN_S + second)
    shown = activity.sparkline(int((BEGIN_S + 41) * 1000))
    assert (shown["until"], shown["every_ms"]) == (int((BEGIN_S + 40) * 1000), COARSE_S * 1000)
    assert len(shown["rows_per_second"]) == KEPT * EVERY_S / COARSE_S
    assert shown["rows_per_second"][-5:] == [None, 5, 5, 50, 50]
    assert activity.rate(Measure.PROCESSED, int((BEGIN_S + 30) * 1000)) == 50
