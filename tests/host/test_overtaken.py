"""A pipeline that does nothing while another run takes its storage over: it ends within seconds, and nothing is written twice."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_pipelines.engine.storage.fence import FILE, Fence, OvertakenError
from airflow_pipelines.host.state import fence_watch
from airflow_pipelines.host.state.fence_watch import FenceWatch
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from tests.host.driver import Pipeline

TOLD_S = 10.0


@pytest.mark.core
def test_an_idle_pipeline_notices_that_it_was_overtaken(make: Callable[..., Pipeline], tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    connectors = json.dumps([{"transport": {"name": "file_output", "config": {"path": str(output)}}, "format": {"name": "csv"}}])
    program = (
        "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY) WITH ('materialized' = 'true');"
        f"CREATE VIEW v WITH ('connectors' = '{connectors}') AS SELECT id FROM t;"
    )
    fault_tolerance = {"model": "exactly_once", "checkpoint_interval_secs": None}
    old, new = make(program, fault_tolerance=fault_tolerance), make(program, fault_tolerance=fault_tolerance)
    new.folder = old.folder
    old.start()
    old.insert("t", {"id": 1})
    (old.folder / "storage" / "lock").unlink()
    # Its output waits for the file, which the old run holds until it notices.
    new.start()
    ended = old.wait_for("Stopped", TOLD_S)
    assert ended.error is not None
    assert ended.error["error_code"] == "RuntimeError.StorageLocked"
    assert "was taken over by a later run" in ended.error["message"]
    new.insert("t", {"id": 2})
    assert new.query("SELECT id FROM t ORDER BY id") == [{"id": 1}, {"id": 2}]
    assert new.stats()["outputs"][0]["fatal_error"] is None
    assert output.read_text() == "1,1\n2,1\n"


def test_a_storage_that_is_away_for_a_while_ends_no_idle_pipeline(
    make: Callable[..., Pipeline], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fence_watch, "LOOK_S", 0.2)
    pipeline = make(fault_tolerance={"model": "exactly_once", "checkpoint_interval_secs": None})
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 1, "name": "a"})
    storage, away = pipeline.folder / "storage", tmp_path / "away"
    storage.rename(away)
    deadline = time.monotonic() + TOLD_S
    while "the storage cannot be used at the moment" not in pipeline.log:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not storage.exists(), "nothing is made in its place"
    away.rename(storage)
    pipeline.insert("t", {"id": 2, "v": 2, "name": "a"})
    assert pipeline.query("SELECT total FROM totals") == [{"total": 3}]

    # A storage that takes its time delays those who wait for it and nobody else.
    with monkeypatch.context() as slow:
        real = os.fsync
        slow.setattr(os, "fsync", lambda descriptor: (time.sleep(1.0), real(descriptor))[1])
        with ThreadPoolExecutor(1) as pool:
            inserted = pool.submit(pipeline.get, "query", sql="INSERT INTO t VALUES (4, 4, 'a')")
            while not inserted.done():
                began = time.monotonic()
                assert pipeline.stats()["global_metrics"]["state"] == "Running"
                assert time.monotonic() - began < 5
            assert inserted.result().status_code == 200
    pipeline.get("query", sql="DELETE FROM t WHERE id = 4")

    # What must be written while it is away cannot be acknowledged.
    storage.rename(away)
    refused = pipeline.get("query", sql="INSERT INTO t VALUES (3, 3, 'a')")
    assert refused.status_code >= 400, refused.text
    ended = pipeline.wait_for("Stopped", TOLD_S)
    assert ended.error is not None
    assert ended.error["error_code"] == "RuntimeError.StorageMissing"
    assert not storage.exists()
    away.rename(storage)
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT id FROM t ORDER BY id") == [{"id": 1}, {"id": 2}]


def test_a_look_is_due_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = PipelineLog(tmp_path / "p.log", "p")
    fence = Fence.take(tmp_path, lambda: 0)
    watch = FenceWatch(log)
    watch.begin(fence.check)
    Fence.take(tmp_path, lambda: 0)
    assert 0 < watch.until_due <= fence_watch.LOOK_S
    watch.look()
    monkeypatch.setattr(fence_watch, "LOOK_S", 0.0)
    with pytest.raises(OvertakenError):
        watch.look()
    (tmp_path / FILE).unlink()
    watch.look()
    assert "the storage cannot be used at the moment" in log.path.read_text()
    log.close()
