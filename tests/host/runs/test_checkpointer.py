"""Checkpoints that a pipeline takes by itself, on a graceful stop, and for tokens."""

from __future__ import annotations

import time

import pytest

from tests.host.driver import ROWS, TOTALS, Make, totals


def test_a_graceful_stop_and_a_start_go_on_where_they_were(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    first = pipeline.stats()["global_metrics"]
    last = pipeline.suspend()
    assert last.checkpoints is not None
    assert [sorted(entry) for entry in last.checkpoints] == [
        ["fingerprint", "identifier", "processed_records", "size", "steps", "uuid"]
    ]
    assert last.checkpoints[0]["processed_records"] == 3
    pipeline.start()
    assert pipeline.statuses() == ["Initializing", "Running"]
    assert totals(pipeline) == TOTALS
    again = pipeline.stats()["global_metrics"]
    assert again["total_processed_records"] == 3
    assert again["initial_start_time"] == first["initial_start_time"]
    pipeline.insert("t", {"id": 4, "v": 1, "name": "b"})
    assert totals(pipeline)[1] == {"name": "b", "total": 26, "n": 2}


@pytest.mark.core
def test_after_a_checkpoint_a_kill_goes_back_to_it(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS[:2])
    assert pipeline.checkpoint() == 0
    pipeline.insert("t", ROWS[2])
    pipeline.kill()
    for _ in range(2):
        pipeline.start()
        assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 2}]
        pipeline.kill()


@pytest.mark.core
def test_a_token_says_whether_a_kill_can_lose_its_rows_and_a_checkpoint_makes_them_durable(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    # Until there is a checkpoint, each step is in the journal.
    first = pipeline.insert("t", ROWS[0])
    assert pipeline.get("completion_status", token=first).json()["durable"] is True
    pipeline.checkpoint()
    second = pipeline.insert("t", ROWS[1])
    complete = pipeline.get("completion_status", token=second)
    assert (complete.status_code, complete.json()["status"], complete.json()["durable"]) == (200, "complete", False)
    deadline = time.monotonic() + 30
    while (answer := pipeline.get("completion_status", token=second, checkpoint=True)).json()["status"] != "complete":
        assert (answer.status_code, answer.json()) == (202, {"status": "inprogress", "step": None, "durable": False})
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert answer.json()["durable"] is True
    pipeline.insert("t", ROWS[2])
    # One checkpoint, however often it was asked.
    assert pipeline.get("checkpoint_status").json()["success"] == 1
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 2}], "the third was promised nothing"


@pytest.mark.core
def test_without_storage_there_is_no_checkpoint_and_no_graceful_stop(make: Make) -> None:
    pipeline = make(storage=False)
    pipeline.start()
    pipeline.insert("t", *ROWS)
    answer = pipeline.post("checkpoint")
    assert (answer.status_code, answer.json()["error_code"]) == (400, "StorageRequired")
    token = pipeline.insert("t", *ROWS)
    assert pipeline.get("completion_status", token=token).json()["durable"] is False
    refused = pipeline.get("completion_status", token=token, checkpoint=True)
    assert (refused.status_code, refused.json()["error_code"]) == (400, "StorageRequired")
    assert pipeline.stats()["suspend_error"] == {"Permanent": ["StorageRequired"]}
    pipeline.post("suspend")
    failed = pipeline.wait_for("Stopped")
    assert failed.error is not None
    assert failed.error["error_code"] == "StorageRequired"


def test_periodic_checkpoints_come_with_at_least_once(make: Make) -> None:
    pipeline = make(fault_tolerance={"model": "at_least_once", "checkpoint_interval_secs": 1})
    pipeline.start()
    pipeline.insert("t", *ROWS)
    deadline = time.monotonic() + 20
    while not pipeline.get("checkpoints").json():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    pipeline.kill()
    pipeline.start()
    assert totals(pipeline) == TOTALS
