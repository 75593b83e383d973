"""Checkpoints on files only: contents survive, a kill anywhere leaves the state before or after, old ones go."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.engine.storage.checkpoint import CheckpointContents, CheckpointStore, Counters
from airflow_pipelines.engine.storage.connector_state import InputCounts, InputState
from airflow_pipelines.engine.storage.errors import MissingError, StorageError, StorageProblem
from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.sources import ProgramSource
from tests.engine.crash import at_every_boundary


class Files:
    """A batch store of plain files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        return self.folder / name

    def verify(self, names: Iterable[str]) -> None:
        for name in names:
            if not self.path(name).exists():
                raise MissingError(self.path(name), f"The batch file {self.path(name)} is missing.")

    def add(self, name: str, content: bytes = b"rows") -> str:
        self.path(name).write_bytes(content)
        return name

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def garbage_collect(self, keep: set[str]) -> None:
        for name in self.names() - keep:
            self.path(name).unlink()


PROGRAM = ProgramIdentity(ProgramSource("CREATE TABLE t (x int)"), Fingerprints(tables={"t": "f"}), 2**63 + 5)


def contents(step: int, *files: str) -> CheckpointContents:
    return CheckpointContents(
        program=PROGRAM,
        step=step,
        snapshot={"step": step, "traces": {}},
        files=files,
        connectors={"t.c": InputState("t", position={"offset": step}, counts=InputCounts(records=3), paused=True)},
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
    assert store.list_checkpoints()[0].to_wire() == {
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
    monkeypatch.setattr("airflow_pipelines.engine.storage.checkpoint.uuid7", lambda: UUID(int=first.int - (1 << 90)))
    second = store.save(contents(2)).uuid
    assert second > first
    latest = store.latest()
    assert latest is not None
    assert latest.contents.step == 2


def test_no_checkpoint(store: CheckpointStore) -> None:
    assert store.latest() is None
    assert store.list_checkpoints() == []
    with pytest.raises(KeyError):
        store.load(UUID(int=7))


def test_the_newest_two_are_kept_with_their_files(store: CheckpointStore, files: Files) -> None:
    for step in (1, 2, 3, 4):
        store.save(contents(step, files.add("shared"), files.add(f"own{step}")))
    files.add("journalled")
    files.add("orphan")
    store.garbage_collect({"journalled"})
    assert [info.steps for info in store.list_checkpoints()] == [4, 3]
    assert files.names() == {"shared", "own3", "own4", "journalled"}
    assert all(store.load(info.uuid) for info in store.list_checkpoints())


def test_the_recovery_point_is_unlisted_and_newest_wins(store: CheckpointStore, files: Files) -> None:
    store.save(contents(1))
    store.save_recovery_point(contents(2, files.add("r")))
    assert [info.steps for info in store.list_checkpoints()] == [1]
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
    with pytest.raises(MissingError, match="gone"):
        store.latest()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"{",
        lambda content: b"",
        lambda content: content.replace(b'"offset":1', b'"offset":3'),
        lambda content: content.replace(b'"format":2', b'"format":1'),
        lambda content: content.replace(b'"checksum"', b'"chdcksum"'),
        lambda content: content[:-1],
        lambda content: json.dumps(json.loads(content)["content"]).encode(),
    ],
    ids=["text", "empty", "position", "format", "key", "end", "without its seal"],
)
def test_a_damaged_manifest_is_named(store: CheckpointStore, damage: Callable[[bytes], bytes]) -> None:
    older, info = store.save(contents(0)), store.save(contents(1))
    path = store.manifest_path(info.uuid)
    assert damage(path.read_bytes()) != path.read_bytes()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StorageError, match=f"{info.uuid}.json is damaged") as raised:
        store.latest()
    assert (raised.value.problem, raised.value.path) == (StorageProblem.DAMAGED, path)
    assert store.list_checkpoints() == [older]


def test_a_manifest_in_the_place_of_another_is_damage(store: CheckpointStore) -> None:
    older, info = store.save(contents(1)), store.save(contents(2))
    shutil.copy(store.manifest_path(older.uuid), store.manifest_path(info.uuid))
    with pytest.raises(StorageError, match=f"it is that of checkpoint {older.uuid}"):
        store.latest()


def test_a_manifest_has_the_fields_of_earlier_releases(store: CheckpointStore) -> None:
    document = json.loads(store.manifest_path(store.save(contents(4)).uuid).read_bytes())["content"]
    assert document.keys() == {
        "format", "uuid", "created_at", "size", "epoch", "program", "udf_python", "program_version", "fingerprints", "program_hash",
        "step", "snapshot", "files", "connectors", "counters", "initial_start_time", "transaction", "push_keys",
    }  # fmt: skip
    assert document["program"] == "CREATE TABLE t (x int)"


def test_a_manifest_of_an_earlier_release_opens(store: CheckpointStore, files: Files) -> None:
    saved = contents(4, files.add("a"))
    info = store.save(saved)
    path = store.manifest_path(info.uuid)
    document = json.loads(path.read_bytes())["content"] | {"format": 1}
    del document["udf_python"]
    path.write_text(json.dumps(document))
    assert store.load(info.uuid).contents == saved
    assert store.list_checkpoints() == [info]
    del document["counters"]
    path.write_text(json.dumps(document))
    with pytest.raises(StorageError, match=r"a field cannot be read .KeyError: 'counters'"):
        store.latest()


def test_no_file_goes_while_it_is_not_known_who_needs_it(store: CheckpointStore, files: Files) -> None:
    damaged = store.save(contents(1, files.add("f1"))).uuid
    store.manifest_path(damaged).write_bytes(b"{")
    store.save(contents(2, files.add("f2")))
    store.garbage_collect(())
    assert files.names() == {"f1", "f2"}
    store.save(contents(3, files.add("f3")))
    store.garbage_collect(())
    assert files.names() == {"f2", "f3"}


def save_the_fourth(folder: Path) -> None:
    store = CheckpointStore(folder, Files(folder / "batches"))
    store.save(contents(4, "f4"))
    store.garbage_collect({"f4"})


@pytest.mark.processes
def test_a_kill_anywhere_in_a_checkpoint_leaves_the_one_before_or_the_new_one(tmp_path: Path) -> None:
    numbers = itertools.count()
    made = tmp_path / "made"
    files = Files(made / "batches")
    for step in (1, 2, 3):
        CheckpointStore(made, files).save(contents(step, files.add(f"f{step}")))
    files.add("f4")

    def prepare() -> Path:
        return Path(shutil.copytree(made, tmp_path / str(next(numbers))))

    seen = set()

    def check(folder: Path, finished: bool) -> None:
        store = CheckpointStore(folder, Files(folder / "batches"))
        latest = store.latest()
        assert latest is not None
        assert latest.contents.step in (3, 4)
        assert not finished or latest.contents.step == 4
        seen.add(latest.contents.step)
        for info in store.list_checkpoints():
            store.load(info.uuid)
        # And the next writer gets on with it.
        store.save(dataclasses.replace(latest.contents, step=5))
        store.garbage_collect(())
        assert store.list_checkpoints()[0].steps == 5
        shutil.rmtree(folder)

    assert at_every_boundary(prepare, save_the_fourth, check) > 30
    assert seen == {3, 4}
