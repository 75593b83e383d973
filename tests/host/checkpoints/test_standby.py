"""A pipeline that stands by for another one, whose checkpoints it pulls until it is activated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_pipelines.contract.deployment import RuntimeTransition
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.engine.storage.sync import RemoteCheckpoints
from airflow_pipelines.host.checkpoints.standby import MARKER
from tests.fixtures.s3 import Bucket
from tests.fixtures.sdk import eventually
from tests.host.driver import PROGRAM, Pipeline

Make = Callable[..., Pipeline]


def storage(bucket: Path, **options: Any) -> dict[str, Any]:
    return {"backend": {"name": "file", "config": {"sync": {"bucket": str(bucket), "pull_interval": 0.1, **options}}}}


def push(pipeline: Pipeline) -> str:
    """Make a checkpoint, and copy it; returns its id."""
    pipeline.checkpoint()
    uuid: str = pipeline.post("checkpoint/sync").json()["checkpoint_uuid"]
    eventually(lambda: pipeline.get("checkpoint/sync_status").json()["success"] == uuid)
    return uuid


def activate(pipeline: Pipeline, wait_for: str = "Running", **params: str) -> RuntimeTransition:
    answer = pipeline.post("activate", **params)
    assert answer.status_code == 202, answer.text
    return pipeline.wait_for(wait_for)


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error_code"]


def test_a_standby_follows_and_takes_over(make: Make, tmp_path: Path) -> None:
    """The whole way: pulls while the other one runs, refuses requests, takes the last checkpoint, runs, and marks that it did."""
    primary = make(storage=storage(tmp_path / "bucket"))
    primary.start()
    primary.insert("t", {"id": 1, "v": 11, "name": "a"})
    push(primary)
    standby = make(storage=storage(tmp_path / "own", read_bucket=str(tmp_path / "bucket"), start_from_checkpoint="latest"))
    standby.start(initial="standby", wait_for="Standby")
    assert refused(standby.get("query", sql="SELECT 1")) == (503, "Standby")
    assert refused(standby.post("checkpoint")) == (503, "Standby")
    assert refused(standby.post("resume")) == (400, "InvalidTransition")
    primary.insert("t", {"id": 2, "v": 12, "name": "a"})
    second = push(primary)
    eventually(lambda: f"checkpoint pulled successfully: {second}" in standby.log)
    assert f"belongs to tested (id: pipeline-{primary.pipeline_id})" in standby.log
    primary.insert("t", {"id": 3, "v": 13, "name": "b"})
    third = push(primary)
    primary.kill()

    assert [c["uuid"] for c in activate(standby).checkpoints or []] == []
    assert standby.statuses() == ["Initializing", "Standby", "Standby", "Running"]
    assert (standby.transitions()[2].checkpoints or [])[0]["uuid"] == third
    assert standby.query("SELECT * FROM totals ORDER BY name") == [
        {"name": "a", "total": 23, "n": 2},
        {"name": "b", "total": 13, "n": 1},
    ]
    standby.insert("t", {"id": 4, "v": 14, "name": "b"})
    assert refused(standby.post("activate")) == (400, "InvalidTransition")
    push(standby)
    standby.insert("t", {"id": 5, "v": 15, "name": "b"})
    standby.suspend()

    # What it has by itself is newer than anything in the bucket now, so that it does not stand by again.
    standby.start(initial="standby")
    assert "Standby" not in standby.statuses()
    assert standby.query("SELECT total, n FROM totals WHERE name = 'b'") == [{"total": 42, "n": 3}]


def test_a_standby_keeps_the_newest_two_copies_and_outlives_kills(make: Make, tmp_path: Path) -> None:
    primary = make(storage=storage(tmp_path / "bucket"))
    primary.start()
    standby = make(storage=storage(tmp_path / "bucket"))
    standby.start(initial="standby", wait_for="Standby")
    pushed = []
    for number in range(3):
        primary.insert("t", {"id": number, "v": 1, "name": "a"})
        pushed.append(push(primary))
        eventually(lambda: f"pulled successfully: {pushed[-1]}" in standby.log)
    here = standby.folder / "storage"
    eventually(lambda: sorted(path.stem for path in (here / "checkpoints").glob("*.json")) == pushed[1:])
    standby.kill()
    assert not (here / MARKER).exists()
    standby.start(initial="standby", wait_for="Standby")
    activate(standby, "Paused", initial="Paused")
    assert standby.query("SELECT n FROM totals") == [{"n": 3}]
    assert (here / MARKER).exists()
    # It cannot write where the other one does.
    standby.checkpoint()
    standby.post("checkpoint/sync")
    eventually(lambda: "already owned" in ((standby.get("checkpoint/sync_status").json()["failure"] or {}).get("error") or ""))


def test_a_history_of_its_own_is_set_aside_for_a_newer_copy(make: Make, tmp_path: Path) -> None:
    """The storage has steps after its last checkpoint; another pipeline has gone further meanwhile."""
    old = make(storage=storage(tmp_path / "bucket"))
    old.start()
    old.insert("t", {"id": 1, "v": 1, "name": "old"})
    old.kill()
    primary = make(storage=storage(tmp_path / "bucket"))
    primary.start()
    primary.insert("t", {"id": 2, "v": 2, "name": "new"})
    push(primary)
    primary.kill()
    old.start(initial="standby", wait_for="Standby")
    activate(old)
    assert old.query("SELECT name FROM totals") == [{"name": "new"}]
    assert list((old.folder / "storage" / "set-aside").iterdir())


def test_steps_after_the_newest_copy_are_not_given_up(make: Make, tmp_path: Path) -> None:
    config = {"storage": storage(tmp_path / "bucket"), "fault_tolerance": "exactly_once"}
    pipeline = make(**config)
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 1, "name": "a"})
    push(pipeline)
    pipeline.insert("t", {"id": 2, "v": 2, "name": "a"})
    pipeline.kill()
    pipeline.start(initial="standby", wait_for="Standby")
    activate(pipeline)
    assert pipeline.query("SELECT n FROM totals") == [{"n": 2}]


def test_a_changed_program_is_asked_about_when_it_is_activated(make: Make, tmp_path: Path) -> None:
    primary = make(storage=storage(tmp_path / "bucket"))
    primary.start()
    primary.insert("t", {"id": 1, "v": 1, "name": "a"})
    push(primary)
    changed = PROGRAM.replace("CREATE VIEW large", "CREATE MATERIALIZED VIEW large").replace("v > 10", "v > 0")
    standby = make(changed, storage=storage(tmp_path / "bucket"))
    standby.start(initial="standby", wait_for="Standby", bootstrap_policy="await_approval")
    waiting = activate(standby, "AwaitingApproval")
    assert waiting.details is not None
    assert "approval_diff" in waiting.details
    standby.post("approve")
    standby.wait_for("Running")
    assert standby.query("SELECT id FROM large") == [{"id": 1}]


@pytest.mark.core
def test_standby_without_a_checkpoint(make: Make, tmp_path: Path) -> None:
    nothing = make(storage=storage(tmp_path / "bucket"))
    nothing.start(initial="standby", wait_for="Standby")
    activate(nothing)
    assert nothing.query("SELECT * FROM t") == []
    config = storage(tmp_path / "bucket", start_from_checkpoint="latest", fail_if_no_checkpoint=True)
    strict = make(storage=config)
    strict.start(initial="standby", wait_for="Standby")
    error = activate(strict, "Stopped").error
    assert error is not None
    assert "Checkpoints were not found in source" in error["message"]


@pytest.mark.core
def test_a_standby_ends_when_it_is_told_to(make: Make, tmp_path: Path) -> None:
    standby = make(storage=storage(tmp_path / "bucket"))
    standby.start(initial="standby", wait_for="Standby")
    standby.suspend()
    assert "suspended before it was activated" in standby.log
    standby.start(initial="standby", wait_for="Standby")
    standby.kill()
    eventually(lambda: "stopped without a checkpoint" in standby.log)


def test_an_object_store_that_goes_away_does_not_end_a_standby(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: RemoteCheckpoints) -> None:
        raise SyncError("The checkpoints cannot be listed: nobody answers")

    bucket = tmp_path / "bucket"
    primary = make(storage=storage(bucket))
    primary.start()
    primary.insert("t", {"id": 1, "v": 1, "name": "a"})
    pushed = push(primary)
    standby = make(storage=storage(bucket))
    standby.start(initial="standby", wait_for="Standby")
    monkeypatch.setattr(RemoteCheckpoints, "list", gone)
    eventually(lambda: f"no checkpoint could be pulled, {pushed} stays the newest" in standby.log)
    activate(standby)
    assert standby.query("SELECT n FROM totals") == [{"n": 1}]


@pytest.mark.parametrize("wrong", [{"secret_key": "another"}, {"access_key": "AKIAUNKNOWN"}])
def test_keys_that_do_not_fit_fail_the_start(make: Make, s3: Callable[[], Bucket], wrong: dict[str, str]) -> None:
    standby = make(storage=s3().storage("checkpoints", start_from_checkpoint="latest", **wrong))
    for initial in ("standby", "running"):
        error = standby.start(initial=initial, wait_for="Stopped").error
        assert error is not None
        assert "SignatureDoesNotMatch" in error["message"] or "Forbidden" in error["message"]
        assert "another" not in standby.log
