"""Copies of checkpoints in a folder that stands for an object store."""

from __future__ import annotations

import errno
import io
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from airflow_pipelines.engine.storage import remote_calls
from airflow_pipelines.engine.storage.batch_store import content_name
from airflow_pipelines.engine.storage.checkpoint import CheckpointStore
from airflow_pipelines.engine.storage.errors import DamagedError, StorageError
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.engine.storage.sync import Owner, RemoteCheckpoints, SyncConfig
from tests.engine.storage.test_checkpoint import Files, contents


class NamedByContent(Files):
    """A batch store of plain files whose names are the hashes of what is in them."""

    def verify(self, names: Iterable[str]) -> None:
        super().verify(names)
        for name in names:
            if name != _name(self.path(name).read_bytes()):
                raise DamagedError(self.path(name), f"The batch file {self.path(name)} is damaged.")

    def add(self, name: str, content: bytes | None = None) -> str:
        content = f"rows {name}".encode() if content is None else content
        return super().add(_name(content), content)


def _name(content: bytes) -> str:
    return content_name(io.BytesIO(content))


def local(folder: Path) -> tuple[CheckpointStore, Files]:
    files = NamedByContent(folder / "batches")
    return CheckpointStore(folder, files), files


def test_push_sends_only_what_is_missing_and_the_manifest_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, files = local(tmp_path / "local")
    remote = RemoteCheckpoints(SyncConfig(str(tmp_path / "bucket")))
    first = store.save(contents(1, files.add("a"), files.add("b"))).uuid
    assert remote.push(store, files, first) == 2
    second = store.save(contents(2, files.add("a"), files.add("b"), files.add("c"))).uuid
    assert remote.push(store, files, second) == 1
    assert remote.push(store, files, second) == 0
    assert remote.list() == (first, second)

    third = store.save(contents(3, files.add("d"), files.add("e"))).uuid
    put, calls = RemoteCheckpoints._put_batch, []

    def broken(self: RemoteCheckpoints, name: str, source: Path) -> bool:
        calls.append(name)
        if len(calls) == 2:
            raise SyncError("cut off")
        return put(self, name, source)

    monkeypatch.setattr(RemoteCheckpoints, "_put_batch", broken)
    with pytest.raises(SyncError, match="cut off"):
        remote.push(store, files, third)
    assert remote.list() == (first, second)
    monkeypatch.undo()
    assert remote.push(store, files, third) == 1
    assert third in remote.list()


@pytest.mark.parametrize("form", ["path", "url"])
def test_pull_gives_the_same_checkpoint(tmp_path: Path, form: str) -> None:
    bucket = tmp_path / "bucket"
    config = SyncConfig(str(bucket) if form == "path" else bucket.as_uri())
    store, files = local(tmp_path / "one")
    saved = contents(5, name := files.add("a", b"content"))
    uuid = store.save(saved).uuid
    RemoteCheckpoints(config).push(store, files, uuid)

    other, other_files = local(tmp_path / "two")
    RemoteCheckpoints(config).pull(other, other_files, uuid)
    assert other.load(uuid).contents == saved
    assert other_files.path(name).read_bytes() == b"content"


