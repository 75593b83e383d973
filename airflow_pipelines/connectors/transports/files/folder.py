"""A folder of any file system, in which a file gets its name only when it is complete."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Any

from fsspec.core import has_magic

from airflow_pipelines.connectors.transports.files.file_writers import flush


class Folder:
    """A folder here, on another machine, or in an object store. Names of files are relative to it."""

    def __init__(self, filesystem: Any, path: str) -> None:
        """Touch nothing yet.

        :param filesystem: the fsspec file system
        :param path: the path of the folder
        """
        self._filesystem = filesystem
        self.path = path.rstrip("/")

    def make(self) -> None:
        """Make the folder, where a file system has folders."""
        if self._renames:
            self._filesystem.makedirs(self.path, exist_ok=True)

    def names(self) -> set[str]:
        """Return the names of what the folder holds; an object store has no empty folders."""
        self._filesystem.invalidate_cache()
        try:
            return {posixpath.basename(path) for path in self._filesystem.ls(self.path, detail=False)}
        except FileNotFoundError:
            return set()

    def begin(self, name: str) -> Any:
        """Open a file for writing. Readers do not take it for complete before :meth:`show`.

        :param name: the name of the file
        """
        return self._filesystem.open(self._path_of(_hidden(name) if self._renames else name), "wb")

    def show(self, name: str) -> None:
        """Give a file that was written its name.

        :param name: the name of the file
        """
        if self._renames:
            self._filesystem.mv(self._path_of(_hidden(name)), self._path_of(name))

    def put(self, name: str, data: bytes) -> None:
        """Create or replace a file atomically.

        :param name: the name of the file
        :param data: the content of the file
        """
        if not self._renames:
            self._filesystem.pipe_file(self._path_of(name), data)
            return
        with self.begin(name) as file:
            file.write(data)
            flush(file)
        self.show(name)

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return the contents of files.

        :param names: the names of the files
        """
        # Object stores fetch several at a time.
        contents: list[bytes] = self._filesystem.cat_ranges([self._path_of(name) for name in names], None, None, on_error="raise")
        return contents

    def remove(self, names: Iterable[str]) -> None:
        """Remove those of the files that exist.

        :param names: the names of the files
        """
        paths = [self._path_of(name) for name in names]
        if not paths:
            return
        try:
            self._remove(paths)
        except FileNotFoundError:
            there = self.names()
            self._remove([path for path in paths if posixpath.basename(path) in there])

    def _remove(self, paths: Sequence[str]) -> None:
        if len(paths) > 1 and not has_magic(self.path):
            # Object stores remove many at a time. A path that looks like a pattern would be expanded here.
            self._filesystem.rm(paths)
            return
        for path in paths:
            self._filesystem.rm_file(path)

    @property
    def _renames(self) -> bool:
        """True if an unfinished file is visible and can be renamed. Object stores show only complete files, and cannot rename."""
        protocol = self._filesystem.protocol
        names = {protocol} if isinstance(protocol, str) else set(protocol)
        return bool(names & {"file", "local", "memory", "sftp", "ssh", "smb", "hdfs", "webhdfs"})

    def _path_of(self, name: str) -> str:
        return posixpath.join(self.path, name)


def _hidden(name: str) -> str:
    return f".{name}"
