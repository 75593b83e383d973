"""A watch that notices, while nothing else happens, that a later run has taken over the pipeline's storage."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.storage.fence import OvertakenError
from airflow_pipelines.host.state.pipeline_log import PipelineLog

LOOK_S: Final = 3.0
"""The seconds between two checks of an idle pipeline. A busy one checks with each write."""


class FenceWatch:
    """A watch that checks the storage's epoch every few seconds. Only the runner's thread uses it."""

    def __init__(self, log: PipelineLog) -> None:
        """Create a watch that has nothing to check yet."""
        self._check: Callable[[], None] = lambda: None
        self._log = log
        self._looked = time.monotonic()

    def begin(self, check: Callable[[], None]) -> None:
        """Check a storage from now on.

        :param check: raises OvertakenError if a later run uses the storage
        """
        self._check = check

    @property
    def until_due(self) -> float:
        """The seconds until the next check."""
        return max(0.0, self._looked + LOOK_S - time.monotonic())

    def look(self) -> None:
        """Check if it is time.

        :raises OvertakenError: if this run has to end
        """
        if self.until_due == 0:
            self.look_now()

    def look_now(self) -> None:
        """Check at once.

        :raises OvertakenError: if this run has to end
        """
        try:
            self._check()
        except OvertakenError:
            raise
        except StorageError as error:
            # The storage may come back before anything has to be written. Otherwise the write fails with a reason.
            self._log.warn_limited("storage", "the storage cannot be used at the moment: %s", error)
        self._looked = time.monotonic()
