"""Two runs over one storage folder whose lock does not keep them apart: only the later one writes, nothing is there twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from airflow_pipelines.engine.checkpoint import CheckpointStore
from airflow_pipelines.engine.fence import FILE, Fence, OvertakenError
from airflow_pipelines.engine.journal import read_journal
from airflow_pipelines.engine.storage import BatchStore
from airflow_pipelines.engine.storage_errors import MissingError, StorageError
from airflow_pipelines.host.failures import as_problem
from tests.host.saved import Written, make_store, read_store


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Written]:
    """A run whose lock was removed: another one can begin."""
    make_store(tmp_path)
    pipeline = Written(tmp_path)
    pipeline.durability.save_recovery_point(pipeline.contents())
    pipeline.step()
    (tmp_path / "lock").unlink()
    yield pipeline
    pipeline.close()


def later(folder: Path) -> Written:
    """The run that takes over, as far as a host comes before it takes rows."""
    pipeline = Written(folder)
    pipeline.durability.save_recovery_point(pipeline.contents())
    return pipeline


WRITES: dict[str, Callable[[Written], object]] = {
    "step": lambda pipeline: pipeline.step(),
    "large step": lambda pipeline: pipeline.step(width=20_000),
    "checkpoint": lambda pipeline: pipeline.durability.save_checkpoint(pipeline.contents()),
    "recovery point": lambda pipeline: pipeline.durability.save_recovery_point(pipeline.contents()),
    "removal": lambda pipeline: pipeline.durability.collect_garbage(),
    "sync": lambda pipeline: pipeline.durability.check(),
}


def test_an_overtaken_run_writes_nothing_more(old: Written) -> None:
    folder = old.folder
    new = later(folder)
    new.step()
    for name, write in WRITES.items():
        with pytest.raises(OvertakenError, match=rf"was taken over by a later run .process {os.getpid()} on .*writes nothing more"):
            write(old)
        assert read_store_of(new)[1] == 14, name
    with pytest.raises(OvertakenError) as raised:
        old.durability.commit(99, {}, {}, *([None] * 4))  # type: ignore[arg-type]
    assert as_problem(raised.value).error_code == "RuntimeError.StorageLocked"
    new.step()
    new.checkpoint()
    new.step()
    new.close()
    assert [path for path in folder.rglob("*.tmp")] == []
    rows, step, *_ = read_store(folder)
    assert (len(rows), len(set(rows)), step) == (160, 160, 16)


def read_store_of(pipeline: Written) -> tuple[int, int]:
    """What a start would find while the pipeline runs, without becoming a run of its own."""
    folder = pipeline.folder
    checkpoints = CheckpointStore(folder, BatchStore(folder / "batches"))
    base, journal = checkpoints.latest(), read_journal(folder)
    assert base is not None
    assert journal is not None
    assert journal.header.base == base.uuid
    return base.contents.step, journal.records[-1].step


@pytest.mark.parametrize("write", WRITES, ids=list(WRITES))
@pytest.mark.parametrize("when", ["before it is on disk", "after it is on disk"])
def test_a_run_that_is_overtaken_in_the_middle_of_a_write_does_not_acknowledge_it(
    old: Written, write: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later run begins at the first flush of the write: what is not acknowledged may be there or not, and nothing twice."""
    started: list[Written] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if started or when == "after it is on disk":
            real(descriptor)
        if not started:
            monkeypatch.setattr(os, "fsync", real)
            started.append(later(old.folder))

    before = old.snapshot.step
    monkeypatch.setattr(os, "fsync", fsync)
    acknowledged = before
    with suppress(OvertakenError):
        WRITES[write](old)
        # It flushes nothing, so that the other one has yet to begin.
        acknowledged = old.snapshot.step
        assert not started
    monkeypatch.setattr(os, "fsync", real)
    new = started[0] if started else later(old.folder)
    assert new.snapshot.step in (acknowledged, before + 1)
    assert new.snapshot.step >= acknowledged
    new.step()
    with pytest.raises(OvertakenError):
        old.step()
    expected = new.snapshot.step
    new.close()
    rows, step, *_ = read_store(old.folder)
    assert (len(rows), len(set(rows)), step) == (10 * expected, 10 * expected, expected)


def test_epochs_grow_also_when_their_file_is_lost(tmp_path: Path) -> None:
    make_store(tmp_path)
    checkpoints = CheckpointStore(tmp_path, BatchStore(tmp_path / "batches"))
    assert checkpoints.greatest_epoch() == 1
    journal = read_journal(tmp_path)
    assert journal is not None
    assert journal.header.epoch == 1
    assert [Fence.take(tmp_path, checkpoints.greatest_epoch).epoch for _ in range(2)] == [2, 3]
    for content in (b"{", None):
        (tmp_path / FILE).unlink()
        if content is not None:
            (tmp_path / FILE).write_bytes(content)
        assert Fence.take(tmp_path, checkpoints.greatest_epoch).epoch == 2


def test_two_runs_that_take_the_same_epoch_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.engine.fence._read", lambda _: 6)
    first, second = (Fence.take(tmp_path, lambda: 0) for _ in range(2))
    assert first.epoch == second.epoch == 7
    second.check()
    with pytest.raises(OvertakenError):
        first.check()


def test_a_storage_that_is_removed_under_a_running_pipeline_is_noticed_by_its_next_step(old: Written) -> None:
    (old.folder / FILE).unlink()
    with pytest.raises(MissingError, match="the storage was removed while the pipeline ran"):
        old.step()


def test_a_checkpoint_of_a_replaced_run_does_not_hide_the_journal_of_the_later_one(old: Written) -> None:
    new = later(old.folder)
    new.step()
    new.step()
    # As if the old run had died after it put its manifest in place, before it could look again.
    current, new.durability.checkpoints.fence = new.durability.checkpoints.fence, None
    old.durability.checkpoints.fence = None
    old.durability.checkpoints.save(old.contents())
    new.durability.checkpoints.fence = current
    new.close()
    with pytest.raises(StorageError, match="is of a run that a later one had replaced"):
        read_store(old.folder)
