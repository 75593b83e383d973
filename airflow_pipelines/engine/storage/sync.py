"""Copies of checkpoints in an object store: pushed after a checkpoint, pulled when a start finds no local one.

Layout under the bucket: ``owner.json``, ``batches/<name>`` and ``checkpoints/<uuid>.json``. Batch files are named by content, so a
copy sends only those that are missing there. The manifest is sent last, so a checkpoint that is listed is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

from airflow_pipelines.engine.errors import mask_secrets
from airflow_pipelines.engine.storage import manifest
from airflow_pipelines.engine.storage.batch_store import content_name
from airflow_pipelines.engine.storage.checkpoint import BatchFiles, CheckpointStore
from airflow_pipelines.engine.storage.durable import TEMPORARY, sync_folder, write_atomically
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.storage.remote_calls import ANSWER_S, SyncError, remotely
from airflow_pipelines.systems.files.access import UnusablePathError, file_system_of

OWNER = "owner.json"
DEFAULT_REGION = "us-east-1"
DEFAULT_PULL_INTERVAL_S = 10.0


@dataclass(frozen=True, slots=True)
class SyncConfig:
    """The configuration of checkpoint sync: ``runtime_config.storage.backend.config.sync``.

    :param bucket: ``name/prefix`` of an S3-compatible store, a URL, or a path of a local folder
    :param start_from_checkpoint: ``latest``, a checkpoint's id, or None (never pull)
    :param pull_interval_s: the interval, in seconds, at which a pipeline in standby looks for a newer checkpoint
    :param ignore_checksum: True to compare existing copies by size only, without reading them back
    """

    bucket: str
    endpoint: str | None = None
    region: str = DEFAULT_REGION
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    read_bucket: str | None = None
    start_from_checkpoint: str | None = None
    fail_if_no_checkpoint: bool = False
    pull_interval_s: float = DEFAULT_PULL_INTERVAL_S
    push_interval_s: float | None = None
    ignore_checksum: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """The pipeline to which the checkpoints in a bucket belong.

    :param system_name: ``pipeline-<id>``, which a pipeline keeps when it is renamed
    :param pipeline_name: the name that it had when it took the bucket; empty if an earlier release wrote it
    """

    system_name: str
    pipeline_name: str = ""

    def __str__(self) -> str:
        """Return the owner in the form for messages."""
        return f"{self.pipeline_name or 'a pipeline'} (id: {self.system_name})"


class RemoteCheckpoints:
    """The checkpoints under one bucket.

    A copy is compared with its name, which is the hash of its content, when it is first encountered and after it was sent. Any
    fsspec URL works if its package is installed; a plain ``name/prefix`` means S3.
    """

    def __init__(self, config: SyncConfig, bucket: str | None = None) -> None:
        address = _url(bucket or config.bucket)
        self.url = mask_secrets(address)
        """The URL for messages, without secrets."""
        self._trusting = config.ignore_checksum
        self._whole: set[str] = set()
        options: dict[str, Any] = {}
        if address.startswith(("s3://", "s3a://")):
            client = {"region_name": config.region}
            if config.endpoint:
                client["endpoint_url"] = config.endpoint
            waits = {"connect_timeout": ANSWER_S, "read_timeout": ANSWER_S}
            options = {"key": config.access_key, "secret": config.secret_key, "client_kwargs": client, "config_kwargs": waits}
        try:
            self._system, self._root = file_system_of(address, **options)
        except UnusablePathError as error:
            raise SyncError(f"The object store {self.url} cannot be reached: {mask_secrets(str(error))}") from error

    def list(self) -> tuple[UUID, ...]:
        """Return the ids of the complete checkpoints, oldest first."""
        folder = f"{self._root}/checkpoints"

        def list_folder() -> Sequence[str]:
            try:
                return list(self._system.ls(folder, detail=False, refresh=True))
            except FileNotFoundError:
                return ()

        entries = remotely(f"The checkpoints in {self.url} cannot be listed", list_folder)
        names = [str(entry).rsplit("/", 1)[-1] for entry in entries]
        return tuple(sorted(UUID(name.removesuffix(".json")) for name in names if name.endswith(".json")))

    def claim(self, owner: Owner) -> None:
        """Make a pipeline the bucket's owner if it has none.

        :raises SyncError: if it belongs to another pipeline
        """
        holder = self.owner()
        if holder is None:
            named = {"owner": owner.system_name, "pipeline_name": owner.pipeline_name}
            self._put_bytes(OWNER, json.dumps(named).encode())
        elif holder.system_name != owner.system_name:
            raise SyncError(
                f"S3 checkpoint bucket is already owned by {holder}: {self.url}. Current pipeline is {owner}. "
                "Refusing to write checkpoint data"
            )

    def owner(self) -> Owner | None:
        """Return the pipeline that owns the bucket, if any."""
        what = f"The owner of {self.url} cannot be read"
        content = remotely(what, lambda: self._content(f"{self._root}/{OWNER}"))
        try:
            if content is None:
                return None
            named = json.loads(content)
            return Owner(str(named["owner"]), str(named.get("pipeline_name") or ""))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SyncError(f"{what}: {error}") from error

    def push(self, store: CheckpointStore, batches: BatchFiles, uuid: UUID) -> int:
        """Copy a local checkpoint to the bucket. Undamaged files that are there already are not sent again.

        :param store: the store with the local checkpoint
        :param batches: the store with its batch files
        :param uuid: the checkpoint
        :returns: the number of batch files sent
        :raises StorageError: if a local file is damaged; no copy of it is made
        """
        path = store.manifest_path(uuid)
        content = path.read_bytes()
        names = manifest.decode(content, path, uuid)["files"]
        batches.verify(names)
        sent = sum(self._put_batch(name, Path(batches.path(name))) for name in names)
        if self._manifest(uuid) != content:
            self._put_bytes(f"checkpoints/{uuid}.json", content)
        return sent

    def pull(self, store: CheckpointStore, batches: BatchFiles, uuid: UUID, check: Callable[[], object] = lambda: None) -> None:
        """Copy a checkpoint into the local store. Its manifest is put in place last.

        :param store: the store for the manifest
        :param batches: the store for the batch files
        :param uuid: the checkpoint
        :param check: a function that is called before each file; an error that it raises ends the copying
        :raises SyncError: if a copy is damaged; nothing of the local store is replaced by it
        """
        content, names = self._read(uuid)
        for name in names:
            check()
            try:
                batches.verify([name])
            except StorageError:
                self._get_batch(name, Path(batches.path(name)))
        write_atomically(store.manifest_path(uuid), content)
        store.adopt(uuid)

    def files_of(self, uuid: UUID) -> Sequence[str]:
        """Return the names of the batch files that a copy needs.

        :param uuid: its checkpoint
        :raises SyncError: if the copy is missing or damaged
        """
        return self._read(uuid)[1]

    def remove_manifest(self, uuid: UUID) -> None:
        """Remove a copy from the list. Its batch files stay.

        :param uuid: its checkpoint
        :raises SyncError: when it cannot be removed
        """
        self._remove(f"checkpoints/{uuid}.json")

    def remove_batches(self, names: Sequence[str]) -> None:
        """Remove batch files that no copy needs any more.

        :param names: their names
        :raises SyncError: when one cannot be removed
        """
        for name in names:
            self._whole.discard(name)
            self._remove(f"batches/{name}")

    def _read(self, uuid: UUID) -> tuple[bytes, Sequence[str]]:
        """Return the manifest of a copy, and the batch files that it names."""
        content = self._manifest(uuid)
        if content is None:
            raise SyncError(f"There is no checkpoint {uuid} in {self.url}.")
        try:
            return content, manifest.decode(content, Path(f"checkpoints/{uuid}.json"), uuid)["files"]
        except StorageError as error:
            raise SyncError(f"The checkpoint {uuid} in {self.url} is damaged: {error.what}") from error

    def _remove(self, name: str) -> None:
        def remove_file() -> None:
            try:
                self._system.rm_file(f"{self._root}/{name}")
            except FileNotFoundError:
                # A retried call may have succeeded before.
                return

        remotely(f"{name} cannot be removed from {self.url}", remove_file)

    def _manifest(self, uuid: UUID) -> bytes | None:
        path = f"{self._root}/checkpoints/{uuid}.json"
        return remotely(f"The checkpoint {uuid} cannot be read from {self.url}", lambda: self._content(path))

    def _content(self, path: str) -> bytes | None:
        # Do not ask whether the file exists: some file systems deny that to callers without permission.
        try:
            return bytes(self._system.cat_file(path))
        except FileNotFoundError:
            return None

    def _get_batch(self, name: str, target: Path) -> None:
        aside = target.with_name(target.name + TEMPORARY)

        def get_file() -> str:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._system.get_file(f"{self._root}/batches/{name}", str(aside))
            with aside.open("rb") as file:
                content = content_name(file, PurePosixPath(name).suffix)
                os.fsync(file.fileno())
            return content

        copy_name = remotely(f"batches/{name} cannot be read from {self.url}", get_file)
        if copy_name != name:
            aside.unlink()
            raise SyncError(
                f"The copy {self.url}/batches/{name} is damaged: its content is not what its name says. "
                "Start from another checkpoint, or sync again from where the pipeline ran."
            )
        aside.replace(target)
        sync_folder(target.parent)

    def _put_batch(self, name: str, source: Path) -> bool:
        """Send a batch file unless an undamaged copy is there.

        :returns: True if it was sent
        """
        path = f"{self._root}/batches/{name}"
        if name in self._whole:
            return False

        sent = False

        def put() -> None:
            nonlocal sent
            if self._has_whole(path, name, source):
                return
            sent = True
            self._make_parent(path)
            aside = path + TEMPORARY
            self._system.put_file(str(source), aside)
            self._check_sent(aside, name)
            self._system.mv(aside, path)

        remotely(f"batches/{name} cannot be written to {self.url}", put)
        self._whole.add(name)
        return sent

    def _has_whole(self, path: str, name: str, source: Path) -> bool:
        try:
            if self._system.size(path) != source.stat().st_size:
                return False
        except FileNotFoundError:
            return False
        return self._trusting or self._content_name(path, name) == name

    def _check_sent(self, path: str, name: str) -> None:
        if not self._trusting and self._content_name(path, name) != name:
            raise SyncError(f"batches/{name} did not arrive whole in {self.url}: sync again.")

    def _content_name(self, path: str, expected: str) -> str:
        with self._system.open(path, "rb") as file:
            return content_name(file, PurePosixPath(expected).suffix)

    def _put_bytes(self, name: str, content: bytes) -> None:
        path = f"{self._root}/{name}"

        def put() -> None:
            self._make_parent(path)
            self._system.pipe_file(path + TEMPORARY, content)
            self._system.mv(path + TEMPORARY, path)

        remotely(f"{name} cannot be written to {self.url}", put)

    def _make_parent(self, path: str) -> None:
        self._system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)


def _url(bucket: str) -> str:
    if "://" in bucket:
        return bucket.rstrip("/")
    if bucket.startswith(("/", "./", "../", "~")):
        return Path(bucket).expanduser().absolute().as_uri()
    return f"s3://{bucket.strip('/')}"
