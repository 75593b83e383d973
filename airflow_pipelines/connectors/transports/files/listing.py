"""Listings of files: of one, or those of a folder, a glob or a list, in the order of their names."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from airflow_pipelines.connectors.base import ConnectorFailure

_GLOB_CHARACTERS: Final = "*?["


@dataclass(frozen=True, slots=True)
class Found:
    """A file that exists.

    :param name: the name relative to what is listed, so that a position survives a move of the whole folder
    :param path: the path in the file system
    :param size: the size in bytes; None where it is not known before the file has been read
    """

    name: str
    path: str
    size: int | None


class Listing(Protocol):
    """A listing of files, some of which may come later."""

    def pages(self, after: str | None) -> Iterator[Sequence[Found]]:
        """Yield the files that exist now, in the order of their names, page by page as they become available.

        :param after: the name up to which files are not needed; they may come all the same
        :raises ConnectorFailure: when they cannot be listed
        """

    @property
    def can_grow(self) -> bool:
        """True if other files may come later."""

    def check(self) -> None:
        """Check for a reason why there are no files.

        :raises ConnectorFailure: when there is a reason
        """


class PathListing:
    """The files of a path: itself, a folder (without hidden files and subfolders), or a glob.

    :ivar base: the folder that names are relative to
    """

    def __init__(self, filesystem: Any, path: str) -> None:
        """Find out what the path is.

        :param filesystem: the fsspec file system
        :param path: the path in the file system
        """
        self._filesystem = filesystem
        self._path = path
        self.base = self._find_base()

    def pages(self, after: str | None) -> Iterator[Sequence[Found]]:  # noqa: ARG002 - one listing has them all
        """Yield the files that exist now, all in one page."""
        yield sorted(self._find_files(), key=lambda entry: entry.name)

    @property
    def can_grow(self) -> bool:
        """True if other files may come later: into a folder, or such as match a glob."""
        return self._is_folder() or self._is_glob()

    def check(self) -> None:
        """Raise an error if the path does not exist or a glob matches nothing. A folder may be empty."""
        if self._is_folder() or next(self._find_files(), None) is not None:
            return
        kind = "no file matches" if self._is_glob() else "there is no file or folder"
        raise ConnectorFailure(
            f"file_input: {kind} {self._path}. Check the path; it is looked up on the machine where the pipeline runs, "
            "and a relative path starts at the folder in which its host was started."
        )

    def _find_files(self) -> Iterator[Found]:
        self._filesystem.invalidate_cache()
        if self._is_folder():
            entries = self._filesystem.ls(self._path, detail=True)
        elif self._is_glob():
            entries = self._filesystem.glob(self._path, detail=True).values()
        else:
            entries = [self._filesystem.info(self._path)] if self._filesystem.exists(self._path) else []
        for entry in entries:
            path = entry["name"]
            name = posixpath.relpath(path, self.base)
            if entry["type"] == "file" and (not posixpath.basename(name).startswith((".", "_")) or path == self._path):
                yield Found(name, path, entry.get("size"))

    def _find_base(self) -> str:
        if self._is_folder():
            return self._path
        folder = posixpath.dirname(self._path)
        if self._is_glob():
            while any(character in folder for character in _GLOB_CHARACTERS):
                folder = posixpath.dirname(folder)
        return folder

    def _is_glob(self) -> bool:
        return any(character in self._path for character in _GLOB_CHARACTERS) and not bool(self._filesystem.exists(self._path))

    def _is_folder(self) -> bool:
        return bool(self._filesystem.isdir(self._path))
