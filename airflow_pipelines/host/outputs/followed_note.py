"""Which relations others follow, as the next run of the pipeline reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from airflow_pipelines.engine.storage.durable import write_atomically

_FILE: Final = "followed.json"


class FollowedNote:
    """A file with the names of the relations that are followed.

    The next run keeps their changes from its first step on, so that followers that were in step with this one need not take the
    contents anew because a step was faster than their first question.
    """

    def __init__(self, folder: Path | None) -> None:
        """Write nothing yet.

        :param folder: in the pipeline's storage; None without storage
        """
        self._path = None if folder is None else folder / _FILE

    def read(self) -> frozenset[str]:
        """The names that were written last."""
        path = self._path
        return frozenset() if path is None or not path.is_file() else frozenset(json.loads(path.read_bytes()))

    def write(self, relations: Iterable[str]) -> None:
        """Have these names, and no others.

        :param relations: the names
        :raises OSError: when the storage does not take them
        """
        if self._path is not None:
            write_atomically(self._path, json.dumps(sorted(relations)).encode())
