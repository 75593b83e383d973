"""The store of batches on disk: one folder of immutable files named by their content, Parquet files and files of databases."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.engine.storage.durable import allow_writes
from airflow_pipelines.engine.storage.errors import DamagedError, MissingError, StorageError, storage_access
from airflow_pipelines.engine.storage.sealed_json import DIGEST_BYTES

_ROWS, STATE = ".parquet", ".state"
_NAME = re.compile(r"[0-9a-f]{40}\.(?:parquet|state)")
_STAGING = ".staging"
_CHUNK = 1 << 20
COMPRESSION = "lz4_raw"
"""The compression of all batch files, under its name in both Spark and Arrow.

Better compression takes longer than it saves: most files are read once or twice before they are merged.
"""
_THREADS = max(2, os.cpu_count() or 1)
ROW_GROUP = 100_000
"""The number of rows per row group.

Spark's tasks share a file by row groups, so a single one would leave all cores but one idle.
"""


class Verification(StrEnum):
    """The frequency at which a batch file is compared with its name, which is the hash of its content."""

    ONCE = "once"
    """Verification when a process opens the file for the first time."""
    ALWAYS = "always"
    """Verification each time the file is opened."""
    NEVER = "never"
    """No verification except that the file exists, for file systems that verify by themselves."""


class _HasFiles(Protocol):
    @property
    def files(self) -> tuple[str, ...]: ...


class BatchStore:
    """A folder of batch files.

    Hold ``lock`` from writing files until they are named somewhere that garbage collection looks at (a live batch, or
    the ``keep`` of its caller).

    A file appears under its final name only when it is complete, and its content never changes afterwards. It is on disk before a
    manifest names it (:meth:`persist`): most files are gone before one does. Two batches with equal content share one file. A name
    is ``<40 hex digits>.parquet``, or ``.state`` for a file of a database that an operator keeps its state in, so no name read from
    a manifest can point outside the folder.
    """

    def __init__(self, folder: str | os.PathLike[str], verification: Verification = Verification.ONCE) -> None:
        """Use ``folder``, and create it if needed.

        :raises StorageError: when it cannot be created
        """
        self.folder = Path(folder).absolute()
        self.verification = verification
        with storage_access(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = threading.RLock()
        self._staged: set[str] = set()
        self._unsynced: set[str] = set()
        self._verified: set[str] = set()
        self.guard: Callable[[], None] = allow_writes
        """A function that is called before files are removed. It raises an error if another process may need them."""
        self._batches: weakref.WeakSet[_HasFiles] = weakref.WeakSet()

    def write(self, table: pa.Table) -> tuple[str, ...]:
        """Store rows.

        :param table: the rows
        :returns: the names of their files; none for an empty table
        :raises StorageError: when it cannot be written
        """
        if table.num_rows == 0:
            return ()
        staging = self.staging()

        def write(part: int) -> None:
            rows = table.slice(part * size, size)
            target = staging / f"part-{part:05}.parquet"
            pq.write_table(rows, target, compression=COMPRESSION, store_schema=False, row_group_size=ROW_GROUP)

        parts = max(1, min(_THREADS, table.num_rows // ROW_GROUP))
        size = -(-table.num_rows // parts)
        try:
            with storage_access(self.folder), ThreadPoolExecutor(parts) as threads:
                list(threads.map(write, range(parts)))
            return self.adopt(staging)
        except StorageError:
            # Remove the partial files, so that they do not keep a full disk full.
            self.discard(staging)
            raise

    def staging(self) -> Path:
        """Return a new empty folder inside the store, into which Spark may write Parquet for :meth:`adopt`."""
        staging = self.folder / _STAGING / uuid.uuid4().hex
        self._staged.add(staging.name)
        with storage_access(staging):
            staging.mkdir(parents=True)
        return staging

    def discard(self, staging: Path) -> None:
        """Remove a staging folder without adopting it."""
        shutil.rmtree(staging, ignore_errors=True)
        self._staged.discard(staging.name)

    def hold(self, batch: _HasFiles) -> None:
        """Keep the files of ``batch`` for as long as something in this process refers to it."""
        with self.lock:
            self._batches.add(batch)

    def adopt(self, staging: str | os.PathLike[str]) -> tuple[str, ...]:
        """Move the non-empty Parquet files of a staging folder into the store, and remove the staging folder.

        :param staging: the folder
        :returns: the files' names in the store, in the order of their former names
        """
        folder = Path(staging)
        paths = [path for path in sorted(folder.rglob("*.parquet")) if pq.read_metadata(path).num_rows]
        with storage_access(self.folder), ThreadPoolExecutor(_THREADS) as threads:
            names = list(threads.map(self._adopt, paths))
        self.discard(folder)
        with self.lock:
            self._unsynced.update(names)
        return tuple(names)

    def _adopt(self, path: Path) -> str:
        name = _name_of(path)
        target = self.folder / name
        if target.exists():
            # A manifest may name the existing file, so only a file that is on disk may replace it. It must be replaced, because it
            # may be torn: the machine may have lost power before it was on disk.
            _sync(path)
        path.replace(target)
        self._verified.add(name)
        return name

    def adopt_copy(self, path: Path, end: str) -> str:
        """Take a file into the store that stays where it is. The two are one file where the file system allows that.

        :param path: the file, which does not change any more
        :param end: the end of its name in the store, which tells the kinds of files
        :returns: its name in the store
        :raises OSError: when it cannot be read or linked
        """
        staging = self.staging()
        try:
            copy = staging / f"copy{end}"
            link_or_copy(path, copy)
            name = self._adopt(copy)
        finally:
            self.discard(staging)
        with self.lock:
            self._unsynced.add(name)
        return name

    def persist(self, names: Iterable[str]) -> None:
        """Sync files to disk. To be called before anything that outlives the process names them."""
        with self.lock, storage_access(self.folder):
            waiting = self._unsynced & set(names)
            for name in waiting:
                _sync(self.path(name))
            if waiting:
                _sync(self.folder)
            self._unsynced -= waiting

    def path(self, name: str) -> Path:
        """Return the file of that name.

        :raises ValueError: if ``name`` is not the name of a batch file
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a batch file")
        return self.folder / name

    def size(self, names: Iterable[str]) -> int:
        """Return the total size of files in bytes.

        :raises StorageError: when one is missing
        """
        with storage_access(self.folder):
            return sum(self.path(name).stat().st_size for name in names)

    def open(self, name: str) -> Path:
        """Return the path of a file to read. The file exists and, as far as :attr:`verification` demands, its content is verified.

        :raises StorageError: when it is missing or damaged
        """
        path = self.path(name)
        with storage_access(path):
            if not path.exists():
                raise MissingError(path, f"The batch file {path} is missing.")
            if self._is_due(name):
                if _name_of(path) != name:
                    raise DamagedError(path, f"The batch file {path} is damaged: its content is not what its name says.")
                self._verified.add(name)
        return path

    def verify(self, names: Iterable[str]) -> None:
        """Open files, several at a time.

        :raises StorageError: for the first one that is missing or damaged
        """
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(self.open, names))

    def _is_due(self, name: str) -> bool:
        match self.verification:
            case Verification.ALWAYS:
                return True
            case Verification.ONCE:
                return name not in self._verified
            case Verification.NEVER:
                return False

    def read(self, names: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the files as one pyarrow Table.

        :param names: the names of the files
        :param columns: the columns to read; None for all
        :raises StorageError: when one is missing or damaged
        """
        wanted = None if columns is None else list(columns)
        with storage_access(self.folder):
            return pa.concat_tables([pq.read_table(self.open(name), columns=wanted, partitioning=None) for name in names])

    def read_in_parts(self, names: Iterable[str], rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of the files, some at a time.

        :param names: the names of the files
        :param rows: the maximum number of rows at a time
        :param columns: the columns to read; None for all
        :raises StorageError: when a file is missing or damaged
        """
        wanted = None if columns is None else list(columns)
        for name in names:
            with storage_access(self.folder), pq.ParquetFile(self.open(name)) as file:
                for part in file.iter_batches(rows, columns=wanted):
                    yield pa.Table.from_batches([part])

    def files(self) -> set[str]:
        """Return the names of all batch files in the store.

        :raises StorageError: when its folder cannot be read
        """
        with storage_access(self.folder):
            return {entry.name for entry in self.folder.iterdir() if _NAME.fullmatch(entry.name)}

    def garbage_collect(self, keep: Iterable[str]) -> int:
        """Remove every file that is neither in ``keep`` nor used by a live batch, and the remains of interrupted writes.

        :returns: the number of batch files removed
        :raises StorageError: when its folder cannot be read or changed
        """
        with self.lock:
            held = {name for batch in list(self._batches) for name in batch.files}
            dead = self.files() - set(keep) - held
            # A later run has taken its epoch by now, or has not yet written its first file.
            self.guard()
            with storage_access(self.folder):
                for name in dead:
                    (self.folder / name).unlink(missing_ok=True)
                self._unsynced -= dead
                self._verified -= dead
                staging = self.folder / _STAGING
                for entry in list(staging.iterdir()) if staging.exists() else []:
                    if entry.name not in self._staged:
                        shutil.rmtree(entry, ignore_errors=True)
        return len(dead)


def content_name(file: BinaryIO, end: str = _ROWS) -> str:
    """Return the name of a batch file with the content of an open file.

    :param file: the file, which is read from its current position
    :param end: the end of the name, which tells the kinds of files
    :returns: the name under which a store has it
    """
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest() + end


def _name_of(path: Path) -> str:
    with path.open("rb") as file:
        return content_name(file, path.suffix)


def link_or_copy(path: Path, target: Path) -> None:
    """Give a file another name, or copy it where the file system does not allow that.

    :param path: the file
    :param target: the other name, which nothing has yet
    :raises OSError: when neither is possible
    """
    try:
        target.hardlink_to(path)
    except OSError:
        shutil.copyfile(path, target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
