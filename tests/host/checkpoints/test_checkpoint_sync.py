"""Copies of checkpoints to an object store that does not answer: nobody waits without end, and it is said what for."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from airflow_pipelines.engine.storage.checkpoint_retention import CheckpointRetention
from airflow_pipelines.engine.storage.sync import SyncConfig
from airflow_pipelines.host.checkpoints import checkpoint_sync
from airflow_pipelines.host.checkpoints.checkpoint_sync import CheckpointSync
from airflow_pipelines.host.state.pipeline_log import PipelineLog


def test_a_copy_that_hangs_holds_up_neither_the_next_nor_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()

    class Silent:
        url = "s3://bucket"

        def __init__(self, _: SyncConfig) -> None:
            pass

        def claim(self, _: str) -> None:
            answer.wait(30)

        def push(self, *_: object) -> int:
            return 0

        def list(self) -> tuple[UUID, ...]:
            return ()

    monkeypatch.setattr(checkpoint_sync, "RemoteCheckpoints", Silent)
    monkeypatch.setattr(checkpoint_sync, "COPY_S", 0.2)
    newest: Any = SimpleNamespace(uuid=UUID(int=1))
    durability: Any = SimpleNamespace(check=lambda: None, batches=None, checkpoints=SimpleNamespace(latest_listed=lambda: newest))
    log = PipelineLog(tmp_path / "p.log", "p")
    sync = CheckpointSync(SyncConfig("bucket"), CheckpointRetention(), durability, "me", log, lambda _: None)
    sync.request()
    newest.uuid = UUID(int=2)
    began = time.monotonic()
    sync.request()
    while sync.status()["failure"] is None:
        assert time.monotonic() - began < 10
        time.sleep(0.02)
    assert sync.status()["failure"]["uuid"] == str(UUID(int=2))
    assert "has not ended within 0.2 s: the object store does not answer" in sync.status()["failure"]["error"]

    sync.request()
    sync.wait(0.1)
    text = log.path.read_text()
    assert "waiting for the sync of a checkpoint, for 0.1 s at most" in text
    assert "has not ended within 0.1 s and is given up" in text
    answer.set()
    sync.wait(5)
    log.close()
