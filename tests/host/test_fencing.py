"""Two runs over one storage folder whose lock does not keep them apart: only the later one writes, nothing is there twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.checkpoint import CheckpointContents, CheckpointStore
from airflow_pipelines.engine.storage.durable import write_atomically
from airflow_pipelines.engine.storage.errors import MissingError, StorageError
from airflow_pipelines.engine.storage.fence import FILE, Fence, OvertakenError
from airflow_pipelines.engine.storage.fsck import check_storage
from airflow_pipelines.engine.storage.journal import read_journal
from airflow_pipelines.host.state.failures import as_problem
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
    assert as_problem(raised.value).code == "RuntimeError.StorageLocked"
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
    monkeypatch.setattr("airflow_pipelines.engine.storage.fence._read", lambda _: 6)
    first, second = (Fence.take(tmp_path, lambda: 0) for _ in range(2))
    assert first.epoch == second.epoch == 7
    second.check()
    with pytest.raises(OvertakenError):
        first.check()


def test_a_storage_that_is_removed_under_a_running_pipeline_is_noticed_by_its_next_step(old: Written) -> None:
    (old.folder / FILE).unlink()
    with pytest.raises(MissingError, match="the storage was removed while the pipeline ran"):
        old.step()


def leave_behind(old: Written, contents: CheckpointContents, monkeypatch: pytest.MonkeyPatch) -> UUID:
    """The old run puts a manifest in place, and dies before it looks whether it is still the newest run."""
    checkpoints = old.durability.checkpoints

    class Died(Exception):
        pass

    def die(_document: object) -> None:
        raise Died

    there = on_disk(old.folder)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "fence", None)
        patched.setattr(checkpoints, "_note", die)
        with pytest.raises(Died):
            checkpoints.save(contents)
    (left,) = on_disk(old.folder) - there
    return left


def on_disk(folder: Path) -> set[UUID]:
    return {UUID(path.stem) for path in (folder / "checkpoints").glob("*.json")}


def test_a_checkpoint_that_an_overtaken_run_left_is_not_offered_and_goes(old: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = old.contents()
    new = later(old.folder)
    listed = new.durability.checkpoints.list_checkpoints()
    left = leave_behind(old, contents, monkeypatch)
    new.step()
    assert new.durability.checkpoints.list_checkpoints() == listed
    info = new.checkpoint()
    assert info.uuid > left
    assert new.durability.checkpoints.list_checkpoints() == [info, listed[0]]
    assert on_disk(old.folder) == {info.uuid, listed[0].uuid}
    new.close()
    assert read_store(old.folder)[1] == 14


def test_a_checkpoint_that_an_overtaken_run_left_is_not_started_from(old: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later run was killed, too, before its next checkpoint: only the journal tells then."""
    contents = old.contents()
    new = later(old.folder)
    left = leave_behind(old, contents, monkeypatch)
    new.step()
    listed = new.durability.checkpoints.list_checkpoints()
    new.close()
    report = check_storage(old.folder)
    assert report.is_good
    assert [finding.summary for finding in report.findings if finding.part == f"checkpoint {left}"] == [
        "left over from a run that a later one overtook, and acknowledged to nobody: not used, goes with the next checkpoint"
    ]
    again = Written(old.folder)
    assert again.snapshot.step == 14
    assert again.durability.checkpoints.list_checkpoints() == listed
    again.durability.save_recovery_point(again.contents())
    again.step()
    again.close()
    rows, step, *_ = read_store(old.folder)
    assert (len(rows), len(set(rows)), step) == (150, 150, 15)
    # Going back to an older one sets it aside with all that is newer, so that nothing takes it for the newest again.
    assert read_store(old.folder, go_back_to=listed[-1].uuid)[1] == 3
    assert on_disk(old.folder) == {listed[-1].uuid}
    assert read_store(old.folder)[1] == 3


def test_a_checkpoint_that_the_later_run_goes_on_from_stays(old: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later run begins when the manifest is in place, and before the old one has looked again."""
    started: list[Written] = []

    def write_and_be_overtaken(path: Path, content: bytes, guard: Callable[[], None]) -> None:
        write_atomically(path, content, guard)
        if not started:
            started.append(Written(old.folder))
            started[0].step()

    contents = old.contents()
    with monkeypatch.context() as patched:
        patched.setattr("airflow_pipelines.engine.storage.checkpoint.write_atomically", write_and_be_overtaken)
        with pytest.raises(OvertakenError):
            old.durability.save_checkpoint(contents)
    started[0].close()
    assert read_store(old.folder)[1] == 14


def test_a_note_that_cannot_be_read_leaves_the_choice_to_a_person(old: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = old.contents()
    new = later(old.folder)
    leave_behind(old, contents, monkeypatch)
    new.step()
    new.close()
    (old.folder / "newest.json").write_bytes(b"{")
    with pytest.raises(StorageError, match="is of a run that a later one had replaced"):
        read_store(old.folder)