def test_copies_are_compared_by_hash_and_not_by_size(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    config = SyncConfig(str(bucket))
    store, files = local(tmp_path / "one")
    uuid = store.save(contents(1, one := files.add("a"), other := files.add("b"))).uuid
    RemoteCheckpoints(config).push(store, files, uuid)
    copy = bucket / "batches" / one
    whole = copy.read_bytes()
    shutil.copy(bucket / "batches" / other, copy)

    fresh, fresh_files = local(tmp_path / "two")
    with pytest.raises(SyncError, match=f"batches/{one} is damaged: its content is not what its name says. Start from another"):
        RemoteCheckpoints(config).pull(fresh, fresh_files, uuid)
    assert fresh.list_checkpoints() == []
    assert one not in fresh_files.names()

    by_size = SyncConfig(str(bucket), ignore_checksum=True)
    assert RemoteCheckpoints(by_size).push(store, files, uuid) == 0
    remote = RemoteCheckpoints(config)
    assert remote.push(store, files, uuid) == 1
    assert copy.read_bytes() == whole
    assert remote.push(store, files, uuid) == 0
    RemoteCheckpoints(config).pull(fresh, fresh_files, uuid)
    assert fresh.load(uuid).contents == store.load(uuid).contents


def test_a_damaged_manifest_is_not_pulled_and_is_sent_again(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    config = SyncConfig(str(bucket))
    store, files = local(tmp_path / "one")
    uuid = store.save(contents(7, files.add("a"))).uuid
    RemoteCheckpoints(config).push(store, files, uuid)
    copy = bucket / "checkpoints" / f"{uuid}.json"
    whole = copy.read_bytes()
    copy.write_bytes(whole.replace(b'"offset":7', b'"offset":9'))
    with pytest.raises(SyncError, match=f"The checkpoint {uuid} in .* is damaged"):
        RemoteCheckpoints(config).pull(*local(tmp_path / "two"), uuid)
    RemoteCheckpoints(config).push(store, files, uuid)
    assert copy.read_bytes() == whole


def test_a_damaged_local_file_is_not_copied_and_is_replaced_by_a_whole_copy(tmp_path: Path) -> None:
    remote = RemoteCheckpoints(SyncConfig(str(tmp_path / "bucket")))
    store, files = local(tmp_path / "one")
    uuid = store.save(contents(1, name := files.add("a"))).uuid
    remote.push(store, files, uuid)
    whole = files.path(name).read_bytes()
    files.path(name).write_bytes(b"other")
    with pytest.raises(StorageError, match=f"{name} is damaged"):
        RemoteCheckpoints(SyncConfig(str(tmp_path / "bucket2"))).push(store, files, uuid)
    assert not (tmp_path / "bucket2" / "batches" / name).exists()
    remote.pull(store, files, uuid)
    assert files.path(name).read_bytes() == whole


def test_another_pipelines_bucket_is_not_written(tmp_path: Path) -> None:
    remote = RemoteCheckpoints(SyncConfig(str(tmp_path / "bucket")))
    remote.claim(Owner("pipeline-1", "grades"))
    # A pipeline keeps its bucket when it is renamed.
    remote.claim(Owner("pipeline-1", "marks"))
    with pytest.raises(SyncError) as refused:
        remote.claim(Owner("pipeline-2", "orders"))
    assert re.fullmatch(
        r"S3 checkpoint bucket is already owned by grades \(id: pipeline-1\): \S+\. "
        r"Current pipeline is orders \(id: pipeline-2\)\. Refusing to write checkpoint data",
        str(refused.value),
    )
    written = tmp_path / "bucket" / "owner.json"
    assert json.loads(written.read_text()) == {"owner": "pipeline-1", "pipeline_name": "grades"}


def test_a_bucket_that_an_earlier_release_took(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    (bucket / "owner.json").write_text('{"owner": "pipeline-1"}')
    remote = RemoteCheckpoints(SyncConfig(str(bucket)))
    remote.claim(Owner("pipeline-1", "grades"))
    with pytest.raises(SyncError, match=r"already owned by a pipeline \(id: pipeline-1\)"):
        remote.claim(Owner("pipeline-2", "orders"))


def test_secrets_do_not_show() -> None:
    config = SyncConfig("b", access_key="AKIA", secret_key="hush")
    assert "hush" not in repr(config)
    assert "AKIA" not in repr(config)
    with pytest.raises(SyncError, match=r"The object store nonesuch://\*\*\*@store/b cannot be reached") as error:
        RemoteCheckpoints(SyncConfig("nonesuch://me:hush@store/b"))
    assert "hush" not in str(error.value)


class Busy(LocalFileSystem):
    """A folder that is like an object store with too much to do: calls fail, as ``troubles`` says, before or after their work."""

    protocol = "busy"
    cachable = False
    troubles: ClassVar[list[str]] = []
    calls: ClassVar[int] = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(str(path).removeprefix("busy://"))

    def _trouble(self, moment: str) -> None:
        if self.troubles and self.troubles[0] == moment:
            self.troubles.pop(0)
            raise OSError(errno.EBUSY, "Please reduce your request rate (503 SlowDown)")

    def cat_file(self, path: str, *args: Any, **options: Any) -> Any:
        type(self).calls += 1
        self._trouble("before")
        return super().cat_file(path, *args, **options)

    def put_file(self, *args: Any, **options: Any) -> Any:
        type(self).calls += 1
        self._trouble("before")
        super().put_file(*args, **options)
        self._trouble("after")

    def mv(self, *args: Any, **options: Any) -> Any:
        type(self).calls += 1
        self._trouble("before")
        super().mv(*args, **options)
        # The answer is lost: what is tried again finds its work done.
        self._trouble("after")


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> type[Busy]:
    fsspec.register_implementation("busy", Busy, clobber=True)
    monkeypatch.setattr(Busy, "troubles", [])
    monkeypatch.setattr(Busy, "calls", 0)
    monkeypatch.setattr(remote_calls, "RETRIES", replace(remote_calls.RETRIES, longest_wait_s=0.01))
    return Busy


def test_what_a_busy_store_does_not_answer_is_tried_again(tmp_path: Path, busy: type[Busy]) -> None:
    config = SyncConfig(f"busy://{tmp_path}/bucket")
    store, files = local(tmp_path / "local")
    uuid = store.save(contents(1, files.add("a"), files.add("b"))).uuid
    remote = RemoteCheckpoints(config)
    busy.troubles += ["before", "after"]
    remote.claim(Owner("me"))
    busy.troubles += ["before", "after"] * 2
    assert remote.push(store, files, uuid) == 2
    busy.troubles += ["before"] * 3
    assert remote.owner() == Owner("me")
    assert busy.troubles == []
    other, other_files = local(tmp_path / "other")
    busy.troubles += ["before"] * 3
    remote.pull(other, other_files, uuid)
    assert other.load(uuid).contents.step == 1


def test_a_store_that_stays_busy_is_given_up_and_named(tmp_path: Path, busy: type[Busy]) -> None:
    store, files = local(tmp_path / "local")
    uuid = store.save(contents(1, name := files.add("a"))).uuid
    remote = RemoteCheckpoints(SyncConfig(f"busy://{tmp_path}/bucket"))
    busy.troubles[:] = ["before"] * 100
    with pytest.raises(SyncError, match=rf"batches/{name} cannot be written to busy://.*SlowDown.* tried 6 times within \d+ s"):
        remote.push(store, files, uuid)
    assert busy.calls == 6
    busy.troubles.clear()
    assert remote.push(store, files, uuid) == 1


def test_what_cannot_become_better_is_not_tried_again(tmp_path: Path, busy: type[Busy], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        busy.calls += 1
        raise PermissionError(13, "Access Denied")

    monkeypatch.setattr(Busy, "put_file", refuse)
    store, files = local(tmp_path / "local")
    uuid = store.save(contents(1, files.add("a"))).uuid
    with pytest.raises(SyncError, match=r"Forbidden: .*Access Denied$"):
        RemoteCheckpoints(SyncConfig(f"busy://{tmp_path}/bucket")).push(store, files, uuid)
    assert busy.calls == 1
