from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from airflow_pipelines.streams.python_environment.archives import unpack
from airflow_pipelines.streams.python_environment.needs import Archive, PythonEnvironmentError


def _zip(path: Path, *members: tuple[str, str, int]) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name, text, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            packed.writestr(info, text)
    return path


def _tar(path: Path, mode: str, *members: tuple[str, str]) -> Path:
    with tarfile.open(path, mode) as packed:
        for name, text in members:
            info = tarfile.TarInfo(name)
            info.size = len(text)
            packed.addfile(info, io.BytesIO(text.encode()))
    return path


def test_a_zip_keeps_links_and_the_permission_to_execute(tmp_path: Path) -> None:
    file, link = stat.S_IFREG, stat.S_IFLNK | 0o777
    packed = _zip(
        tmp_path / "a.zip",
        ("bin/tool", "x", file | 0o755),
        ("bin/data", "y", file | 0o644),
        ("bin/link", "tool", link),
    )
    unpack(Archive(packed, "deep/venv"), tmp_path / "root")
    folder = tmp_path / "root" / "deep" / "venv" / "bin"
    assert [os.access(folder / name, os.X_OK) for name in ("tool", "link", "data")] == [True, True, False]
    assert (folder / "link").readlink() == Path("tool")


@pytest.mark.parametrize(
    ("suffix", "mode"), [(".tar", "w"), (".tar.gz", "w:gz"), (".tgz", "w:gz"), (".tar.bz2", "w:bz2"), (".x", "w:xz")]
)
def test_tar_files_of_every_compression(tmp_path: Path, suffix: str, mode: str) -> None:
    packed = _tar(tmp_path / f"a{suffix}", mode, ("folder/a.txt", "one"), ("b.txt", "two"))
    unpack(Archive(packed, "data"), tmp_path)
    assert (tmp_path / "data" / "folder" / "a.txt").read_text() == "one"
    assert (tmp_path / "data" / "b.txt").read_text() == "two"


def test_no_member_leaves_the_folder(tmp_path: Path) -> None:
    link, file = stat.S_IFLNK | 0o777, stat.S_IFREG | 0o644
    evil = [
        _zip(tmp_path / "up.zip", ("../up.txt", "x", file)),
        _zip(tmp_path / "absolute.zip", (f"{tmp_path}/absolute.txt", "x", file)),
        _zip(tmp_path / "link.zip", ("out", "..", link)),
        _zip(tmp_path / "through.zip", ("out", str(tmp_path), link), ("out/through.txt", "x", file)),
        _zip(tmp_path / "later.zip", ("a/b", "..", link), ("a/b/c", "../..", link), ("c/later.txt", "x", file)),
        _tar(tmp_path / "up.tar", "w", ("../up.txt", "x")),
    ]
    for number, packed in enumerate(evil):
        with pytest.raises(PythonEnvironmentError, match=rf"{packed.name}' cannot be unpacked: .*"):
            unpack(Archive(packed, "in"), tmp_path / f"root{number}")
    assert not list(tmp_path.rglob("*.txt"))


def test_a_file_that_is_no_archive_or_damaged_is_named(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("text")
    with pytest.raises(PythonEnvironmentError, match=r"a.txt' is no archive that can be unpacked: zip and tar are"):
        unpack(Archive(text, "a"), tmp_path)
    whole = _zip(tmp_path / "a.zip", ("a.txt", "x" * 1000, stat.S_IFREG | 0o644)).read_bytes()
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(whole.replace(b"xxx", b"yyy", 1))
    with pytest.raises(PythonEnvironmentError, match=r"damaged.zip' cannot be unpacked: BadZipFile: Bad CRC-32"):
        unpack(Archive(damaged, "b"), tmp_path)
    packed = _tar(tmp_path / "a.tar.gz", "w:gz", ("a.txt", os.urandom(3000).hex())).read_bytes()
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(PythonEnvironmentError, match=r"cut.tar.gz' cannot be unpacked"):
        unpack(Archive(cut, "c"), tmp_path)


@pytest.mark.parametrize("target", ["", ".", "/etc", "../a", "a/../../b"])
def test_targets_are_below_the_working_folder(tmp_path: Path, target: str) -> None:
    with pytest.raises(PythonEnvironmentError, match="name a folder below the working folder"):
        Archive(tmp_path / "a.zip", target)
