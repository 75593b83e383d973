"""Writes a view's changes as files of a folder, here or in an object store. A manifest says which files belong to which step."""

from __future__ import annotations

import json
import logging
import posixpath
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.formats.delta import UPDATE
from airflow_pipelines.connectors.transports.files.file_writers import ChangesFile, FileKind, flush
from airflow_pipelines.engine.arrow import WEIGHT
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.storage.fence import Fence

logger = logging.getLogger(__name__)

MANIFEST: Final = "_commits"
"""The folder of the manifest: a file for each step."""
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_DATA: Final = re.compile(r"\.?part-\d{20}-\d{4}-[0-9a-f]{8}\..+")


class FolderOutput:
    """An output whose folder says which steps it has.

    The files of a step are complete before its file in the manifest appears, which is what commits the step. Files that no step
    names are what a crash left; the next start removes them.
    """

    def __init__(self, filesystem: Any, path: str, kind: FileKind, owner: str, fence: Fence | None) -> None:
        """Make an output that is not open yet.

        :param filesystem: of fsspec
        :param path: of the folder
        :param kind: what files are like
        :param owner: names the output, so that no other one writes the same folder
        :param fence: the epoch of the run that writes; None where there is no other
        """
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._kind = kind
        self._owner = owner
        self._fence = fence
        self._step = -1

    def open(self, resumed: bool) -> None:
        """Begin with an empty folder, or with what the folder has from earlier runs when ``resumed``.

        :raises ConnectorFailure: when it cannot be written, or another output writes it
        """
        self._check_newest()
        with self._access("open"):
            if self._renames:
                self._filesystem.makedirs(posixpath.join(self._path, MANIFEST), exist_ok=True)
            steps = self._steps()
            if steps:
                self._check_owner(steps[-1])
            if not resumed:
                self._remove_steps(steps)
                steps = []
            self._step = steps[-1] if steps else -1
            self._remove_leftovers(steps)

    def committed_step(self) -> int | None:
        """The last step that the manifest has; None when there is none."""
        return None if self._step < 0 else self._step

    def rewind(self, step: int) -> None:
        """Take back what was written after a step.

        :param step: its number
        """
        self._check_newest()
        with self._access("take back steps of"):
            self._remove_steps([each for each in self._steps() if each > step])
        self._step = min(self._step, step)

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step's changes, unless the folder has the step.

        :returns: how many changes and how many bytes were written
        :raises ConnectorFailure: when they cannot be written
        """
        if step <= self._step:
            return 0, 0
        self._check_newest()
        with self._access("write"):
            files = self._files_of(step, changes)
            self._check_newest()
            entry = {
                "output": self._owner,
                "step": step,
                "files": [{"name": name, "rows": file.rows, "bytes": file.size} for name, file in files],
            }
            self._put(self._commit_path(step), json.dumps(entry).encode())
        self._step = step
        return sum(file.rows for _, file in files), sum(file.size for _, file in files)

    def close(self) -> None:
        """Let go of the folder; everything is in it."""

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
                    files.append((name, self._kind.begin(self._filesystem.open(self._hidden(name), "wb"))))
                taken = _cut(rest, files[-1][1].room)
                files[-1][1].add(taken)
                rest = rest.slice(taken.num_rows)
        if files:
            self._finish(*files[-1])
        return files

    def _finish(self, name: str, file: ChangesFile) -> None:
        file.finish()
        if self._renames:
            self._filesystem.mv(self._hidden(name), posixpath.join(self._path, name))

    @property
    def _renames(self) -> bool:
        """Whether a file is there as soon as it is begun: object stores have it when it is complete, and cannot rename."""
        protocol = self._filesystem.protocol
        names = {protocol} if isinstance(protocol, str) else set(protocol)
        return bool(names & {"file", "local", "memory", "sftp", "ssh", "smb", "hdfs", "webhdfs"})

    def _hidden(self, name: str) -> str:
        return posixpath.join(self._path, f".{name}" if self._renames else name)

    def _put(self, path: str, data: bytes) -> None:
        if not self._renames:
            self._filesystem.pipe_file(path, data)
            return
        aside = posixpath.join(posixpath.dirname(path), f".{posixpath.basename(path)}")
        with self._filesystem.open(aside, "wb") as file:
            file.write(data)
            flush(file)
        self._filesystem.mv(aside, path)

    def _steps(self) -> list[int]:
        """The steps that the manifest has, in order."""
        names = (_COMMIT.fullmatch(name) for name in self._names(posixpath.join(self._path, MANIFEST)))
        return sorted(int(match[1]) for match in names if match is not None)

    def _names(self, folder: str) -> set[str]:
        """What a folder holds; object stores have none that is empty."""
        self._filesystem.invalidate_cache()
        try:
            return {posixpath.basename(path) for path in self._filesystem.ls(folder, detail=False)}
        except FileNotFoundError:
            return set()

    def _commit_path(self, step: int) -> str:
        return posixpath.join(self._path, MANIFEST, f"{step:020d}.json")

    def _entry(self, step: int) -> dict[str, Any]:
        try:
            entry: dict[str, Any] = json.loads(self._filesystem.cat_file(self._commit_path(step)))
        except ValueError as error:
            raise ConnectorFailure(f"{self._commit_path(step)} is no entry of a manifest: {error}") from error
        return entry

    def _check_owner(self, step: int) -> None:
        if self._entry(step).get("output") != self._owner:
            raise ConnectorFailure(
                f"file_output {self._path}: the folder has the files of another output. Give each a folder of its own, or remove "
                "what is there."
            )

    def _remove_steps(self, steps: list[int]) -> None:
        """Remove steps, the newest first, so that what is left always is what there was once."""
        for step in reversed(steps):
            names = [file["name"] for file in self._entry(step)["files"]]
            self._filesystem.rm_file(self._commit_path(step))
            for name in names:
                self._remove(name)

    def _remove_leftovers(self, steps: list[int]) -> None:
        known = set()
        written = {name for name in self._names(self._path) if _DATA.fullmatch(name)}
        # The steps whose files are all there need not be read: most starts have nothing to remove.
        for step in steps:
            known |= {file["name"] for file in self._entry(step)["files"]} if written else set()
        for name in sorted(written - known):
            logger.info("file_output %s: removing %s, which no step has", self._path, name)
            self._remove(name)

    def _remove(self, name: str) -> None:
        path = posixpath.join(self._path, name)
        if self._filesystem.exists(path):
            self._filesystem.rm_file(path)

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
            what = f"file_output cannot {doing} {self._path}: {error or type(error).__name__}"
            if isinstance(error, PermissionError | FileNotFoundError | NotADirectoryError) or "Credentials" in type(error).__name__:
                raise ConnectorFailure(f"{what}. Check that it is there, and that the pipeline may write it.") from error
            raise TransientConnectorFailure(what) from error


def _cut(changes: pa.Table, most: int) -> pa.Table:
    """The first changes; both rows of an update stay together."""
    if most < changes.num_rows and UPDATE in changes.column_names:
        is_second = changes.column(UPDATE)[most].as_py() and changes.column(WEIGHT)[most].as_py() > 0
        most += int(bool(is_second))
    return changes.slice(0, most)
