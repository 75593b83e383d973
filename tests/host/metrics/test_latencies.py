"""How long batches take until a step has consumed them."""

from __future__ import annotations

import pytest

from airflow_pipelines.host.inputs.inputs import Consumed, InputEndpoint
from airflow_pipelines.host.metrics import latencies


def test_the_latency_of_all_but_the_slowest_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(latencies.time, "monotonic", lambda: now)
    endpoint = InputEndpoint("t.c", "t")

    def p99() -> int | None:
        metrics = endpoint.to_wire()["metrics"]
        found: int | None = metrics["processing_latency_p99_micros"]
        return found

    # One batch of a hundred waits for a minute, the others for two seconds; batches without records are none.
    endpoint.count_received(10, 80)
    endpoint.count_received(0, 5)
    now += 60
    endpoint.consume(Consumed(10, 80))
    assert p99() == 60_000_000
    for _ in range(99):
        endpoint.count_received(3, 8)
    now += 2
    endpoint.consume(Consumed(2, 8))
    assert p99() == 60_000_000, "the first of them is half processed"
    endpoint.consume(Consumed(99 * 3 - 2, 8))
    assert p99() == 2_000_000
    now += latencies.KEPT_S + 1
    assert p99() is None
