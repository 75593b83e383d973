"""Standby: the newest checkpoint is pulled from the object store again and again, until the pipeline is activated."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final
from uuid import UUID

from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.engine.storage.checkpoint_sources import CheckpointSources
from airflow_pipelines.engine.storage.durable import write_atomically
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.host.checkpoints.durability import Durability, SavedState
from airflow_pipelines.host.state.fence_watch import FenceWatch
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.run_state import RunState, SuspendedEarly

MARKER: Final = "activated"
"""The file in the storage folder that marks that the pipeline was activated here and goes on from the folder's state."""


def was_activated(folder: Path) -> bool:
    """Return True if a pipeline was activated over a storage folder before: its state may be newer than any copy.

    :param folder: the storage folder
    """
    return (folder / MARKER).exists()


class Standby:
    """The standby phase of one incarnation, which keeps its storage up to date with the object store.

    Only the pipeline's thread uses it.
    """

    def __init__(
        self,
        sources: CheckpointSources,
        pull_interval_s: float,
        durability: Durability,
        state: RunState,
        fence: FenceWatch,
        log: PipelineLog,
    ) -> None:
        """Set up the standby; nothing is pulled yet.

        :param sources: the sources that checkpoints are pulled from
        :param pull_interval_s: the seconds between two pulls
        """
        self._sources = sources
        self._interval_s = pull_interval_s
        self._durability = durability
        self._state = state
        self._fence = fence
        self._log = log
        self._pulled: UUID | None = None

    def wait(self) -> None:
        """Pull until the pipeline is activated, and then once more.

        :raises SyncError: if the first pull fails
        :raises SuspendedEarly: if the pipeline is to suspend instead
        :raises TakenDown: if the pipeline is to end at once instead
        """
        self._pull()
        self._state.record(RuntimeStatus.STANDBY)
        due = time.monotonic() + self._interval_s
        while not self._is_decided():
            self._state.wait(self._is_decided, max(0.0, min(due - time.monotonic(), self._fence.until_due)))
            self._fence.look()
            if time.monotonic() >= due:
                self._pull_if_possible()
                due = time.monotonic() + self._interval_s
        self._state.check()
        if self._state.desired is RuntimeStatus.SUSPENDED:
            self._log.info("suspended before it was activated")
            raise SuspendedEarly
        self._log.info("activated: looking for a newer checkpoint for the last time")
        self._pull_if_possible()

    def activate(self, expected: UUID | None) -> SavedState | None:
        """Return the state to start from, and mark the storage: from here on it may have state that no copy has.

        :param expected: a checkpoint that is known to have been made over this storage
        :returns: the saved state, or None for an empty pipeline
        :raises StorageError, SyncError: if the state cannot be used, or if there is none although there must be
        """
        if self._pulled is None:
            saved = self._durability.saved_state(expected, self._sources)
        else:
            saved = self._durability.load_pulled(self._pulled)
        self._state.record(RuntimeStatus.STANDBY, checkpoints=self._durability.list_checkpoints())
        # After a kill before this point, the pipeline stands by again if it is started so.
        write_atomically(self._durability.folder / MARKER, b"")
        return saved

    def _is_decided(self) -> bool:
        return self._state.taken_down or self._state.desired is not RuntimeStatus.STANDBY

    def _pull_if_possible(self) -> None:
        """Pull. If the object store cannot be read, keep the checkpoint that was pulled before."""
        try:
            self._pull()
        except SyncError as error:
            newest = "none was pulled yet" if self._pulled is None else f"{self._pulled} stays the newest"
            self._log.failure("no checkpoint could be pulled, %s: %s", newest, error)

    def _pull(self) -> None:
        newest = self._sources.pull_newest()
        if newest is None or newest == self._pulled:
            return
        self._pulled = newest
        self._log.info("checkpoint pulled successfully: %s", newest)
        self._durability.drop_old_copies()
