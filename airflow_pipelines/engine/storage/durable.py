"""Files that survive a kill: written aside, flushed to the disk, put in place by one rename."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

TEMPORARY = ".tmp"
"""Suffix of files being written; such a file is never read and may be removed when nobody is writing."""


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename or removal in it survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unguarded() -> None:
    """For writes that nothing forbids."""


def write_atomically(path: Path, content: bytes, guard: Callable[[], None] = unguarded) -> None:
    """Put ``content`` at ``path``: readers see the old file or the whole new one, whenever the process is killed.

    :param guard: called at the last moment; what it raises leaves the old file
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}{TEMPORARY}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        guard()
        aside.replace(path)
    except Exception:
        # A disk that is full must not be kept full by what did not fit.
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Remove a file that may be gone already, durably."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync_folder(path.parent)
