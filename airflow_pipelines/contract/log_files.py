"""The rotation of the logs of pipelines and hosts: a current file and a few older ones."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Final

LOG_BYTES: Final = 10 << 20
"""The size at which a log is rotated."""
LOG_FILES: Final = 2
"""The number of rotated files that are kept."""

logger = logging.getLogger(__name__)


def get_rotated_path(log: Path) -> Path:
    """Return the path of the most recently rotated file of a log."""
    return log.with_name(f"{log.name}.1")


def log_files(log: Path) -> list[Path]:
    """Return the paths of all files of a log, existing or not."""
    return [log, *(log.with_name(f"{log.name}.{number}") for number in range(1, LOG_FILES + 1))]


def limit_by_copying(log: Path, limit: int = LOG_BYTES) -> None:
    """Rotate a log that another process has open, such as the output of a JVM, by copying and emptying it.

    The process must append to it. Lines that it writes between the two are lost.
    """
    try:
        if log.stat().st_size <= limit:
            return
        files = log_files(log)
        for newer, older in zip(reversed(files[1:-1]), reversed(files[2:]), strict=True):
            if newer.exists():
                newer.replace(older)
        shutil.copyfile(log, get_rotated_path(log))
        os.truncate(log, 0)
    except FileNotFoundError:
        # The output of a host on another machine may be anywhere.
        return
    except OSError as error:
        logger.warning("The log %s cannot be put aside: %s", log, error)
