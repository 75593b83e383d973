"""Checkpoints on files only: contents survive, a kill anywhere leaves the state before or after, old ones go."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.engine.checkpoint import CheckpointContents, CheckpointStore, Counters, DamagedCheckpointError
from tests.engine.crash import at_every_boundary


class Files:
    """A batch store of plain files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        return self.folder / name

    def add(self, name: str, content: bytes = b"rows") -> str:
        self.path(name).write_bytes(content)
        return name

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def garbage_collect(self, keep: set[str]) -> None:
        for name in self.names() - keep:
            self.path(name).unlink()


def contents(step: int, *files: str) -> CheckpointContents:
    return CheckpointContents(
        program="CREATE TABLE t (x int)",
        fingerprints={"tables": {"t": "f"}},
        program_hash=2**63 + 5,
        step=step,
        snapshot={"step": step, "traces": {}},
        files=files,
        connectors={"t.c": {"direction": "input", "position": {"offset": step}, "figures": {"records": 3}, "paused": True}},
        counters=Counters(input_records=step * 10, processed_records=step * 10),
        initial_start_time=1700000000.5,
    )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "batches")


@pytest.fixture
def store(tmp_path: Path, files: Files) -> CheckpointStore:
    return CheckpointStore(tmp_path, files)


def test_what_was_saved_is_loaded(store: CheckpointStore, files: Files) -> None:
    saved = contents(4, files.add("a"), files.add("b"))
    info = store.save(saved)
    loaded = store.latest()
    assert loaded is not None
    assert loaded.uuid == info.uuid
    assert loaded.listed
    assert loaded.contents == saved
    assert store.load(info.uuid).contents == saved


def test_list_entries_have_the_wire_fields(store: CheckpointStore, files: Files) -> None:
    info = store.save(contents(4, files.add("a", b"12345")))
    assert store.listed()[0].to_wire() == {
        "uuid": str(info.uuid),
        "identifier": None,
        "fingerprint": 2**63 + 5,
        "size": 5,
        "steps": 4,
        "processed_records": 40,
    }
    assert info.uuid.version == 7


def test_ids_grow_even_when_the_clock_goes_back(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.save(contents(1)).uuid
    monkeypatch.setattr("airflow_pipelines.engine.checkpoint.uuid7", lambda: UUID(int=first.int - (1 << 90)))
    second = store.save(contents(2)).uuid
    assert second > first
    latest = store.latest()
    assert latest is not None
    assert latest.contents.step == 2


def test_no_checkpoint(store: CheckpointStore) -> None:
    assert store.latest() is None
    assert store.listed() == []
    with pytest.raises(KeyError):
        store.load(UUID(int=7))


def test_the_newest_two_are_kept_with_their_files(store: CheckpointStore, files: Files) -> None:
    for step in (1, 2, 3, 4):
        store.save(contents(step, files.add("shared"), files.add(f"own{step}")))
    files.add("journalled")
    files.add("orphan")
    store.garbage_collect({"journalled"})
    assert [info.steps for info in store.listed()] == [4, 3]
    assert files.names() == {"shared", "own3", "own4", "journalled"}
    assert all(store.load(info.uuid) for info in store.listed())


def test_the_recovery_point_is_unlisted_and_newest_wins(store: CheckpointStore, files: Files) -> None:
    store.save(contents(1))
    store.save_recovery_point(contents(2, files.add("r")))
    assert [info.steps for info in store.listed()] == [1]
    latest = store.latest()
    assert latest is not None
    assert not latest.listed
    assert latest.contents.step == 2
    store.garbage_collect(())
    assert files.names() == {"r"}
    store.save(contents(3))
    assert store.recovery_point() is None
    latest = store.latest()
    assert latest is not None
    assert latest.contents.step == 3


def test_a_missing_batch_file_is_named(store: CheckpointStore, files: Files) -> None:
    store.save(contents(1, files.add("gone")))
    files.path("gone").unlink()
    with pytest.raises(DamagedCheckpointError, match="gone"):
        store.latest()


def test_an_unreadable_manifest_is_named(store: CheckpointStore) -> None:
    info = store.save(contents(1))
    store.manifest_path(info.uuid).write_bytes(b"{")
    with pytest.raises(DamagedCheckpointError, match=str(info.uuid)):
        store.load(info.uuid)


def test_a_kill_anywhere_in_a_checkpoint_leaves_the_one_before_or_the_new_one(tmp_path: Path) -> None:
    numbers = itertools.count()
    current: list[CheckpointStore] = []

    def prepare():  # type: ignore[no-untyped-def]
        folder = tmp_path / str(next(numbers))
        batches = Files(folder / "batches")
        store = CheckpointStore(folder, batches)
        for step in (1, 2, 3):
            store.save(contents(step, batches.add(f"f{step}")))
        batches.add("f4")
        current[:] = [store]

        def action() -> None:
            store.save(contents(4, "f4"))
            store.garbage_collect({"f4"})

        return action

    seen = set()

    def check(finished: bool) -> None:
        store = current[0]
        latest = store.latest()
        assert latest is not None
        assert latest.contents.step in (3, 4)
        assert not finished or latest.contents.step == 4
        seen.add(latest.contents.step)
        for info in store.listed():
            store.load(info.uuid)
        # And the next writer gets on with it.
        store.save(dataclasses.replace(latest.contents, step=5))
        store.garbage_collect(())
        assert store.listed()[0].steps == 5
        shutil.rmtree(store.folder)

    assert at_every_boundary(prepare, check) > 30
    assert seen == {3, 4}
