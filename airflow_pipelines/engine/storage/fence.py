"""Epochs: each run of a pipeline over a storage folder has one, and only the newest may write.

The folder's lock keeps a second host out as long as both see the same lock. If they do not (it was removed, or the file system does
not share locks), the epoch does: a run takes a new one before it reads anything, and checks before and after each write that it is
still the newest. So either the new run has read what the old one wrote, or the old one notices the new run and acknowledges
nothing.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from airflow_pipelines.engine.storage.durable import write_atomically
from airflow_pipelines.engine.storage.errors import MissingError, StorageError, StorageProblem, storage_access
from airflow_pipelines.engine.storage.sealed_json import BrokenSealError, seal, unseal

FILE: Final = "epoch.json"


class OvertakenError(StorageError):
    """The error of a run that a later run has replaced: it must end and write nothing more.

    :param path: the epoch's file
    :param holder: the holder of the newest epoch
    """

    def __init__(self, path: Path, holder: str) -> None:
        what = f"The storage folder {path.parent} was taken over by a later run ({holder}); this one writes nothing more."
        super().__init__(StorageProblem.LOCKED, path, what)


class Fence:
    """The epoch of one run."""

    def __init__(self, path: Path, epoch: int, content: bytes) -> None:
        self.epoch = epoch
        self._path = path
        self._content = content

    @classmethod
    def take(cls, folder: Path, known: Callable[[], int]) -> Self:
        """Take the next epoch of a storage folder, whose lock is held.

        :param folder: the storage folder
        :param known: the function that returns the greatest epoch in what is saved, in case the epoch's file cannot be read
        :returns: the new epoch
        :raises StorageError: when the folder cannot be written
        """
        path = folder / FILE
        epoch = _read(path)
        number = 1 + (known() if epoch is None else epoch)
        # Two runs that take the same number differ in the other fields: the one that wrote last owns it.
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        content = seal({"epoch": number, "holder": holder, "run": uuid.uuid4().hex})
        with storage_access(path):
            write_atomically(path, content)
        return cls(path, number, content)

    def check(self) -> None:
        """Check that no later run uses the folder.

        :raises OvertakenError: if one does
        :raises StorageError: if the epoch cannot be read
        """
        with storage_access(self._path):
            if not self._path.exists():
                raise MissingError(self._path, f"{self._path} is missing: the storage was removed while the pipeline ran.")
            content = self._path.read_bytes()
        if content != self._content:
            raise OvertakenError(self._path, _holder(content))


def _read(path: Path) -> int | None:
    """Return the newest epoch, or None if the file cannot tell."""
    with storage_access(path):
        if not path.exists():
            return None
        content = path.read_bytes()
    try:
        return int(unseal(content)["epoch"])
    except (BrokenSealError, KeyError, TypeError, ValueError):
        return None


def _holder(content: bytes) -> str:
    try:
        return str(unseal(content).get("holder", "unknown"))
    except BrokenSealError:
        return "its epoch cannot be read"
