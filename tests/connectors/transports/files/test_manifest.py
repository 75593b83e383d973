"""The manifest of a folder of files: bounded, right for readers at any time, whatever is killed when."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.files import manifest as manifests
from airflow_pipelines.connectors.transports.files.folder import Folder
from airflow_pipelines.connectors.transports.files.manifest import ListedFile, Manifest
from airflow_pipelines.engine.storage.fence import OvertakenError
from tests.connectors.transports.files.manifests import listed

TOGETHER = 3


@pytest.fixture(autouse=True)
def few_steps_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "STEPS_TOGETHER", TOGETHER)


class Killed(BaseException):
    """Nothing happens any more."""


class KilledFiles(LocalFileSystem):
    """Files of a process that is killed before or after one of the things that it does to them."""

    cachable = False
    left: int | None = None
    """How many things are done yet."""

    def _do(self, what: Callable[[], Any]) -> Any:
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1
        return what()

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        self._do(lambda: super(KilledFiles, self).mv(path1, path2, **kwargs))

    def rm_file(self, path: str) -> None:
        self._do(lambda: super(KilledFiles, self).rm_file(path))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        for each in path:
            self.rm_file(each)

    def open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        return self._do(lambda: super(KilledFiles, self).open(path, mode, **kwargs)) if mode == "wb" else super().open(path, mode)


def opened(folder: Path, filesystem: Any = None, output: str = "p/v.o", check: Callable[[], None] = lambda: None) -> Manifest:
    made = Manifest(Folder(filesystem or LocalFileSystem(), str(folder / "_commits")), output, check)
    made.open()
    return made


def add(manifest: Manifest, step: int) -> None:
    """A step of two files, but for each third one, which has none."""
    manifest.compact()
    manifest.add(step, [ListedFile(f"{step}-{number}", 1, 10, step) for number in range(0 if step % 3 == 0 else 2)])


def names(*steps: int) -> list[str]:
    return [f"{step}-{number}" for step in steps for number in range(0 if step % 3 == 0 else 2)]


def found(folder: Path) -> list[str]:
    """What a reader finds."""
    return [file["name"] for file in listed(LocalFileSystem(), str(folder))]


def entries(folder: Path) -> list[str]:
    """The files of the manifest, with short numbers."""
    return sorted(re.sub(r"0{10,}(?=\d)", "", path.name.removesuffix(".json")) for path in (folder / "_commits").iterdir())


def test_many_steps_are_put_together_and_the_small_files_go_with_the_next_ones(tmp_path: Path) -> None:
    manifest = opened(tmp_path)
    for step in range(1, 5):
        add(manifest, step)
    assert entries(tmp_path) == ["1", "1-3", "2", "3", "4"]
    for step in range(5, 9):
        add(manifest, step)
        assert found(tmp_path) == names(*range(1, step + 1))
    assert entries(tmp_path) == ["1-3", "4", "4-6", "5", "6", "7", "8"]
    again = opened(tmp_path)
    assert again.last_step == 8
    assert entries(tmp_path) == ["1-3", "4-6", "7", "8"]
    assert [file["step"] for file in listed(LocalFileSystem(), str(tmp_path))] == [1, 1, 2, 2, 4, 4, 5, 5, 7, 7, 8, 8]


@pytest.mark.rest
def test_a_manifest_stays_small(tmp_path: Path) -> None:
    manifest = opened(tmp_path)
    for step in range(100):
        add(manifest, step)
        assert len(entries(tmp_path)) <= step // TOGETHER + 2 * TOGETHER
    assert found(tmp_path) == names(*range(100))


@pytest.mark.parametrize("last", range(-1, 12))
def test_steps_are_taken_back_also_within_those_that_were_put_together(tmp_path: Path, last: int) -> None:
    manifest = opened(tmp_path)
    for step in range(12):
        add(manifest, step)
    manifest.take_back(last)
    assert found(tmp_path) == names(*range(last + 1))
    assert (manifest.last_step, opened(tmp_path).last_step) == (last, last)
    for step in range(last + 1, 20):
        add(manifest, step)
        assert found(tmp_path) == names(*range(step + 1))
    assert opened(tmp_path).last_step == 19


def kills(folder: Path, prepare: Callable[[Manifest], None], work: Callable[[Manifest], None]) -> Iterator[tuple[Path, int]]:
    """Kill the work at each thing that it does to files, one after the other; what it left, and where it was."""
    for moment in range(1000):
        where = folder / str(moment)
        prepare(opened(where))
        files = KilledFiles()
        manifest = opened(where, files)
        files.left = moment
        try:
            work(manifest)
        except Killed:
            yield where, moment
        else:
            assert moment > 0, "the work does something"
            return


def test_a_kill_while_steps_are_written_leaves_what_was_committed(tmp_path: Path) -> None:
    def prepare(manifest: Manifest) -> None:
        for step in range(4):
            add(manifest, step)

    def work(manifest: Manifest) -> None:
        for step in range(4, 10):
            add(manifest, step)

    seen = set()
    for folder, _ in kills(tmp_path, prepare, work):
        before = found(folder)
        again = opened(folder)
        assert found(folder) == before == names(*range(again.last_step + 1))
        assert not [path for path in (folder / "_commits").iterdir() if path.name.startswith(".")]
        seen.add(again.last_step)
        for step in range(again.last_step + 1, 12):
            add(again, step)
        assert found(folder) == names(*range(12))
    assert seen == set(range(3, 9))


@pytest.mark.parametrize("last", [-1, 1, 4, 5, 6])
def test_a_kill_while_steps_are_taken_back_leaves_what_there_was_once(tmp_path: Path, last: int) -> None:
    def prepare(manifest: Manifest) -> None:
        for step in range(8):
            add(manifest, step)

    for folder, _ in kills(tmp_path, prepare, lambda manifest: manifest.take_back(last)):
        before = found(folder)
        again = opened(folder)
        assert found(folder) == before == names(*range(again.last_step + 1))
        assert last <= again.last_step < 8
        again.take_back(last)
        assert found(folder) == names(*range(last + 1))


def test_an_overtaken_run_puts_nothing_together(tmp_path: Path) -> None:
    left = 1

    def check() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OvertakenError(tmp_path, "a later run")

    manifest = opened(tmp_path, check=check)
    for step in range(3):
        manifest.add(step, [])
    with pytest.raises(OvertakenError):
        manifest.compact()
    assert entries(tmp_path) == ["0", "1", "2"]


def test_the_folder_of_an_earlier_release_and_of_another_output(tmp_path: Path) -> None:
    (tmp_path / "_commits").mkdir()
    for step in range(8):
        entry = {"output": "p/v.o", "step": step, "files": [{"name": f"{step}-0", "rows": 1, "bytes": 1}]}
        (tmp_path / "_commits" / f"{step:020d}.json").write_text(json.dumps(entry))
    with pytest.raises(ConnectorFailure, match="the folder has the files of another output"):
        opened(tmp_path, output="p/v.other")
    manifest = opened(tmp_path)
    manifest.compact()
    manifest.compact()
    manifest.take_back(4)
    assert entries(tmp_path) == ["0-2", "3-4"]
    assert found(tmp_path) == [f"{step}-0" for step in range(5)]
    (tmp_path / "_commits" / f"{9:020d}.json").write_text("{")
    with pytest.raises(ConnectorFailure, match=r"_commits/0+9\.json is no file of a manifest"):
        opened(tmp_path)


def test_what_somebody_else_removed_does_no_harm(tmp_path: Path) -> None:
    manifest = opened(tmp_path)
    for step in range(4):
        add(manifest, step)
    (tmp_path / "_commits" / f"{1:020d}.json").unlink()
    for step in range(4, 8):
        add(manifest, step)
    assert found(tmp_path) == names(*range(8))
    assert entries(tmp_path)[:3] == ["0-2", "3", "3-5"]


def test_readers_who_do_as_the_page_says_read_each_step_once(tmp_path: Path, repository: Path) -> None:
    page = (repository / "docs" / "connectors.md").read_text()
    block = next(text for text in re.findall(r"```python\n(.*?)```", page, re.S) if "_commits" in text)
    assert "/tmp/best" in block
    manifest = opened(tmp_path)
    for step in range(11):
        add(manifest, step)
        known: dict[str, Any] = {}
        exec(block.replace("/tmp/best", str(tmp_path)), known)
        assert known["names"] == names(*range(step + 1))
