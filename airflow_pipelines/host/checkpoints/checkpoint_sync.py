"""The copies of checkpoints in the object store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.storage.checkpoint_retention import CheckpointRetention, RemoteGarbage
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.engine.storage.sync import Owner, RemoteCheckpoints, SyncConfig
from airflow_pipelines.host.checkpoints.durability import Durability
from airflow_pipelines.host.state.pipeline_log import PipelineLog

COPY_S: Final = 600.0
"""The seconds for which a copy waits for the previous one."""
OUTCOMES: Final = 50
"""The number of copies whose outcome is remembered."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy to make."""

    config: SyncConfig
    uuid: UUID
    retention: CheckpointRetention
    periodic: bool
    previous: threading.Thread | None


class CheckpointSync:
    """The copying of checkpoints to the object store, in a thread of its own, one at a time."""

    def __init__(
        self,
        config: SyncConfig | None,
        retention: CheckpointRetention,
        durability: Durability,
        owner: Owner,
        log: PipelineLog,
        synced: Callable[[UUID], None],
    ) -> None:
        """Set up the copying; nothing is copied yet.

        :param config: the target of the copies, or None if none is configured
        :param retention: the retention of the copies
        :param durability: the checkpoints
        :param owner: the owner of the checkpoints
        :param log: the pipeline's log
        :param synced: called with the id of each copy that was made, in the thread that made it
        """
        self._config = config
        self._retention = retention
        self._durability = durability
        self._owner = owner
        self._log = log
        self._synced = synced
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._success: UUID | None = None
        self._periodic: UUID | None = None
        self._failure: dict[str, Any] | None = None
        self._outcomes: dict[UUID, str | None] = {}
        self._last_push = time.monotonic()
        self._bucket: RemoteCheckpoints | None = None
        self._garbage: RemoteGarbage | None = None

    @property
    def busy(self) -> bool:
        """True while a copy is being made: its files must not be garbage-collected."""
        return self._thread is not None and self._thread.is_alive()

    def request(
        self, uuid: UUID | None = None, *, retention_min_count: int | None = None, retention_min_age_days: float | None = None
    ) -> UUID:
        """Start to copy a checkpoint.

        :param uuid: the checkpoint, or None for the newest
        :param retention_min_count: the number of copies that stay once this one is there, or None for the configured number
        :param retention_min_age_days: the age in days up to which copies stay, or None for the configured one
        :returns: the checkpoint's id
        :raises Problem: if there is nothing to copy, or no target
        """
        config = self._require_config()
        chosen = self._newest() if uuid is None else self._find_named(uuid)
        self._start(config, chosen, self._retention.but(retention_min_count, retention_min_age_days), periodic=False)
        return chosen

    def push_if_due(self) -> None:
        """Start an automatic copy if the push interval has passed and there is a checkpoint that was not copied yet."""
        config = self._config
        if config is None or config.push_interval_s is None or self.busy:
            return
        newest = self._durability.checkpoints.latest_listed()
        if newest is None or time.monotonic() - self._last_push < config.push_interval_s:
            return
        if newest.uuid not in (self._success, self._periodic):
            self._start(config, newest.uuid, self._retention, periodic=True)

    def status(self) -> dict[str, Any]:
        """Return the answer of ``GET checkpoint/sync_status``; ``copies`` are those that have ended, in the order of their ends."""
        with self._lock:
            return {
                "success": None if self._success is None else str(self._success),
                "failure": self._failure,
                "periodic": None if self._periodic is None else str(self._periodic),
                "copies": [{"uuid": str(uuid), "error": error} for uuid, error in self._outcomes.items()],
            }

    def remote(self) -> list[dict[str, str]]:
        """Return the answer of ``GET checkpoints/remote``."""
        return [{"uuid": str(uuid)} for uuid in reversed(RemoteCheckpoints(self._require_config()).list())]

    def wait(self, timeout_s: float) -> None:
        """Wait for a copy in progress, and log it: the object store may take long."""
        if self._thread is None or not self._thread.is_alive():
            return
        self._log.info("waiting for the sync of a checkpoint, for %g s at most", timeout_s)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._log.failure("the sync of a checkpoint has not ended within %g s and is given up", timeout_s)

    def _require_config(self) -> SyncConfig:
        if self._config is None:
            raise Problem(
                ErrorCode.CHECKPOINT_PUSH_ERROR,
                "Checkpoint sync is not configured: set storage.backend.config.sync.bucket in the runtime configuration.",
            )
        return self._config

    def _newest(self) -> UUID:
        newest = self._durability.checkpoints.latest_listed()
        if newest is None:
            raise Problem(ErrorCode.CHECKPOINT_PUSH_ERROR, "There is no checkpoint to sync yet: make one first.")
        return newest.uuid

    def _find_named(self, uuid: UUID) -> UUID:
        there = [info.uuid for info in self._durability.checkpoints.list_checkpoints()]
        if uuid not in there:
            raise Problem(
                ErrorCode.CHECKPOINT_PUSH_ERROR,
                f"There is no checkpoint {uuid} to sync; there are: {', '.join(str(each) for each in there) or 'none'}.",
            )
        return uuid

    def _start(self, config: SyncConfig, uuid: UUID, retention: CheckpointRetention, *, periodic: bool) -> None:
        with self._lock:
            # The outcome of an earlier try says nothing about this one.
            self._outcomes.pop(uuid, None)
            if self._failure is not None and self._failure["uuid"] == str(uuid):
                self._failure = None
            copy = _Copy(config, uuid, retention, periodic, previous=self._thread)
            self._last_push = time.monotonic()
            thread = threading.Thread(target=self._run, args=(copy,), name="checkpoint sync", daemon=True)
            self._thread = thread
            thread.start()

    def _run(self, copy: _Copy) -> None:
        try:
            remote = self._copy(copy)
        except Exception as error:  # noqa: BLE001  whatever the object store raises is the answer of the status request
            self._log.failure("checkpoint %s could not be synced: %s", copy.uuid, error)
            text = self._log.redact(str(error))
            with self._lock:
                self._failure = {"uuid": str(copy.uuid), "error": text}
                self._note_end(copy.uuid, text)
            return
        with self._lock:
            if copy.periodic:
                self._periodic = copy.uuid
            else:
                self._success = copy.uuid
            self._note_end(copy.uuid, None)
        self._synced(copy.uuid)
        self._remove_outdated(remote, copy)

    def _copy(self, copy: _Copy) -> RemoteCheckpoints:
        if copy.previous is not None:
            copy.previous.join(COPY_S)
            if copy.previous.is_alive():
                raise SyncError(f"The sync before this one has not ended within {COPY_S:g} s: the object store does not answer.")
        self._durability.check()
        # Kept for the whole incarnation, because it remembers the files that it has compared already.
        remote = self._bucket = self._bucket or RemoteCheckpoints(copy.config)
        remote.claim(self._owner)
        sent = remote.push(self._durability.checkpoints, self._durability.batches, copy.uuid)
        self._log.info("checkpoint %s synced to %s (%d files sent)", copy.uuid, remote.url, sent)
        return remote

    def _note_end(self, uuid: UUID, error: str | None) -> None:
        self._outcomes[uuid] = error
        while len(self._outcomes) > OUTCOMES:
            del self._outcomes[next(iter(self._outcomes))]

    def _remove_outdated(self, remote: RemoteCheckpoints, copy: _Copy) -> None:
        garbage = self._garbage = self._garbage or RemoteGarbage(remote)
        try:
            removed = garbage.collect(copy.retention, time.time(), but=copy.uuid)
        except SyncError as error:
            # The copy itself was made; the next one tries to remove them again.
            self._log.warning("outdated copies of checkpoints could not be removed: %s", error)
            return
        if removed:
            self._log.info("%d outdated copies of checkpoints removed from %s", removed, remote.url)
