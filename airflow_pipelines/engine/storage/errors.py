"""Problems of a pipeline's storage, each with the affected file and advice."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from uuid import UUID


class StorageProblem(StrEnum):
    """The kinds of problems that have advice of their own."""

    FULL = "full"
    READ_ONLY = "read_only"
    DAMAGED = "damaged"
    MISSING = "missing"
    LOCKED = "locked"
    REPLACED = "replaced"
    UNUSABLE = "unusable"


ADVICE: Final = {
    StorageProblem.FULL: "Make room on its file system, or give the user that runs the host a larger quota, and try again.",
    StorageProblem.READ_ONLY: (
        "Mount its file system for writing and give the user that runs the host write permission, or choose another folder "
        "(AIRFLOW_PIPELINES_STORAGE)."
    ),
    StorageProblem.DAMAGED: (
        "Restore it from a backup, or go back to an older checkpoint, if there is a good one; to begin anew, clear the pipeline's "
        "storage. 'airflow-pipelines fsck' shows all that is damaged."
    ),
    StorageProblem.MISSING: (
        "Put it back from a backup, or go back to an older checkpoint, if there is a good one; to begin anew, clear the pipeline's "
        "storage. 'airflow-pipelines fsck' shows all that is missing."
    ),
    StorageProblem.LOCKED: "A pipeline runs in one host at a time: stop that one first.",
    StorageProblem.REPLACED: (
        "Move it out of the way and put back what was there from a backup, or choose another folder (AIRFLOW_PIPELINES_STORAGE); "
        "to begin anew, clear the pipeline's storage."
    ),
    StorageProblem.UNUSABLE: (
        "Give the user that runs the host write permission, or choose another folder (AIRFLOW_PIPELINES_STORAGE)."
    ),
}

_PROBLEMS: Final = {
    errno.ENOSPC: StorageProblem.FULL,
    errno.EDQUOT: StorageProblem.FULL,
    errno.EROFS: StorageProblem.READ_ONLY,
    errno.EACCES: StorageProblem.READ_ONLY,
    errno.EPERM: StorageProblem.READ_ONLY,
    errno.ENOENT: StorageProblem.MISSING,
    errno.EIO: StorageProblem.DAMAGED,
    errno.EEXIST: StorageProblem.REPLACED,
    errno.ENOTDIR: StorageProblem.REPLACED,
    errno.EISDIR: StorageProblem.REPLACED,
}


@dataclass(frozen=True, slots=True)
class OlderCheckpoint:
    """A good checkpoint to which a pipeline can go back, and the loss that this means.

    ``lost_steps`` and ``lost_records`` are None if it is not known how far the pipeline had come.
    """

    uuid: UUID
    steps: int
    processed_records: int
    lost_steps: int | None = None
    lost_records: int | None = None

    def __str__(self) -> str:
        lost = "whatever came after it"
        if self.lost_steps is not None and self.lost_records is not None:
            lost = f"the {self.lost_steps} steps after it, with {self.lost_records} records"
        return (
            f"Checkpoint {self.uuid} is good (step {self.steps}, {self.processed_records} processed records): to go back to it and "
            f"lose {lost}, start with from_checkpoint={self.uuid}."
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the entry of an error's details."""
        return asdict(self) | {"uuid": str(self.uuid)}


class StorageError(RuntimeError):
    """The error of a pipeline's storage that cannot be used as it is.

    :param problem: the kind of problem
    :param path: the affected file or folder
    :param what: one sentence that names the path and the problem
    :param older: the checkpoints to go back to, newest first
    """

    def __init__(self, problem: StorageProblem, path: Path, what: str, older: Sequence[OlderCheckpoint] = ()) -> None:
        self.problem = problem
        self.path = path
        self.what = what
        self.older = tuple(older)
        self.advice = " ".join([ADVICE[problem], *map(str, self.older)])
        super().__init__(f"{what} {self.advice}")

    def offering(self, older: Sequence[OlderCheckpoint]) -> StorageError:
        """Return the same error with checkpoints to go back to.

        :param older: the checkpoints, newest first
        :returns: the new error
        """
        return StorageError(self.problem, self.path, self.what, older)


class DamagedError(StorageError):
    """The error of a file whose content is not what was written.

    :param path: the file
    :param what: see :class:`StorageError`
    """

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(StorageProblem.DAMAGED, path, what)


class MissingError(StorageError):
    """The error of a required file that is missing.

    :param path: the file
    :param what: see :class:`StorageError`
    """

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(StorageProblem.MISSING, path, what)


@contextmanager
def storage_access(path: Path) -> Iterator[None]:
    """Convert an error of the operating system about a file or folder of the storage to a :class:`StorageError`.

    :param path: the file or folder that is read or written
    :raises StorageError: for every OSError
    """
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error


@contextmanager
def within_storage(folder: Path) -> Iterator[None]:
    """Convert an error of the operating system about anything in a storage folder to a :class:`StorageError`.

    Errors about other files, such as those that connectors read, are not converted.

    :param folder: the storage folder
    :raises StorageError: for an OSError that names something in the folder
    """
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and Path(error.filename).absolute().is_relative_to(folder.absolute()):
            raise storage_error(folder, error) from error
        raise


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the storage error for an error of the operating system.

    :param path: the file or folder that was read or written
    :param error: the error of the operating system
    :returns: the error to raise
    """
    problem = _PROBLEMS.get(error.errno or 0, StorageProblem.UNUSABLE)
    where = Path(error.filename) if isinstance(error.filename, str) and Path(error.filename).is_absolute() else path
    if problem is StorageProblem.REPLACED:
        if error.errno == errno.EISDIR:
            return StorageError(problem, where, f"{where} is a folder, and a file has to be there.")
        # The folder itself, or one of those that it is in.
        replaced = next((each for each in reversed((where, *where.parents)) if each.exists() and not each.is_dir()), where)
        return StorageError(problem, replaced, f"{replaced} is no folder, and a folder has to be there.")
    # Arrow wraps the system's message in its own text.
    reason = os.strerror(error.errno) if error.errno else str(error)
    return StorageError(problem, where, f"{where} cannot be used: {reason}.")
