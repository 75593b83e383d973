"""An output that writes a view's changes as files of a folder, here or in an object store.

A manifest records which files belong to which step.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.transports.files.file_writers import ChangesFile, FileKind
from airflow_pipelines.connectors.transports.files.folder import Folder
from airflow_pipelines.connectors.transports.files.manifest import MANIFEST, ListedFile, Manifest
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.zsets import WEIGHT

logger = logging.getLogger(__name__)

_DATA: Final = re.compile(r"\.?part-(\d{20})-\d{4}-[0-9a-f]{8}\..+")


class FolderOutput:
    """An output whose folder records the steps that it has.

    The files of a step are complete before the manifest names them, which commits the step. Files of later steps were left by a
    crash; the next start removes them.
    """

    def __init__(self, filesystem: Any, path: str, kind: FileKind, owner: str, fence: Fence | None) -> None:
        """Make an output that is not open yet.

        :param filesystem: the fsspec file system
        :param path: the path of the folder
        :param kind: the kind of the files
        :param owner: the name of the output, so that no other one writes the same folder
        :param fence: the epoch of the run that writes; None where there is no other
        """
        self._folder = Folder(filesystem, path)
        self._manifest = Manifest(Folder(filesystem, f"{self._folder.path}/{MANIFEST}"), owner, self._check_newest)
        self._kind = kind
        self._fence = fence
        self._step = -1

    def open(self, resumed: bool) -> None:
        """Begin with an empty folder, or with the contents from earlier runs if ``resumed``.

        :raises ConnectorFailure: when it cannot be written, or another output writes it
        """
        self._check_newest()
        with self._access("open"):
            self._manifest.open()
            if not resumed:
                self._manifest.take_back(-1)
            self._step = self._manifest.last_step
            self._remove_leftovers()

    def committed_step(self) -> int | None:
        """Return the last step of the manifest, or None if there is none."""
        return None if self._step < 0 else self._step

    def rewind(self, step: int) -> None:
        """Take back what was written after a step.

        :param step: the number of the step
        """
        self._check_newest()
        with self._access("take back steps of"):
            self._manifest.take_back(step)
            self._step = min(self._step, step)
            self._remove_leftovers()

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step's changes, unless the folder has the step.

        :returns: the number of changes and the number of bytes that were written
        :raises ConnectorFailure: when they cannot be written
        """
        if step <= self._step:
            return 0, 0
        self._check_newest()
        with self._access("write"):
            self._manifest.compact()
            files = self._files_of(step, changes)
            self._check_newest()
            self._manifest.add(step, [ListedFile(name, file.rows, file.size, step) for name, file in files])
        self._step = step
        return sum(file.rows for _, file in files), sum(file.size for _, file in files)

    def close(self) -> None:
        """Do nothing: everything is in the folder already."""

    def _files_of(self, step: int, changes: Changes) -> list[tuple[str, ChangesFile]]:
        """Write the files of a step, each up to the size that the options allow."""
        files: list[tuple[str, ChangesFile]] = []
        for table in changes.tables():
            rest = table
            while rest.num_rows:
                if not files or files[-1][1].is_full:
                    if files:
                        self._finish(*files[-1])
                    name = f"part-{step:020d}-{len(files):04d}-{secrets.token_hex(4)}.{self._kind.ending}"
                    files.append((name, self._kind.begin(self._folder.begin(name))))
                taken = _cut(rest, files[-1][1].room)
                files[-1][1].add(taken)
                rest = rest.slice(taken.num_rows)
        if files:
            self._finish(*files[-1])
        return files

    def _finish(self, name: str, file: ChangesFile) -> None:
        file.finish()
        self._folder.show(name)

    def _remove_leftovers(self) -> None:
        """Remove files of steps that were never committed, or were taken back: all of these steps are later than the last one."""
        matches = (_DATA.fullmatch(name) for name in self._folder.names())
        left = sorted(match[0] for match in matches if match is not None and int(match[1]) > self._step)
        for name in left:
            logger.info("file_output %s: removing %s, which no step has", self._folder.path, name)
        self._folder.remove(left)

    def _check_newest(self) -> None:
        if self._fence is not None:
            self._fence.check()

    @contextmanager
    def _access(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (ConnectorFailure, StorageError):
            raise
        except Exception as error:
            # Each file system has errors of its own for the same things.
            what = f"file_output cannot {doing} {self._folder.path}: {error or type(error).__name__}"
            if isinstance(error, PermissionError | FileNotFoundError | NotADirectoryError) or "Credentials" in type(error).__name__:
                raise ConnectorFailure(f"{what}. Check that it is there, and that the pipeline may write it.") from error
            raise TransientConnectorFailure(what) from error


def _cut(changes: pa.Table, most: int) -> pa.Table:
    """Return the first changes, about ``most`` of them; both rows of an update stay together."""
    if most < changes.num_rows and UPDATE in changes.column_names:
        is_second = changes.column(UPDATE)[most].as_py() and changes.column(WEIGHT)[most].as_py() > 0
        most += int(bool(is_second))
    return changes.slice(0, most)
