"""Which checkpoint a start takes: a local one, or one of the buckets."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.engine.storage.checkpoint import CheckpointStore
from airflow_pipelines.engine.storage.checkpoint_sources import CheckpointSources
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.engine.storage.sync import Owner, RemoteCheckpoints, SyncConfig
from tests.engine.storage.test_checkpoint import Files, contents
from tests.engine.storage.test_sync import local


def sources(config: SyncConfig, store: CheckpointStore, files: Files, warnings: list[str] | None = None) -> CheckpointSources:
    warned = [] if warnings is None else warnings
    return CheckpointSources(config, Owner("pipeline-1", "one"), store, files, warned.append, lambda: None)


def test_a_local_checkpoint_is_preferred(tmp_path: Path) -> None:
    config = SyncConfig(str(tmp_path / "bucket"), start_from_checkpoint="latest")
    store, files = local(tmp_path / "one")
    uuid = store.save(contents(1)).uuid
    assert sources(config, store, files).resolve() == uuid


def test_an_unknown_checkpoint(tmp_path: Path) -> None:
    store, files = local(tmp_path / "one")
    wanted = UUID("01a1fb81-a243-7bfc-a30f-6bf2b90d3657")
    lenient = SyncConfig(str(tmp_path / "bucket"), start_from_checkpoint=str(wanted))
    assert sources(lenient, store, files).resolve() is None
    strict = SyncConfig(str(tmp_path / "bucket"), start_from_checkpoint=str(wanted), fail_if_no_checkpoint=True)
    with pytest.raises(SyncError, match=f"{wanted}.*were not found in source"):
        sources(strict, store, files).resolve()


def test_bad_configuration(tmp_path: Path) -> None:
    store, files = local(tmp_path)
    with pytest.raises(SyncError, match="'latest' or a checkpoint's id"):
        sources(SyncConfig("/x", start_from_checkpoint="newest"), store, files).resolve()


def test_the_read_bucket_is_asked_second(tmp_path: Path) -> None:
    store, files = local(tmp_path / "one")
    uuid = store.save(contents(1, files.add("a"))).uuid
    RemoteCheckpoints(SyncConfig(str(tmp_path / "other"))).push(store, files, uuid)
    config = SyncConfig(str(tmp_path / "bucket"), read_bucket=str(tmp_path / "other"), start_from_checkpoint="latest")
    fresh, fresh_files = local(tmp_path / "two")
    assert sources(config, fresh, fresh_files).resolve() == uuid


def test_the_newest_of_all_buckets_is_pulled_unless_the_local_store_has_a_newer_one(tmp_path: Path) -> None:
    bucket, other = str(tmp_path / "bucket"), str(tmp_path / "other")
    config = SyncConfig(bucket, read_bucket=other)
    store, files = local(tmp_path / "one")
    fresh, fresh_files = local(tmp_path / "two")
    standing_by = sources(config, fresh, fresh_files)
    assert standing_by.pull_newest() is None
    first = store.save(contents(1, files.add("a"))).uuid
    RemoteCheckpoints(config, other).push(store, files, first)
    assert standing_by.pull_newest() == standing_by.pull_newest() == first
    second = store.save(contents(2, files.add("b"))).uuid
    RemoteCheckpoints(config, bucket).push(store, files, second)
    assert standing_by.pull_newest() == second
    assert [info.uuid for info in fresh.list_checkpoints()] == [second, first]
    fresh.save_recovery_point(contents(3))
    assert standing_by.pull_newest() is None


def test_only_the_wanted_checkpoint_is_pulled(tmp_path: Path) -> None:
    config = SyncConfig(str(tmp_path / "bucket"))
    store, files = local(tmp_path / "one")
    first, second = (store.save(contents(step, files.add(str(step)))).uuid for step in (1, 2))
    for uuid in (first, second):
        RemoteCheckpoints(config).push(store, files, uuid)
    fresh, fresh_files = local(tmp_path / "two")
    assert sources(SyncConfig(config.bucket, start_from_checkpoint=str(first)), fresh, fresh_files).pull_newest() == first
    assert [info.uuid for info in fresh.list_checkpoints()] == [first]


@pytest.mark.parametrize("owner", [json.dumps({"owner": "pipeline-2"}), "no owner at all"])
def test_a_bucket_of_others_is_read_with_one_warning(tmp_path: Path, owner: str) -> None:
    config = SyncConfig(str(tmp_path / "bucket"))
    store, files = local(tmp_path / "one")
    fresh, fresh_files = local(tmp_path / "two")
    warnings: list[str] = []
    reader = sources(config, fresh, fresh_files, warnings)
    for step in (1, 2):
        uuid = store.save(contents(step, files.add(str(step)))).uuid
        RemoteCheckpoints(config).push(store, files, uuid)
        (tmp_path / "bucket" / "owner.json").write_text(owner)
        assert reader.pull_newest() == uuid
    assert len(warnings) == 1
    assert str(tmp_path / "bucket") in warnings[0]


def test_what_is_pulled_can_be_broken_off(tmp_path: Path) -> None:
    config = SyncConfig(str(tmp_path / "bucket"))
    store, files = local(tmp_path / "one")
    uuid = store.save(contents(1, files.add("a"), files.add("b"))).uuid
    RemoteCheckpoints(config).push(store, files, uuid)
    fresh, fresh_files = local(tmp_path / "two")
    checks: list[int] = []

    def check() -> None:
        checks.append(1)
        if len(checks) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CheckpointSources(config, Owner("pipeline-1", "one"), fresh, fresh_files, print, check).pull_newest()
    assert fresh.list_checkpoints() == []
