"""The lock of a storage folder, which keeps two hosts from running one pipeline."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from airflow_pipelines.engine.storage.errors import StorageError, StorageProblem, storage_access


class StorageLockedError(StorageError):
    """The error of a storage folder over which another process runs a pipeline."""


class StorageLock:
    """The lock of a storage folder, held from construction until :meth:`release`. The system releases it when the process dies."""

    def __init__(self, folder: Path) -> None:
        self._file = _open(folder)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            what = f"The storage folder {folder} is in use by {holder}."
            raise StorageLockedError(StorageProblem.LOCKED, folder, what) from error
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self._file.flush()

    def release(self) -> None:
        """Release the lock. Further calls do nothing."""
        self._file.close()


def _open(folder: Path) -> IO[str]:
    with storage_access(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / "lock").open("a+")
