"""What a pipeline goes on from when the newest that it had is damaged or gone: nothing, unless somebody agrees to what is lost."""

from __future__ import annotations

import itertools
import json
import shutil
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from airflow_pipelines.engine.storage import durable, set_aside
from airflow_pipelines.engine.storage.checkpoint import CheckpointInfo
from airflow_pipelines.engine.storage.errors import StorageError, StorageProblem
from airflow_pipelines.host.checkpoints.durability import Durability
from tests.engine.crash import at_every_boundary
from tests.host.saved import OPTIONS, Written, make_store, read_store

Store = tuple[Path, CheckpointInfo, CheckpointInfo]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Checkpoints of steps 3 and 6, and a journal up to step 12; each step has 10 rows."""
    older, newer = make_store(tmp_path / "storage")
    return tmp_path / "storage", older, newer


def manifest(folder: Path, info: CheckpointInfo) -> Path:
    return folder / "checkpoints" / f"{info.uuid}.json"


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def outcome(folder: Path) -> tuple[Any, ...] | StorageError:
    try:
        return read_store(folder)
    except StorageError as error:
        return error


def refused(folder: Path) -> StorageError:
    with pytest.raises(StorageError) as raised:
        read_store(folder)
    return raised.value


def test_a_journal_whose_base_is_missing_is_an_error_and_never_an_empty_pipeline(store: Store) -> None:
    folder, older, newer = store
    manifest(folder, newer).unlink()
    (folder / "newest.json").unlink()
    for others in ([older.uuid], []):
        error = refused(folder)
        assert error.problem is StorageProblem.MISSING
        assert error.path == manifest(folder, newer)
        assert f"journal.log goes on from checkpoint or recovery point {newer.uuid}, which is missing" in str(error)
        assert [offered.uuid for offered in error.older] == others
        manifest(folder, older).unlink(missing_ok=True)
    shutil.rmtree(folder / "checkpoints")
    assert refused(folder).problem is StorageProblem.MISSING


def test_an_acknowledged_journal_that_is_missing_is_an_error(store: Store) -> None:
    folder, _, newer = store
    (folder / "journal.log").unlink()
    error = refused(folder)
    assert error.problem is StorageProblem.MISSING
    assert "6 of its records were acknowledged, up to step 12" in str(error)
    assert error.older[0].to_wire() == {
        "uuid": str(newer.uuid), "steps": 6, "processed_records": 60, "lost_steps": 6, "lost_records": 60,
    }  # fmt: skip


def test_a_newest_checkpoint_that_is_missing_is_an_error(store: Store) -> None:
    folder, older, newer = store
    for name in ("journal.log", "journal.end"):
        (folder / name).unlink()
    manifest(folder, newer).unlink()
    error = refused(folder)
    assert f"The checkpoint {newer.uuid}, of step 6 with 60 processed records, is missing" in str(error)
    assert [(offered.uuid, offered.lost_steps, offered.lost_records) for offered in error.older] == [(older.uuid, 3, 30)]


def test_a_recovery_point_that_is_missing_is_an_error(tmp_path: Path) -> None:
    make_store(tmp_path, recovery_point=True)
    (tmp_path / "recovery.json").unlink()
    error = refused(tmp_path)
    assert "The recovery point" in str(error)
    assert "is missing" in str(error)
    assert [offered.steps for offered in error.older] == [6, 3]


def test_a_folder_that_lost_everything_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    expected = uuid4()
    durability = Durability(tmp_path, OPTIONS)
    with pytest.raises(StorageError, match=f"{expected}.json is missing, which the pipeline had written"):
        durability.saved_state(expected)
    assert durability.saved_state() is None
    durability.close()


def spoil_newest(folder: Path, newer: CheckpointInfo) -> None:
    damage(manifest(folder, newer))


def spoil_a_batch(folder: Path, newer: CheckpointInfo) -> None:
    older = next(path for path in manifest(folder, newer).parent.iterdir() if path != manifest(folder, newer))
    named = [set(json.loads(path.read_bytes())["content"]["files"]) for path in (manifest(folder, newer), older)]
    damage(folder / "batches" / (named[0] - named[1]).pop())


@pytest.mark.parametrize("spoil", [spoil_newest, spoil_a_batch])
def test_an_older_checkpoint_is_offered_and_taken_with_consent(store: Store, spoil: Callable[[Path, CheckpointInfo], None]) -> None:
    folder, older, newer = store
    spoil(folder, newer)
    journal = (folder / "journal.log").read_bytes()
    error = refused(folder)
    assert error.problem is StorageProblem.DAMAGED
    assert f"Checkpoint {older.uuid} is good (step 3, 30 processed records)" in error.advice
    assert f"lose the 9 steps after it, with 90 records, start with from_checkpoint={older.uuid}" in error.advice
    assert [offered.uuid for offered in error.older] == [older.uuid]

    assert read_store(folder, older.uuid)[1] == 3
    rows, step, positions, *_ = read_store(folder)
    assert (len(rows), step, positions["t.c"].position) == (30, 3, {"offset": 3000})
    (aside,) = (folder / "set-aside").iterdir()
    assert {path.name for path in aside.iterdir()} == {"journal.log", "journal.end", manifest(folder, newer).name}
    assert (aside / "journal.log").read_bytes() == journal

    pipeline = Written(folder)
    pipeline.step()
    pipeline.checkpoint()
    pipeline.step()
    pipeline.close()
    rows, step, *_ = read_store(folder)
    assert (len(rows), step) == (50, 5)
    records = [json.loads(line[41:]) for line in journal.splitlines()[1:]]
    needed = {name for record in records for part in record["tables"].values() for name in part["files"]}
    assert needed
    assert all((folder / "batches" / name).exists() for name in needed), "what was set aside can still be used"


def test_a_damaged_journal_offers_its_base(store: Store) -> None:
    folder, older, newer = store
    damage(folder / "journal.log")
    error = refused(folder)
    assert [(offered.uuid, offered.lost_steps) for offered in error.older] == [(newer.uuid, 6), (older.uuid, 9)]
    assert len(read_store(folder, newer.uuid)[0]) == 60
    assert len(read_store(folder)[0]) == 60


def test_an_older_checkpoint_that_is_not_there_or_damaged_changes_nothing(store: Store) -> None:
    folder, older, newer = store
    before = read_store(folder)
    with pytest.raises(StorageError, match=r"There is no checkpoint") as raised:
        read_store(folder, UUID(int=older.uuid.int + 1))
    assert [offered.uuid for offered in raised.value.older] == [newer.uuid, older.uuid]
    damage(manifest(folder, older))
    with pytest.raises(StorageError, match="is damaged"):
        read_store(folder, older.uuid)
    assert read_store(folder) == before


def go_back(checkpoint: UUID, folder: Path) -> None:
    Durability(folder, OPTIONS).go_back(checkpoint)


@pytest.mark.processes
def test_a_kill_anywhere_while_going_back_needs_consent_again_or_has_gone_back(tmp_path: Path, store: Store) -> None:
    made, older, _ = store
    before = read_store(made)
    numbers = itertools.count()
    seen = set()

    def prepare() -> Path:
        return Path(shutil.copytree(made, tmp_path / f"copy{next(numbers)}"))

    def check(folder: Path, finished: bool) -> None:
        found = outcome(folder)
        if isinstance(found, StorageError):
            seen.add("refused")
            assert older.uuid in {offered.uuid for offered in found.older}
            assert read_store(folder, older.uuid)[1] == 3
        else:
            seen.add(found[1])
            assert found == before or found[1] == 3
            assert not finished or found[1] == 3
        shutil.rmtree(folder)

    assert at_every_boundary(prepare, partial(go_back, older.uuid), check, (set_aside, durable)) > 15
    assert seen == {12, "refused", 3}


def test_a_store_of_an_earlier_release_opens_and_is_written_anew(store: Store) -> None:
    folder, older, newer = store
    before = read_store(folder)
    for info in (older, newer):
        document = json.loads(manifest(folder, info).read_bytes())["content"] | {"format": 1}
        manifest(folder, info).write_text(json.dumps(document))
    payloads = [line.partition(b" ")[2] for line in (folder / "journal.log").read_bytes().splitlines()]
    (folder / "journal.log").write_bytes(b"".join(b"%08x %s\n" % (zlib.crc32(payload), payload) for payload in payloads))
    for name in ("newest.json", "journal.end"):
        (folder / name).unlink()
    assert read_store(folder) == before
    pipeline = Written(folder)
    pipeline.durability.save_recovery_point(pipeline.contents())
    pipeline.step()
    pipeline.close()
    rows, step, *_ = read_store(folder)
    assert (len(rows), step) == (130, 13)
    assert (folder / "newest.json").exists()
