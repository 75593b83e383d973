"""The sources of a start's checkpoint: the local store, or one of the buckets that it is pulled from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from airflow_pipelines.engine.storage.checkpoint import BatchFiles, CheckpointStore
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.engine.storage.sync import Owner, RemoteCheckpoints, SyncConfig

LATEST: Final = "latest"


class CheckpointSources:
    """The buckets from which a pipeline reads checkpoints, in order."""

    def __init__(
        self,
        config: SyncConfig,
        owner: Owner,
        store: CheckpointStore,
        batches: BatchFiles,
        warn: Callable[[str], object],
        check: Callable[[], object],
    ) -> None:
        """Prepare the sources. No bucket is accessed yet.

        :param config: the buckets, and the wanted checkpoint
        :param owner: the pipeline; a bucket of another pipeline is read with a warning
        :param store: the store that checkpoints are pulled to
        :param batches: the batch files of that store
        :param warn: the function that takes a warning
        :param check: a function that is called before each file is pulled; an error that it raises ends the pull
        :raises SyncError: if the wanted id cannot be that of a checkpoint
        """
        wanted = config.start_from_checkpoint
        self._exact = None if wanted in (None, LATEST) else _parse_uuid(str(wanted))
        self._config = config
        self._owner = owner
        self._store = store
        self._batches = batches
        self._warn = warn
        self._check = check
        self._names = [config.bucket, *([config.read_bucket] if config.read_bucket else [])]
        self._opened: list[RemoteCheckpoints] = []
        self._warned: set[str] = set()

    def resolve(self) -> UUID | None:
        """Return the checkpoint to start from: a local one, else one pulled from the bucket, else from the read bucket.

        :returns: the id of the checkpoint; None when nothing is found and that is allowed
        :raises SyncError: when nothing is found although a checkpoint is required, and when a bucket cannot be read
        """
        local = [info.uuid for info in self._store.list_checkpoints()]
        if self._exact is None and local:
            return local[0]
        if self._exact in local:
            return self._exact
        for remote in self._remotes():
            there = remote.list()
            wanted = there[-1] if self._exact is None and there else self._exact
            if wanted is not None and wanted in there:
                self._pull(remote, wanted)
                return wanted
        if self._config.fail_if_no_checkpoint:
            what = "Checkpoints" if self._exact is None else f"Checkpoint {self._exact}: files"
            raise SyncError(f"{what} were not found in source {', '.join(self._names)}.")
        return None

    def pull_newest(self) -> UUID | None:
        """Pull the newest checkpoint of all buckets, or the wanted one, to the local store.

        :returns: the id of the checkpoint; None when there is none, or the local store has a newer one
        :raises SyncError: when a bucket cannot be read
        """
        candidates = [(uuid, remote) for remote in self._remotes() for uuid in remote.list() if self._exact in (None, uuid)]
        if not candidates:
            return None
        uuid, remote = max(candidates, key=lambda each: each[0])
        local = self._store.newest()
        if local is not None and local > uuid:
            return None
        if local != uuid:
            self._pull(remote, uuid)
        return uuid

    def _remotes(self) -> list[RemoteCheckpoints]:
        if not self._opened:
            self._opened = [RemoteCheckpoints(self._config, bucket) for bucket in self._names]
        return self._opened

    def _pull(self, remote: RemoteCheckpoints, uuid: UUID) -> None:
        if remote.url not in self._warned:
            self._warn_of_owner(remote)
        remote.pull(self._store, self._batches, uuid, self._check)

    def _warn_of_owner(self, remote: RemoteCheckpoints) -> None:
        self._warned.add(remote.url)
        try:
            owner = remote.owner()
        except SyncError as error:
            self._warn(f"the checkpoints are read all the same: {error}")
            return
        if owner is not None and owner.system_name != self._owner.system_name:
            self._warn(f"{remote.url} belongs to {owner}: {self._owner} reads its checkpoints, and may write none there")


def _parse_uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise SyncError(f"start_from_checkpoint must be 'latest' or a checkpoint's id, not {text!r}.") from error
