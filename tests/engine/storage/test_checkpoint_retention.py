"""Copies of checkpoints that are removed from the object store."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.engine.storage.checkpoint_retention import DAY_S, CheckpointRetention, RemoteGarbage
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.engine.storage.sync import RemoteCheckpoints, SyncConfig
from tests.engine.storage.test_checkpoint import contents
from tests.engine.storage.test_sync import local

NOW = 1_800_000_000.0
IN_A_HUNDRED_YEARS = 5e9


def made_at(seconds: float, number: int = 0) -> UUID:
    return UUID(int=(int(seconds * 1000) << 80) | (7 << 76) | (2 << 62) | number)


@given(
    ages=st.lists(st.integers(0, 100), max_size=20).map(lambda ages: sorted(ages, reverse=True)),
    count=st.integers(0, 25),
    days=st.integers(0, 110),
)
def test_a_copy_goes_only_when_both_limits_allow_it(ages: list[int], count: int, days: int) -> None:
    uuids = [made_at(NOW - age * DAY_S, number) for number, age in enumerate(ages)]
    outdated = CheckpointRetention(count, days).find_outdated(uuids, NOW)
    for place, (uuid, age) in enumerate(zip(uuids, ages, strict=True)):
        newer = len(uuids) - 1 - place
        assert (uuid in outdated) == (age > days and newer >= max(count, 1))


def test_files_go_with_the_last_copy_that_needs_them(tmp_path: Path) -> None:
    remote = RemoteCheckpoints(SyncConfig(str(tmp_path / "bucket")))
    store, files = local(tmp_path / "local")
    shared, old, new = (files.add(name) for name in ("shared", "old", "new"))
    first = store.save(contents(1, shared, old)).uuid
    second = store.save(contents(2, shared, new)).uuid
    for uuid in (first, second):
        remote.push(store, files, uuid)
    garbage = RemoteGarbage(remote)
    assert garbage.collect(CheckpointRetention(2, 0), IN_A_HUNDRED_YEARS, but=second) == 0
    assert garbage.collect(CheckpointRetention(1, 100_000), IN_A_HUNDRED_YEARS, but=second) == 0
    # What was asked for by name is not gone at once, though it is older than what is kept.
    assert garbage.collect(CheckpointRetention(1, 0), IN_A_HUNDRED_YEARS, but=first) == 0
    assert garbage.collect(CheckpointRetention(1, 0), IN_A_HUNDRED_YEARS, but=second) == 1
    assert remote.list() == (second,)
    assert {path.name for path in (tmp_path / "bucket" / "batches").iterdir()} == {shared, new}
    # What is gone is sent again when a later checkpoint needs it.
    third = store.save(contents(3, old)).uuid
    assert remote.push(store, files, third) == 1
    assert garbage.collect(CheckpointRetention(1, 0), IN_A_HUNDRED_YEARS, but=third) == 1
    fresh, fresh_files = local(tmp_path / "fresh")
    remote.pull(fresh, fresh_files, third)
    assert {path.name for path in (tmp_path / "bucket" / "batches").iterdir()} == {old}


def test_no_file_goes_while_a_copy_that_may_need_it_cannot_be_read(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    remote = RemoteCheckpoints(SyncConfig(str(bucket)))
    store, files = local(tmp_path / "local")
    uuids = [store.save(contents(step, files.add(str(step)))).uuid for step in range(3)]
    for uuid in uuids[1:]:
        remote.push(store, files, uuid)
    (bucket / "checkpoints" / f"{uuids[2]}.json").write_text("{}")
    with pytest.raises(SyncError, match="is damaged"):
        RemoteGarbage(remote).collect(CheckpointRetention(1, 0), IN_A_HUNDRED_YEARS, but=uuids[2])
    assert len(remote.list()) == 2
    assert len(list((bucket / "batches").iterdir())) == 2
