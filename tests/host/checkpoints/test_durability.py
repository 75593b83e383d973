"""What is committed is there after a kill."""

from __future__ import annotations

import pytest

from tests.host.driver import ROWS, TOTALS, Make, totals


@pytest.mark.parametrize("model", ["none", "at_least_once"])
def test_committed_steps_survive_every_kill_without_a_checkpoint(make: Make, model: str) -> None:
    pipeline = make(fault_tolerance={"model": model, "checkpoint_interval_secs": None})
    pipeline.start()
    pipeline.insert("t", ROWS[0])
    pipeline.insert("t", ROWS[1])
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 2}]
    assert pipeline.get("checkpoints").json() == []
    # The chain: a recovery point, a new incarnation without a checkpoint, killed again.
    pipeline.insert("t", ROWS[2])
    pipeline.kill()
    pipeline.start()
    assert totals(pipeline) == TOTALS
    pipeline.kill()
    pipeline.start()
    assert totals(pipeline) == TOTALS
    assert pipeline.stats()["global_metrics"]["total_processed_records"] == 3


@pytest.mark.core
def test_exactly_once_replays_what_came_after_the_checkpoint(make: Make) -> None:
    pipeline = make(fault_tolerance={"model": "exactly_once", "checkpoint_interval_secs": 60})
    pipeline.start()
    pipeline.insert("t", *ROWS[:2])
    pipeline.checkpoint()
    pipeline.insert("t", ROWS[2])
    pipeline.kill()
    pipeline.start()
    assert pipeline.statuses() == ["Initializing", "Replaying", "Running"]
    assert totals(pipeline) == TOTALS
