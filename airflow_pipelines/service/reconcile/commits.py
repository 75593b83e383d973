"""The changes of pipelines, which are retried if another process was quicker, and the notes about them in the logs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.lifecycle import incarnation
from airflow_pipelines.service.pipeline_files import PipelineFiles
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.store import Conflict, Store

ATTEMPTS = 100
"""The maximum number of attempts to change a pipeline that other processes change at the same time."""

logger = logging.getLogger(__name__)


class Commits:
    """The writer of changes of pipelines to the store.

    :param store: the store
    :param files: the files of pipelines, for their logs
    """

    def __init__(self, store: Store, files: PipelineFiles) -> None:
        self._store = store
        self._files = files

    def commit(self, record: PipelineRecord, steps: list[PipelineRecord]) -> PipelineRecord:
        """Write the steps of a pipeline, each of which is an event.

        :param record: the pipeline before them
        :param steps: the pipeline after each of them
        :returns: the pipeline after all of them
        :raises Conflict: when another process has changed the pipeline meanwhile
        """
        return self._store.commit(record, steps)

    def change(self, record: PipelineRecord, action: Callable[[PipelineRecord], PipelineRecord]) -> PipelineRecord:
        """Apply an action to the newest state of a pipeline.

        :param record: the pipeline as it was last seen
        :param action: a function that returns the pipeline after the change
        :returns: the pipeline after the change
        :raises Problem: when the action raises it, or other processes were quicker each time
        """
        return self.change_in_steps(record, lambda current: [action(current)])

    def change_in_steps(self, record: PipelineRecord, action: Callable[[PipelineRecord], list[PipelineRecord]]) -> PipelineRecord:
        """Apply an action of several steps, each of which is an event; otherwise as :meth:`change`.

        :param record: the pipeline as it was last seen
        :param action: a function that returns the pipeline after each of the steps
        :returns: the pipeline after all of them
        """
        for _ in range(ATTEMPTS):
            try:
                return self._store.commit(record, action(record))
            except Conflict:
                record = self.reload(record)
        raise Problem(ErrorCode.LOCK_TOOK_TOO_LONG, f"Pipeline '{record.name}' changes too often to be changed. Try again")

    def reload(self, record: PipelineRecord) -> PipelineRecord:
        """Return the newest state of a pipeline.

        :raises Problem: when it was deleted
        """
        newest = self.newest(record)
        if newest is None:
            raise errors.unknown_pipeline(record.name)
        return newest

    def newest(self, record: PipelineRecord) -> PipelineRecord | None:
        """Return the newest state of a pipeline; None if it was deleted."""
        return self._store.get(record.id)

    def fail(self, record: PipelineRecord, error: dict[str, Any]) -> PipelineRecord:
        """Record that the incarnation of a pipeline failed, also in its log.

        :param record: the pipeline
        :param error: the deployment error
        """
        self.tell(record, error)
        return self.change(record, lambda current: incarnation.fail(current, error, datetime.now(UTC)))

    def tell(self, record: PipelineRecord, error: dict[str, Any]) -> None:
        """Write a deployment error into the pipeline's log for its followers, since the host cannot do so any more."""
        # Its own last lines stand right before it.
        message = error["message"].partition("\nThe last lines of the pipeline's log:")[0]
        self.note(record, f"{error['error_code']}: {message}", "ERROR")

    def note(self, record: PipelineRecord, message: str, level: str) -> None:
        """Write a line into the pipeline's log."""
        try:
            self._files.note(record, message, level)
        except OSError as failure:
            logger.warning("The log of pipeline %s cannot be written: %s", record.name, failure)


def deployment_error(code: ErrorCode, message: str, details: Any = None) -> dict[str, Any]:
    """Return a deployment error in wire form.

    :param code: the code of the error
    :param message: what was wrong, and what to do
    :param details: further data for programs
    """
    return Problem(code, message, details).body()
