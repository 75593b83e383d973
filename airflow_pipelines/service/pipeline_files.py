"""The files of a pipeline: its storage folder and its log."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from airflow_pipelines.common.private_files import make_private_folder, private_opener
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.log_files import log_files
from airflow_pipelines.service.records import PipelineRecord


class PipelineFiles:
    """The places of pipelines' files. Paths consist of ids, not names, so that no name can lead elsewhere."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def storage(self, record: PipelineRecord) -> Path:
        """Return the folder of the pipeline's state."""
        return self._settings.storage / str(record.id)

    def log(self, record: PipelineRecord) -> Path:
        """Return the path of the pipeline's log."""
        return self._settings.logs / f"{record.id}.log"

    def support(self, record: PipelineRecord) -> Path:
        """Return the folder of the collections for support bundles."""
        return self._settings.home / "support" / str(record.id)

    def create(self, record: PipelineRecord) -> None:
        """Create the storage folder; an OSError names the path if it cannot be created."""
        make_private_folder(self.storage(record))

    def clear(self, record: PipelineRecord) -> None:
        """Remove the storage.

        :raises OSError: when a part of it cannot be removed
        """
        try:
            shutil.rmtree(self.storage(record))
        except FileNotFoundError:
            return

    def forget(self, record: PipelineRecord) -> None:
        """Remove the log of a deleted pipeline, with its rotated files, and the collections for support bundles."""
        for log in log_files(self.log(record)):
            log.unlink(missing_ok=True)
        shutil.rmtree(self.support(record), ignore_errors=True)

    def note(self, record: PipelineRecord, message: str, level: str = "INFO") -> None:
        """Append lines to the pipeline's log, in the format of hosts.

        :param record: the pipeline
        :param message: the lines
        :param level: the level of each line
        """
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        path = self.log(record)
        make_private_folder(path.parent)
        with open(path, "a", encoding="utf-8", opener=private_opener) as file:
            file.write("".join(f"{moment}Z {level} [{record.name}] {line}\n" for line in message.splitlines()))
