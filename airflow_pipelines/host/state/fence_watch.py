"""Noticing while nothing else happens that a later run has taken the pipeline's storage over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.storage.fence import OvertakenError
from airflow_pipelines.host.state.pipeline_log import PipelineLog

LOOK_S: Final = 3.0
"""How often a pipeline that does nothing looks. One that does something looks with each write."""


class FenceWatch:
    """Looks at the storage's epoch every few seconds. Used by the runner's thread only."""

    def __init__(self, log: PipelineLog) -> None:
        """Make a watch that has nothing to look at yet."""
        self._check: Callable[[], None] = lambda: None
        self._log = log
        self._looked = time.monotonic()

    def begin(self, check: Callable[[], None]) -> None:
        """Look at a storage from now on.

        :param check: raises OvertakenError when a later run uses it
        """
        self._check = check

    @property
    def until_due(self) -> float:
        """Seconds until the next look."""
        return max(0.0, self._looked + LOOK_S - time.monotonic())

    def look(self) -> None:
        """Look, when it is time.

        :raises OvertakenError: when this run has to end
        """
        if self.until_due == 0:
            self.look_now()

    def look_now(self) -> None:
        """Look.

        :raises OvertakenError: when this run has to end
        """
        try:
            self._check()
        except OvertakenError:
            raise
        except StorageError as error:
            # It may come back before anything has to be written; what is to be written then fails with a reason.
            self._log.limited("storage", "the storage cannot be used at the moment: %s", error)
        self._looked = time.monotonic()
