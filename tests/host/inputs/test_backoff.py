"""Waits before what has failed is tried again."""

from __future__ import annotations

from airflow_pipelines.host.inputs.backoff import BackOff


def test_waits_double_up_to_the_longest_one_and_are_none_longer() -> None:
    for _ in range(50):
        back_off = BackOff()
        waits = [back_off.next_s() for _ in range(40)]
        expected = [min(0.5 * 2**number, 30.0) for number in range(40)]
        assert all(0.8 * longest <= wait <= longest for wait, longest in zip(waits, expected, strict=True))
        assert len(set(waits[10:])) > 1, "connectors of one server do not ask it at once"
        back_off.reset()
        assert back_off.next_s() <= 0.5
