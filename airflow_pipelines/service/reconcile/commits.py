"""Changes of pipelines that are tried again when another process was quicker, and what their logs say of them."""

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
"""So many times another process may be quicker with a change of the same pipeline."""

logger = logging.getLogger(__name__)


class Commits:
    """Writes changes of pipelines to the store.

    :param store: the store
    :param files: where the logs of pipelines are
    """

    def __init__(self, store: Store, files: PipelineFiles) -> None:
        self._store = store
        self._files = files

    def commit(self, record: PipelineRecord, steps: list[PipelineRecord]) -> PipelineRecord:
        """Write the steps that a pipeline made, each of which is an event.

        :param record: the pipeline before them
        :param steps: the pipeline after each of them
        :returns: the pipeline after all of them
        :raises Conflict: when another process has changed the pipeline meanwhile
        """
        return self._store.commit(record, steps)

    def change(self, record: PipelineRecord, action: Callable[[PipelineRecord], PipelineRecord]) -> PipelineRecord:
        """Apply an action to the newest state of a pipeline.

        :param record: the pipeline as it was last seen
        :param action: gives the pipeline after the change
        :returns: the pipeline after that
        :raises Problem: when the action does, or other processes were quicker each time
        """
        return self.change_in_steps(record, lambda current: [action(current)])

    def change_in_steps(self, record: PipelineRecord, action: Callable[[PipelineRecord], list[PipelineRecord]]) -> PipelineRecord:
        """Apply an action of several steps, each of which is an event; else as :meth:`change`.

        :param record: the pipeline as it was last seen
        :param action: gives the pipeline after each of the steps
        :returns: the pipeline after all of them
        """
        for _ in range(ATTEMPTS):
            try:
                return self._store.commit(record, action(record))
            except Conflict:
                record = self.reload(record)
        raise Problem(ErrorCode.LOCK_TOOK_TOO_LONG, f"Pipeline '{record.name}' changes too often to be changed. Try again")

    def reload(self, record: PipelineRecord) -> PipelineRecord:
        """The newest state of a pipeline.

        :raises Problem: when it was deleted
        """
        newest = self.newest(record)
        if newest is None:
            raise errors.unknown_pipeline(record.name)
        return newest

    def newest(self, record: PipelineRecord) -> PipelineRecord | None:
        """The newest state of a pipeline; None when it was deleted."""
        return self._store.get(record.id)

    def fail(self, record: PipelineRecord, error: dict[str, Any]) -> PipelineRecord:
        """The incarnation of a pipeline failed, which its log says too.

        :param record: the pipeline
        :param error: the deployment error
        """
        self.tell(record, error)
        return self.change(record, lambda current: incarnation.fail(current, error, datetime.now(UTC)))

    def tell(self, record: PipelineRecord, error: dict[str, Any]) -> None:
        """Write a deployment error into the pipeline's log, for those who follow it: the host cannot do so any more."""
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
    """A deployment error in wire form.

    :param code: what kind of error it is
    :param message: what was wrong, and what to do
    :param details: more of it for programs
    """
    return Problem(code, message, details).body()
