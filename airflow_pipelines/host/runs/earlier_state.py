"""The saved state that an attempt goes on from: of this storage, of an object store, or of an older checkpoint that was chosen."""

from __future__ import annotations

from typing import Final

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.engine.storage.checkpoint_sources import CheckpointSources
from airflow_pipelines.host.checkpoints.durability import Durability, SavedState
from airflow_pipelines.host.checkpoints.standby import Standby, was_activated
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.state.options import RuntimeOptions

STANDBY: Final = "standby"
"""The initial status of a pipeline that is to stand by first."""


class EarlierState:
    """The search for the state that an earlier run has left.

    :param incarnation: the incarnation
    :param options: the options of the pipeline
    :param durability: the storage
    """

    def __init__(self, incarnation: Incarnation, options: RuntimeOptions, durability: Durability) -> None:
        self._deployment = incarnation.deployment
        self._incarnation = incarnation
        self._options = options
        self._durability = durability

    def find(self, attempt: int) -> SavedState | None:
        """Return the saved state, or None if there is none.

        :param attempt: the number of the attempt to run the incarnation, from 1
        :raises SuspendedEarly: if the pipeline was suspended while it stood by
        :raises TakenDown: if it is to end at once
        :raises Problem: if the state cannot be used
        """
        if attempt > 1:
            return self._find_last_attempt()
        if self._deployment.initial == STANDBY:
            return self._wait_in_standby()
        chosen = self._deployment.from_checkpoint
        if chosen is None:
            return self._durability.saved_state(self._deployment.newest_checkpoint, self._sources())
        self._options.require_storage()
        saved, aside = self._durability.go_back(chosen)
        self._incarnation.log.info(
            "going back to checkpoint %s as asked; what was newer is in %s", chosen, aside or "nothing: it was the newest"
        )
        self._incarnation.state.record(RuntimeStatus.INITIALIZING, checkpoints=self._durability.list_checkpoints())
        return saved

    def _find_last_attempt(self) -> SavedState | None:
        """Return the state that the previous attempt has left, regardless of the deployment's choice of a state to begin with."""
        expected = self._deployment.newest_checkpoint if self._options.sync is None else None
        return self._durability.saved_state(self._deployment.from_checkpoint or expected)

    def _wait_in_standby(self) -> SavedState | None:
        self._options.require_storage()
        incarnation, durability, sync, sources = self._incarnation, self._durability, self._options.sync, self._sources()
        if sources is None or sync is None:
            raise Problem(
                ErrorCode.INITIAL_STANDBY_NOT_ALLOWED,
                "A pipeline stands by for checkpoints in an object store, and none is configured: set "
                "storage.backend.config.sync in the runtime configuration.",
            )
        expected = self._deployment.newest_checkpoint
        if was_activated(durability.folder):
            incarnation.log.info("this pipeline was activated here before: it goes on from its own storage")
            incarnation.state.skip_standby()
            return durability.saved_state(expected, sources)
        standby = Standby(sources, sync.pull_interval_s, durability, incarnation.state, incarnation.fence, incarnation.log)
        standby.wait()
        return standby.activate(expected)

    def _sources(self) -> CheckpointSources | None:
        """Return the copies of checkpoints in the object store, or None without one."""
        sync, durability, incarnation = self._options.sync, self._durability, self._incarnation
        if sync is None or not self._options.storage:
            return None
        return CheckpointSources(
            sync, incarnation.owner, durability.checkpoints, durability.batches, incarnation.log.warning, incarnation.state.check
        )
