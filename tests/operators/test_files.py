from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.operators import files
from airflow_pipelines.operators.files import is_url, read_file, storage_options, suffix_of, without_password, write_file


def test_a_file_is_a_path_of_this_worker_or_a_url(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "a b.csv"
    write_file("path", str(path), b"here")
    assert read_file("path", str(path)) == b"here"
    assert read_file("path", path.as_uri().replace("%20", " ")) == b"here"
    write_file("path", "memory://there/x.csv", b"there")
    assert read_file("path", "memory://there/x.csv") == b"there"


@pytest.mark.parametrize("path", ["/nowhere/x.csv", "memory://nowhere/x.csv"])
def test_a_file_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(AirflowFailException, match=f"path: there is no such file.*{path}"):
        read_file("path", path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match="there is no such file"):
        read_file("path", str(tmp_path))
    with pytest.raises(AirflowFailException, match="cannot be used"):
        write_file("path", str(tmp_path), b"")


def test_a_scheme_that_nobody_knows_is_named_without_the_password() -> None:
    with pytest.raises(AirflowFailException, match=r"path: gopher://\*\*\*@host/x cannot be used: .*gopher") as raised:
        read_file("path", "gopher://me:hush@host/x")
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "expected"), [("s3://b/k", True), ("abfs+x://b", True), ("/a/b", False), ("a://", True), ("C:\\x", False)]
)
def test_what_is_a_url(path: str, expected: bool) -> None:
    assert is_url(path) is expected


@pytest.mark.parametrize(("path", "suffix"), [("/a/b.CSV", ".csv"), ("s3://b/k.json?versionId=1.x", ".json"), ("https://h/a", "")])
def test_the_suffix_of_a_url_is_that_of_its_path(path: str, suffix: str) -> None:
    assert suffix_of(path) == suffix


def test_a_password_is_not_shown() -> None:
    assert without_password("ftp://me:hush@host/x") == "ftp://***@host/x"
    assert without_password("/a@b/c") == "/a@b/c"


def test_a_connection_says_what_the_file_system_is_told() -> None:
    extra = {"endpoint_url": "http://store:9000", "region_name": "eu-north-1"}
    aws = Connection(conn_id="store", conn_type="aws", login="key", password="hush", extra=json.dumps(extra))
    assert storage_options(aws) == {
        "key": "key",
        "secret": "hush",
        "client_kwargs": {"endpoint_url": "http://store:9000", "region_name": "eu-north-1"},
    }
    assert storage_options(Connection(conn_id="store", conn_type="aws")) == {}, "credentials of the environment"
    other = Connection(conn_id="files", conn_type="sftp", extra=json.dumps({"storage_options": {"host": "h", "port": 22}}))
    assert storage_options(other) == {"host": "h", "port": 22}
    with pytest.raises(ValueError, match=r"connection 'files' of type 'sftp' has no extra 'storage_options'"):
        storage_options(Connection(conn_id="files", conn_type="sftp"))


def test_a_connection_that_is_not_there_fails_for_good() -> None:
    with pytest.raises(AirflowFailException, match=r"path: memory://there/x cannot be used: .*gone"):
        read_file("path", "memory://there/x", "gone")


def test_the_connection_reaches_the_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def filesystem(scheme: str, **options: Any) -> Any:
        told.append((scheme, options))
        return fsspec.implementations.memory.MemoryFileSystem()

    connection = Connection(conn_id="store", conn_type="aws", login="key", password="hush")
    monkeypatch.setattr(files.BaseHook, "get_connection", lambda _conn_id: connection)
    write_file("path", "memory://bucket/x", b"1")
    monkeypatch.setattr(files.fsspec, "filesystem", filesystem)
    assert read_file("path", "memory://bucket/x", "store") == b"1"
    assert told == [("memory", {"key": "key", "secret": "hush"})]
