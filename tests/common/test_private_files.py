"""Nobody else may read the home, the store, logs and storage."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_pipelines.common.private_files import OUTPUT_UMASK, current_umask, make_private_folder, make_private_tree
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.connectors.transports.files.line_output import FileOutput
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.service.control_plane import ControlPlane


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """What a user's shell has."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): mode(path) for path in (folder, *folder.rglob("*"))}


def test_a_new_home_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.service.deployers.shared.SharedDeployer.host", lambda _: None)
    home = tmp_path / "home"
    control_plane = ControlPlane(Settings.load(home, storage=tmp_path / "elsewhere"))
    control_plane.create({"name": "p", "program_code": ""})
    control_plane.files.create(control_plane.pipeline("p"))
    with control_plane.store.engine.begin():  # the side files are there as long as somebody has the store open
        found = modes(home) | modes(tmp_path / "elsewhere")
    control_plane.close()
    assert {"store.sqlite", "store.sqlite-wal", "logs"} <= found.keys()
    assert {name: f"{mode:o}" for name, mode in found.items() if mode & 0o077} == {}


def test_a_home_that_an_earlier_release_made_is_closed(tmp_path: Path) -> None:
    home, target = tmp_path / "home", tmp_path / "target"
    for folder in (home / "logs", home / "storage" / "1" / "batches"):
        folder.mkdir(parents=True)
    connection = sqlite3.connect(home / "store.sqlite")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")
    for file in ("logs/p.log", "storage/1/batches/b.parquet", "storage/1/journal"):
        (home / file).write_text("kept")
    target.write_text("")
    (home / "storage" / "link").symlink_to(target)
    assert mode(home / "store.sqlite") == 0o644
    control_plane = ControlPlane(Settings.load(home))
    found = modes(home)
    control_plane.close()
    connection.close()
    del found["storage/link"]
    assert {name: f"{mode:o}" for name, mode in found.items() if mode & 0o077} == {}
    assert (home / "storage/1/batches/b.parquet").read_text() == "kept"
    assert mode(target) == 0o644


def test_folders_for_everybody_stay_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    make_private_folder(tmp_path)
    make_private_tree(tmp_path)
    assert mode(tmp_path) == 0o1777


def test_a_folder_behind_a_link_is_closed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    make_private_tree(tmp_path / "link")
    assert mode(tmp_path / "real") == 0o700


def test_rights_that_cannot_be_changed_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(_self: Path, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "folder").mkdir(mode=0o755)
    monkeypatch.setattr(Path, "chmod", refused)
    make_private_folder(tmp_path / "folder")
    assert f"Other users may read {tmp_path / 'folder'}" in caplog.text


def test_what_a_program_writes_for_users_has_the_rights_they_would_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert current_umask() == 0o022
    monkeypatch.setenv(OUTPUT_UMASK, f"{current_umask():o}")
    os.umask(0o077)  # as in a host
    assert current_umask() == 0o077
    path = tmp_path / "new" / "folder" / "out.json"
    for resumed in (False, True):
        sink = FileOutput(str(path), JsonOptions())
        sink.open(resumed)
        sink.close()
        assert [mode(each) for each in (path.parent.parent, path.parent, path)] == [0o755, 0o755, 0o644]
    path.chmod(0o640)
    sink = FileOutput(str(path), JsonOptions())
    sink.open(True)
    sink.close()
    assert mode(path) == 0o640
