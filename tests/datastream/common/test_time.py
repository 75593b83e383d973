from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_pipelines.datastream.common.time import Duration, Instant, Time


def test_durations() -> None:
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440) == Duration.of_seconds(86400)
    assert Duration.of_seconds(1, 5).to_nanos() == 1_000_000_005
    assert (Duration.of_millis(1500).to_millis(), Duration.of_nanos(1_999_999).to_millis()) == (1500, 1)
    with pytest.raises(TypeError, match=r"seconds takes an int, not 1.5 \(float\)"):
        Duration.of_seconds(1.5)  # type: ignore[arg-type]


def test_times() -> None:
    assert Time.days(1) == Time.hours(24) == Time.minutes(1440) == Time.seconds(86400) == Time.milliseconds(86_400_000)
    assert Time.seconds(2).to_milliseconds() == 2000
    assert len({Time.seconds(1), Time.milliseconds(1000)}) == 1


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (Instant.EPOCH, "1970-01-01T00:00:00Z"),
        (Instant.of_epoch_milli(-1), "1969-12-31T23:59:59.999Z"),
        (Instant(0, 1_000), "1970-01-01T00:00:00.000001Z"),
        (Instant(0, 1), "1970-01-01T00:00:00.000000001Z"),
        (Instant(-62135596800), "0001-01-01T00:00:00Z"),
        (Instant(10**15), "Instant(seconds=1000000000000000, nanos=0)"),
    ],
)
def test_instants(instant: Instant, text: str) -> None:
    assert str(instant) == text


def test_instants_of_datetimes() -> None:
    value = datetime(2021, 2, 3, 4, 5, 6, 7000)
    assert Instant.of_datetime(value) == Instant.of_datetime(value.replace(tzinfo=UTC))
    assert Instant.of_datetime(value).to_epoch_milli() == int(value.replace(tzinfo=UTC).timestamp() * 1000)
    with pytest.raises(ValueError, match="at most 999999999"):
        Instant(0, 10**9)
