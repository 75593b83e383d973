"""Secrets in files: names that lead nowhere else, values as they were given, files for this user alone."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from airflow_pipelines.common.secret_files import MAX_SECRET_BYTES, SecretError, SecretFiles


@pytest.fixture
def secrets(tmp_path: Path) -> SecretFiles:
    return SecretFiles(tmp_path / "secrets")


@pytest.mark.parametrize("value", ["x", "a\nb\n", " ", "ä€𝄞", "x" * MAX_SECRET_BYTES, "${env:HOME} \"'\\"])
def test_a_value_is_read_as_it_was_written(secrets: SecretFiles, value: str) -> None:
    secrets.write("store/key", "before")
    secrets.write("store/key", value)
    assert secrets.read("store/key") == value
    assert secrets.names() == ["store/key"]
    secrets.delete("store/key")
    assert secrets.names() == []
    with pytest.raises(SecretError, match=r"no secret 'store/key'.*secrets set store/key"):
        secrets.read("store/key")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../x", "/etc/passwd", "a//b", "a/", ".hidden", "a/b/c/d/e", "a b", "x" * 300, "ä"]
)
def test_a_name_leads_nowhere_else(secrets: SecretFiles, tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_text("not a secret")
    for action in (secrets.read, secrets.delete, lambda name: secrets.write(name, "v")):
        with pytest.raises(SecretError, match="no name of a secret"):
            action(name)


def test_files_are_for_this_user_alone(secrets: SecretFiles, tmp_path: Path) -> None:
    secrets.write("a/b/c", "v")
    for path in (tmp_path / "secrets", *(tmp_path / "secrets").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_mounted_secrets_are_found(secrets: SecretFiles, tmp_path: Path) -> None:
    """Kubernetes mounts a hidden folder, and links into it."""
    made = tmp_path / "secrets" / "kubernetes" / "store" / "..2026"
    made.mkdir(parents=True)
    (made / "access_key").write_bytes(b"AKIA")
    (made / "binary").write_bytes(b"\xff\xfe")
    (made.parent / "..data").symlink_to("..2026")
    (made.parent / "access_key").symlink_to("..data/access_key")
    (made.parent / "binary").symlink_to("..data/binary")
    assert secrets.read("kubernetes:store/access_key") == secrets.read("kubernetes/store/access_key") == "AKIA"
    assert secrets.names() == ["kubernetes/store/access_key", "kubernetes/store/binary"]
    with pytest.raises(SecretError, match="no UTF-8 text"):
        secrets.read("kubernetes:store/binary")


def test_too_large_or_unwritable_values_are_refused_and_the_old_one_stays(secrets: SecretFiles, tmp_path: Path) -> None:
    secrets.write("a", "old")
    with pytest.raises(SecretError, match="at most 65536") as error:
        secrets.write("a", "hunter2" * MAX_SECRET_BYTES)
    assert "hunter2" not in str(error.value)
    assert secrets.read("a") == "old"
    with pytest.raises(SecretError, match="cannot be written"):
        secrets.write("a/b", "a is a file")
    assert list((tmp_path / "secrets").iterdir()) == [tmp_path / "secrets" / "a"]


def test_a_pipeline_keeps_a_value_once_and_loses_what_it_names_no_more(secrets: SecretFiles, tmp_path: Path) -> None:
    first, second = secrets.keep("p1", "one"), secrets.keep("p1", "two")
    other = secrets.keep("p2", "one")
    assert len({first, second, other}) == 3
    assert secrets.keep("p1", "one") == first
    assert secrets.names() == []
    secrets.forget_unused("p1", [second])
    assert secrets.read(first) == "one", "somebody may just be writing its name down"
    old = time.time() - 7200
    for name in (first, second):
        os.utime(tmp_path / "secrets" / name, (old, old))
    secrets.forget_unused("p1", [second])
    assert secrets.read(second) == "two"
    with pytest.raises(SecretError):
        secrets.read(first)
    secrets.forget_all("p1")
    secrets.forget_all("p1")
    assert secrets.read(other) == "one"


def test_a_reader_sees_the_old_value_or_the_new_one(secrets: SecretFiles) -> None:
    secrets.write("a", "0" * 1000)
    done = threading.Event()

    def write() -> None:
        for digit in "123456789" * 5:
            secrets.write("a", digit * 1000)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert len(set(secrets.read("a"))) == 1
    writer.join()
