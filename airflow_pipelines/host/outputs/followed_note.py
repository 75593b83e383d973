"""The note of followed relations that a run leaves for the next run of the pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from airflow_pipelines.engine.storage.durable import write_atomically

_FILE: Final = "followed.json"


class FollowedNote:
    """A file with the names of the followed relations.

    The next run logs their changes from its first step on. So followers that were up to date with this run need not read the
    contents anew just because a step came before their first request.
    """

    def __init__(self, folder: Path | None) -> None:
        """Remember the folder; nothing is written yet.

        :param folder: a folder in the pipeline's storage, or None without storage
        """
        self._path = None if folder is None else folder / _FILE

    def read(self) -> frozenset[str]:
        """Return the names that were written last."""
        path = self._path
        return frozenset() if path is None or not path.is_file() else frozenset(json.loads(path.read_bytes()))

    def write(self, relations: Iterable[str]) -> None:
        """Replace the names in the file.

        :param relations: the names
        :raises OSError: if the storage cannot be written
        """
        if self._path is not None:
            write_atomically(self._path, json.dumps(sorted(relations)).encode())
