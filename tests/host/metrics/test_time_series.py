"""The samples of the last minute."""

from __future__ import annotations

import asyncio

import pytest

from airflow_pipelines.host.metrics import time_series
from airflow_pipelines.host.metrics.time_series import KEPT, Sample, TimeSeries


def test_the_newest_samples_are_kept_and_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_series, "EVERY_S", 0.01)
    series = TimeSeries()
    for at in range(1, KEPT + 3):
        series.add(Sample(at, at * 10, 5, 7))
    shown = series.to_wire()
    assert shown["samples"][0] == {"t": 3, "r": 30, "m": 5, "s": 7}
    assert len(shown["samples"]) == KEPT
    assert shown["now"] > 1_700_000_000_000

    async def followed() -> list[int]:
        told: list[int] = []
        async for sample in series.stream(lambda: 1000 not in told):
            told.append(sample["t"])
            if len(told) == KEPT:
                series.add(Sample(1000, 0, 0, 0))
        return told

    assert asyncio.run(asyncio.wait_for(followed(), 5)) == [*range(3, KEPT + 3), 1000]
