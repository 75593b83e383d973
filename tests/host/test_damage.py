"""Damage to a pipeline's storage: the same rows come back, or an error says what is wrong; never other rows."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.engine.storage.checkpoint import CheckpointInfo
from airflow_pipelines.engine.storage.errors import StorageError, StorageProblem, within_storage
from airflow_pipelines.engine.storage.fsck import check_storage
from airflow_pipelines.host.state.failures import as_problem
from tests.host.saved import make_store, read_store
from tests.tiers import examples

EXAMPLES = examples("DAMAGE_EXAMPLES", 25)
"""Per store and kind of damage."""


@dataclass(frozen=True)
class Stored:
    """A store, what is in it, and the checkpoints that it has."""

    folder: Path
    contents: tuple[Any, ...]
    checkpoints: list[CheckpointInfo]

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name != "lock")


@pytest.fixture(scope="module", params=[False, True], ids=["checkpoint", "recovery point"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    folder = tmp_path_factory.mktemp("stored") / "storage"
    checkpoints = make_store(folder, recovery_point=request.param)
    contents = read_store(folder)
    assert (len(contents[0]), contents[1]) == (120, 12)
    return Stored(folder, contents, checkpoints)


def flip_a_bit(path: Path, chance: random.Random, _: Stored) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut_short(path: Path, chance: random.Random, _: Stored) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def cut_lines(path: Path, chance: random.Random, _: Stored) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: chance.randrange(len(lines))]))


def remove(path: Path, _: random.Random, __: Stored) -> None:
    path.unlink()


def put_another_in_its_place(path: Path, chance: random.Random, stored: Stored) -> None:
    shutil.copy(chance.choice([other for other in stored.files if other != path]), path)


def shuffle_lines(path: Path, chance: random.Random, _: Stored) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(chance.choices(lines, k=len(lines))))


def empty_a_sector(path: Path, chance: random.Random, _: Stored) -> None:
    content = bytearray(path.read_bytes())
    start = 512 * chance.randrange(1 + len(content) // 512)
    content[start : start + 512] = bytes(len(content[start : start + 512]))
    path.write_bytes(content)


def add_to_its_end(path: Path, chance: random.Random, _: Stored) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(40) + chance.choice([b"", b"\n"]))


Damage = Callable[[Path, random.Random, Stored], None]


@pytest.mark.parametrize(
    "damage",
    [flip_a_bit, cut_short, cut_lines, remove, put_another_in_its_place, shuffle_lines, empty_a_sector, add_to_its_end],
    ids=lambda damage: damage.__name__.replace("_", " "),
)
def test_damage_never_gives_other_rows(stored: Stored, damage: Damage) -> None:
    chance = random.Random(f"{damage.__name__} {EXAMPLES}")
    noticed = 0
    for _ in range(EXAMPLES):
        path = chance.choice(stored.files)
        before = path.read_bytes()
        damage(path, chance, stored)
        found = outcome(stored)
        path.write_bytes(before)
        if isinstance(found, StorageError):
            noticed += 1
            assert found.problem in (StorageProblem.DAMAGED, StorageProblem.MISSING)
            assert str(stored.folder) in str(found)
            assert {offered.uuid for offered in found.older} <= {info.uuid for info in stored.checkpoints}
        else:
            assert found == stored.contents, f"{damage.__name__} in {path}"
    assert noticed, "nothing was damaged"
    assert outcome(stored) == stored.contents


def outcome(stored: Stored) -> tuple[Any, ...] | StorageError:
    """What a start finds; any other error than a StorageError is one that nobody can act on."""
    try:
        return read_store(stored.folder)
    except StorageError as error:
        return error


def become_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("no folder")


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def read_within(folder: Path) -> tuple[Any, ...] | StorageError:
    """Return the contents of a storage, or the problem that it has."""
    try:
        with within_storage(folder):
            return read_store(folder)
    except StorageError as error:
        return error


@pytest.mark.parametrize("replace", [become_a_file, shutil.rmtree, become_a_folder])
def test_a_part_that_is_something_else_or_gone_is_named(stored: Stored, tmp_path: Path, replace: Callable[[Path], None]) -> None:
    is_wanted = Path.is_file if replace is become_a_folder else Path.is_dir
    names = [path.relative_to(stored.folder) for path in sorted(stored.folder.rglob("*")) if is_wanted(path)]
    assert names
    for number, name in enumerate(names):
        folder = tmp_path / str(number)
        shutil.copytree(stored.folder, folder)
        replace(folder / name)
        found = read_within(folder)
        if isinstance(found, StorageError):
            assert str(folder) in found.what
            assert replace is shutil.rmtree or found.problem is not StorageProblem.UNUSABLE, found
        else:
            assert found == stored.contents, name


def test_the_folder_of_batches_that_is_a_file_is_told_with_what_to_do(stored: Stored, tmp_path: Path) -> None:
    folder = tmp_path / "storage"
    shutil.copytree(stored.folder, folder)
    become_a_file(folder / "batches")
    with pytest.raises(StorageError) as raised:
        read_store(folder)
    problem = as_problem(raised.value, "orders")
    assert problem.code == "RuntimeError.StorageDamaged"
    assert problem.message.startswith(
        f"The storage of pipeline orders cannot be used. {folder / 'batches'} is no folder, and a folder has to be there. Move it"
    )
    report = check_storage(folder)
    assert report.refusal is not None
    assert report.refusal.problem is StorageProblem.REPLACED


def test_what_connectors_read_is_not_taken_for_the_storage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), within_storage(tmp_path / "storage"):
        (tmp_path / "rows.csv").read_text()
