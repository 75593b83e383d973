"""The commits in the log of a Delta table, with the files that they added, removed, or that hold their changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow.fs as pafs


@dataclass(frozen=True, slots=True)
class FileAction:
    """A file that a commit added or removed, or that holds changes.

    :param path: the path in the table's folder
    :param partition: the values of partition columns, as texts; None where the log leaves them out
    :param size: the size in bytes; 0 where the log leaves it out
    :param records: the number of its rows, as far as the log says
    :param vector: the descriptor of the deletion vector, where it has one
    """

    path: str
    partition: Mapping[str, str | None] | None
    size: int
    records: int | None
    vector: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Commit:
    """The changes of one commit to the rows of a table.

    :param version: the version that it made
    :param timestamp: the time, in milliseconds since 1970
    :param added: the files whose rows were inserted
    :param removed: the files whose rows were deleted
    :param changes: the files that have the changes row by row; if there are any, they are complete
    :param mark: the mark that distinguishes it from a commit of another table
    """

    version: int
    timestamp: int
    added: tuple[FileAction, ...]
    removed: tuple[FileAction, ...]
    changes: tuple[FileAction, ...]
    mark: str = ""

    @property
    def records(self) -> int:
        """The approximate number of rows that it changed, as far as the log says."""
        return sum(action.records or 0 for action in self.changes or (*self.added, *self.removed))

    @property
    def size_bytes(self) -> int:
        """The number of bytes to read for it, as far as the log says."""
        return sum(action.size for action in self.changes or (*self.added, *self.removed))


def commit_path(version: int) -> str:
    """Return the path of a commit in a table's folder."""
    return f"_delta_log/{version:020}.json"


def history(files: pafs.FileSystem, newest: int) -> Iterator[Mapping[str, Any]]:
    """Yield the information of the commits of a table, newest first, with ``version``, for as long as its log has them.

    :param files: the file system of the table's folder
    :param newest: the version to start with
    """
    for version in range(newest, -1, -1):
        try:
            with files.open_input_file(commit_path(version)) as file:
                content = bytes(file.read())
        except FileNotFoundError:
            return
        actions = (json.loads(line) for line in content.splitlines() if line.startswith(b'{"commitInfo"'))
        info: Mapping[str, Any] = next((action["commitInfo"] for action in actions), {})
        yield {**info, "version": version}


def read_commit(version: int, content: bytes) -> Commit:
    """Return a commit.

    :param version: the version that it made
    :param content: the content of its file
    """
    added: list[FileAction] = []
    removed: list[FileAction] = []
    changes: list[FileAction] = []
    timestamp = 0
    for line in content.splitlines():
        if not line.strip():
            continue
        ((kind, action),) = json.loads(line).items()
        match kind:
            case "commitInfo":
                timestamp = int(action.get("inCommitTimestamp") or action.get("timestamp") or 0)
            case "add" if action.get("dataChange", True):
                added.append(_file(action))
            case "remove" if action.get("dataChange", True):
                removed.append(_file(action))
            case "cdc":
                changes.append(_file(action))
    return Commit(version, timestamp, tuple(added), tuple(removed), tuple(changes), mark_of(content))


def mark_of(content: bytes) -> str:
    """Return the mark that distinguishes a commit from one of another table.

    :param content: the content of its file
    """
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _file(action: Mapping[str, Any]) -> FileAction:
    stats = action.get("stats")
    records = json.loads(stats).get("numRecords") if stats else None
    return FileAction(
        unquote(action["path"]), action.get("partitionValues"), int(action.get("size") or 0), records, action.get("deletionVector")
    )
