"""The access rights of files: home, store, logs and storage are for the user that runs the pipelines, and for nobody else.

The store holds the tokens of hosts, and whoever has one can run programs; storage and logs hold rows. Files of a host are private
by its umask, which holds for the JVM as well. The service may live in a process that is not its own (an Airflow worker), so it sets
the mode of each file.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

PRIVATE_UMASK: Final = 0o077
OUTPUT_UMASK: Final = "AIRFLOW_PIPELINES_OUTPUT_UMASK"
"""The environment variable with the umask of the user who started a host, in octal, for the files that its programs write."""


def make_private_folder(folder: Path) -> None:
    """Create a folder for this user alone, or remove the rights of others from an existing one.

    :raises OSError: when it cannot be created
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_open(folder):
        close_to_others(folder.resolve())


def make_private_tree(folder: Path) -> None:
    """Apply :func:`make_private_folder` to a folder and its contents.

    An open folder may hold files that an earlier release left open.

    :raises OSError: when it cannot be created
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_open(folder):
        for path in _walk(folder):
            close_to_others(path)
        # Last, so that an interrupted run does not hide files that are still open.
        close_to_others(folder.resolve())


def close_to_others(path: Path) -> None:
    """Remove the rights of others from a file or folder of this user. Missing ones and those of other users are left alone."""
    try:
        status = path.lstat()
        # The rights of a link are those of what it leads to, which may be anywhere.
        if _belongs_to_us(status) and not stat.S_ISLNK(status.st_mode) and status.st_mode & PRIVATE_UMASK:
            path.chmod(stat.S_IMODE(status.st_mode) & ~PRIVATE_UMASK)
    except FileNotFoundError:
        return
    except OSError as error:
        # Some file systems do not support access rights.
        logger.warning("Other users may read %s, whose rights cannot be changed: %s", path, error.strerror or error)


def private_opener(path: str, flags: int) -> int:
    """Open a file as an ``opener`` of :func:`open`; a file that is created is for this user alone.

    :param path: the path of the file
    :param flags: the flags of :func:`os.open`
    :returns: the file's descriptor
    """
    return os.open(path, flags, 0o600)


def current_umask() -> int:
    """Return this process's umask."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))
    except (OSError, StopIteration):
        # Elsewhere it can only be read by setting it, for a moment to the stricter value.
        umask = os.umask(PRIVATE_UMASK)
        os.umask(umask)
        return umask


def make_output_file(path: Path) -> None:
    """Create an empty output file of a program, and its folder, with the rights that the user's own umask would give.

    :raises OSError: when they cannot be created
    """
    folders = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    path.touch()
    given = os.environ.get(OUTPUT_UMASK)
    if given is not None:
        for folder in folders:
            folder.chmod(0o777 & ~int(given, 8))
        if new:
            path.chmod(0o666 & ~int(given, 8))


def _is_open(folder: Path) -> bool:
    status = folder.stat()
    # A shared folder such as /tmp stays open to everybody.
    return _belongs_to_us(status) and bool(status.st_mode & PRIVATE_UMASK) and not status.st_mode & stat.S_ISVTX


def _belongs_to_us(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid()


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))
