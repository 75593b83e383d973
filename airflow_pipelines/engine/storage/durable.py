"""Durable writes of files that survive a kill: to a temporary file, synced to disk, and renamed once."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

TEMPORARY = ".tmp"
"""The suffix of files being written. Such a file is never read, and may be removed when nothing is writing."""


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename or removal in it survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def allow_writes() -> None:
    """Allow every write: the guard of writes that nothing forbids."""


def write_atomically(path: Path, content: bytes, guard: Callable[[], None] = allow_writes) -> None:
    """Write ``content`` to ``path`` atomically: readers see the old file or the whole new one, whenever the process is killed.

    :param guard: a function that is called at the last moment; if it raises an error, the old file stays
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
        # Remove the partial file, so that it does not keep a full disk full.
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Remove a file durably. It may be gone already."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync_folder(path.parent)
