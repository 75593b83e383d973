"""Checkpoints and savepoints of programs that run in this process, as files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from uuid import uuid4

from airflow_pipelines.datastream.checkpoint_config import CheckpointConfig, ExternalizedCheckpointCleanup
from airflow_pipelines.datastream.checkpoint_storage import FileSystemCheckpointStorage
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.job_status import JobStatus
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.snapshots import Snapshot

_STATE_FILE = "state.bin"


def write_savepoint(snapshot: Snapshot, directory: str) -> str:
    """Write a savepoint into a new folder.

    :param snapshot: the snapshot to write
    :param directory: the parent folder, a path or a ``file:`` URL
    :returns: path of the savepoint
    """
    folder = _path(directory) / f"savepoint-{uuid4().hex[:12]}"
    _write(snapshot, folder)
    return str(folder)


def read_savepoint(path: str) -> Snapshot:
    """Read a savepoint or a checkpoint. Reading can run code, so it must come from somebody who may run the program.

    :param path: the folder of the savepoint, a path or a ``file:`` URL
    :returns: the snapshot
    :raises StreamProgramError: if there is none
    """
    file = _path(path) / _STATE_FILE
    if not file.is_file():
        raise StreamProgramError(f"There is no savepoint at {path}: {file} is missing.")
    return Snapshot.from_bytes(file.read_bytes())


class CheckpointFiles:
    """The checkpoint files of one run.

    Only the newest checkpoint is kept, in ``chk-1``, ``chk-2`` and so on of a folder named after the run.

    :param folder: the folder for all runs
    :param config: the configuration, which says what to do with checkpoints when the run ends
    :param job_id: the id of the run
    """

    def __init__(self, folder: Path, config: CheckpointConfig, job_id: JobID) -> None:
        self.folder = folder.absolute() / job_id.text
        self._cleanup = config.get_externalized_checkpoint_cleanup()
        self._number = 0

    @staticmethod
    def of(config: CheckpointConfig, job_id: JobID) -> CheckpointFiles | None:
        """Return the checkpoint files that a program asks for.

        :param config: the configuration of its checkpoints
        :param job_id: the id of the run
        :returns: the files; None if checkpoints are kept in memory
        """
        storage = config.get_checkpoint_storage()
        if not isinstance(storage, FileSystemCheckpointStorage):
            return None
        return CheckpointFiles(_path(storage.get_checkpoint_path()), config, job_id)

    def write(self, snapshot: Snapshot) -> None:
        """Write a checkpoint, then remove the previous one.

        :param snapshot: the snapshot to write
        """
        _write(snapshot, self.folder / f"chk-{self._number + 1}")
        self._number += 1
        shutil.rmtree(self.folder / f"chk-{self._number - 1}", ignore_errors=True)

    def end(self, status: JobStatus) -> None:
        """Clean up when the run has ended.

        The checkpoint is kept after a failure if a clean-up was set, and after a cancellation if that clean-up retains it.

        :param status: the final status of the run
        """
        asked = self._cleanup not in (None, ExternalizedCheckpointCleanup.NO_EXTERNALIZED_CHECKPOINTS)
        kept_after_cancellation = self._cleanup is ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION
        if not (asked if status is JobStatus.FAILED else kept_after_cancellation and status is JobStatus.CANCELED):
            shutil.rmtree(self.folder, ignore_errors=True)


def _write(snapshot: Snapshot, folder: Path) -> None:
    unfinished = folder.with_name(f".{folder.name}.inprogress")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    with (unfinished / _STATE_FILE).open("wb") as file:
        file.write(snapshot.to_bytes())
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(folder)


def _path(text: str) -> Path:
    path = text.removeprefix("file://").removeprefix("file:")
    if "://" in path:
        raise StreamProgramError(f"A program that runs in its own process keeps its state in local folders, not in {text}.")
    return Path(path)
