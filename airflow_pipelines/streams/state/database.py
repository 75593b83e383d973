"""Rows of state at rest in a RocksDB database on disk.

The layout follows that of keyed state in Flink's RocksDB state backend: key group, key, namespace.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.rows import NEVER, NO_TIMES, TIME_BIAS, Row, RowKey, StateRows, Times, times_of

if TYPE_CHECKING:
    from rocksdict import Rdict, RdictIter

P = ParamSpec("P")
R = TypeVar("R")
_PREFIX = struct.Struct(">HBH")
_TIME = struct.Struct(">Q")
_ROWS, _FIRST_INDEX = 0, 1


@dataclass(frozen=True)
class DatabaseSettings:
    """The settings of a database.

    :param write_buffer_bytes: the maximum number of bytes of rows that were written and are not in files yet
    :param cache_bytes: the maximum number of bytes of files in memory
    """

    write_buffer_bytes: int = 64 << 20
    cache_bytes: int = 64 << 20


class StateDatabaseError(StreamProgramError):
    """An error raised when state by key cannot be read or written: a full disk, a missing folder, a damaged file."""


def _named(method: Callable[Concatenate[StateDatabase, P], R]) -> Callable[Concatenate[StateDatabase, P], R]:
    """Return a method of the database whose errors name its folder."""

    @wraps(method)
    def call(database: StateDatabase, /, *arguments: P.args, **named: P.kwargs) -> R:
        try:
            return method(database, *arguments, **named)
        except (MemoryError, StateDatabaseError):
            raise
        except Exception as error:  # rocksdict raises no narrower type
            reason = error.strerror if isinstance(error, OSError) else error
            raise StateDatabaseError(f"State by key cannot be read or written in {database.folder.parent}: {reason}.") from error

    return call


class StateDatabase:
    """The RocksDB database of the program of a process. It is made when the first row is written.

    There is no write-ahead log: what is not part of a checkpoint is lost with the process, and computed again.

    :param folder: the folder of the database, which may have the files of a checkpoint
    :param settings: its settings
    """

    def __init__(self, folder: Path, settings: DatabaseSettings | None = None) -> None:
        self.folder = folder
        self._settings = settings or DatabaseSettings()
        self._opened: Rdict | None = None
        self._had_files: bool | None = None
        self._write_options: Any = None
        self.flushes = 0
        """The number of times that all values were written to files."""

    @property
    def is_open(self) -> bool:
        """True if the database is open."""
        return self._opened is not None

    @property
    def is_new(self) -> bool:
        """True if nothing was ever written. The folder is looked at when this is asked first."""
        if self._had_files is None:
            self._had_files = self.folder.exists()
        return not self._had_files and self._opened is None

    @property
    def _rows(self) -> Rdict:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @_named
    def _open(self) -> Rdict:
        from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, WriteOptions

        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(self._settings.write_buffer_bytes // 2)
        options.set_max_write_buffer_number(2)
        # A row is read alone, and to take its block apart would take longer than to read it (docs/performance.md).
        options.set_compression_type(DBCompressionType.none())
        options.set_max_open_files(256)
        blocks = BlockBasedOptions()
        blocks.set_block_cache(Cache(self._settings.cache_bytes))
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        self.folder.mkdir(exist_ok=True)
        rows = Rdict(str(self.folder), options)
        self._write_options = WriteOptions()
        self._write_options.disable_wal = True
        return rows

    @_named
    def get(self, key: bytes) -> bytes | None:
        """Return a value.

        :param key: its key
        :returns: the value, None if there is none
        """
        value: bytes | None = None if self.is_new else self._rows.get(key)
        return value

    @_named
    def get_all(self, keys: list[bytes]) -> list[bytes | None]:
        """Return several values.

        :param keys: their keys
        :returns: the values in the same order
        """
        if self.is_new or not keys:
            return [None] * len(keys)
        values: list[bytes | None] = self._rows.get(keys)  # type: ignore[arg-type, assignment]
        return values

    @_named
    def write(self, put: Iterable[tuple[bytes, bytes]], removed: Iterable[bytes] = ()) -> int:
        """Add, replace and remove values, all or none.

        :param put: keys and values
        :param removed: keys of values to remove
        :returns: the number of bytes that were written
        """
        from rocksdict import WriteBatch

        batch = WriteBatch(raw_mode=True)
        for key, value in put:
            batch.put(key, value)
        for key in removed:
            batch.delete(key)
        rows = self._rows
        size: int = batch.size_in_bytes()
        rows.write(batch, self._write_options)
        return size

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the values of a range as they are at the beginning.

        :param start: the first key of the range
        :param end: the first key after it
        :returns: keys and values, in the order of their keys
        """
        if self.is_new:
            return
        rows = self._rows.iter()
        rows.seek(start)
        while rows.valid():
            key: Any = rows.key()
            if key >= end:
                return
            yield key, rows.value()
            rows.next()
        self._check(rows)

    @_named
    def _check(self, rows: RdictIter) -> None:
        """Raise the error that an iterator ended with: it ends there as it does at the last value."""
        rows.status()

    @_named
    def remove_range(self, start: bytes, end: bytes) -> None:
        """Remove the values of a range, without reading them.

        :param start: the first key of the range
        :param end: the first key after it
        """
        if not self.is_new:
            self._rows.delete_range(start, end, self._write_options)

    @_named
    def checkpoint(self, target: Path) -> None:
        """Make a folder with links to the files of the database as it is now.

        :param target: the folder, which does not exist
        """
        from rocksdict import Checkpoint

        self._rows.flush()
        self.flushes += 1
        Checkpoint(self._rows).create_checkpoint(str(target))

    def sizes(self) -> Iterator[tuple[bytes, bytes, int]]:
        """Yield the sizes of the files of the database. Values that were written lately are in none.

        :returns: for each file its first and last key, and its size in bytes
        """
        for file in self._rows.live_files() if self.is_open else ():
            yield file["start_key"], file["end_key"], file["size"]

    def close(self) -> None:
        """Close the database."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None


class DatabaseRows(StateRows):
    """Rows in a database.

    :param database: the database
    :param operator: the number of the operator
    :param groups: the key groups of the task
    :param max_parallelism: the number of all key groups; None if these are all
    """

    def __init__(self, database: StateDatabase, operator: int, groups: range, max_parallelism: int | None = None) -> None:
        self._database = database
        self._operator = operator
        self._groups = groups
        self._prefixes = {group: _PREFIX.pack(operator, _ROWS, group) for group in groups}
        self._share = 1.0 if max_parallelism is None else len(groups) / max_parallelism
        self._earliest: list[dict[int, int] | None] = [None, None, None]
        """For each index the earliest time of each key group, once somebody has asked."""
        self._written = (0, 0)
        """The number of flushes of the database so far, and the bytes that were written since the last one."""

    def _row_key(self, key: RowKey) -> bytes:
        return self._prefixes[key[0]] + key[1]

    def get(self, key: RowKey) -> Row | None:
        """Return a row."""
        return None if self._database.is_new else self._database.get(self._row_key(key))

    def get_all(self, keys: Sequence[RowKey]) -> list[Row | None]:
        """Return several rows."""
        prefixes = self._prefixes
        return self._database.get_all([prefixes[group] + data for group, data in keys])

    def is_new(self) -> bool:
        """Return True if nothing was ever written."""
        return self._database.is_new

    def write(self, rows: Mapping[RowKey, Row | None]) -> None:
        """Add, replace and remove rows."""
        put: list[tuple[bytes, bytes]] = []
        removed: list[bytes] = []
        prefixes = self._prefixes
        for (group, data), row in rows.items():
            key = prefixes[group] + data
            if row is None:
                removed.append(key)
                continue
            put.append((key, row))
            times = times_of(row)
            if times is not NO_TIMES:
                put += self._index_entries(group, data, times)
        put.sort()  # RocksDB takes rows faster in their order
        written = self._database.write(put, removed)
        self._written = (self._database.flushes, self._written_bytes() + written)

    def _index_entries(self, group: int, data: bytes, times: Times) -> Iterator[tuple[bytes, bytes]]:
        for index, time in enumerate(times):
            if time != NEVER:
                yield self._index_key(index, group, time, data), b""
                earliest = self._earliest[index]
                if earliest is not None and time < earliest.get(group, NEVER):
                    earliest[group] = time

    def scan(self) -> Iterator[tuple[RowKey, Row]]:
        """Yield all rows."""
        start, end = (_PREFIX.pack(self._operator, _ROWS, group) for group in (self._groups.start, self._groups.stop))
        for key, row in self._database.scan(start, end):
            yield (_PREFIX.unpack_from(key)[2], key[_PREFIX.size :]), row

    def _index_prefix(self, index: int, group: int) -> bytes:
        return _PREFIX.pack(self._operator, _FIRST_INDEX + index, group)

    def next_time(self, index: int) -> int | None:
        """Return the earliest time of an index."""
        earliest = self._earliest[index]
        if earliest is None:
            earliest = self._earliest[index] = {}
            for group in self._groups:
                self._look_for_earliest(index, group)
        return min(earliest.values(), default=None)

    def _look_for_earliest(self, index: int, group: int, start: int = -TIME_BIAS) -> None:
        """Look for the earliest time of a key group.

        :param index: the number of the index
        :param group: the key group
        :param start: a time before which there is none: a scan from there does not pass those that were removed
        """
        earliest = self._earliest[index]
        assert earliest is not None  # noqa: S101 (the caller has made it)
        first = next(self._database.scan(self._index_key(index, group, start), self._index_prefix(index, group + 1)), None)
        if first is None:
            earliest.pop(group, None)
        else:
            earliest[group] = _TIME.unpack_from(first[0], _PREFIX.size)[0] - TIME_BIAS

    def _index_key(self, index: int, group: int, time: int, key: bytes = b"") -> bytes:
        return self._index_prefix(index, group) + _TIME.pack(time + TIME_BIAS) + key

    def take_due(self, index: int, until: int, limit: int) -> list[RowKey]:
        """Remove and return entries of an index."""
        self.next_time(index)
        earliest = self._earliest[index] or {}
        due: list[tuple[int, RowKey]] = []
        for group, first in sorted(earliest.items()):
            if first > until or len(due) >= limit:
                continue
            start, end = self._index_key(index, group, first), self._index_key(index, group, min(until, NEVER - 1) + 1)
            key, time = start, first
            for key, _ in islice(self._database.scan(start, end), limit - len(due)):
                time = _TIME.unpack_from(key, _PREFIX.size)[0] - TIME_BIAS
                due.append((time, (group, key[_PREFIX.size + _TIME.size :])))
            self._database.remove_range(start, key + b"\0")
            self._look_for_earliest(index, group, time)
        return [key for _, key in sorted(due)]

    def clear(self) -> None:
        """Remove all rows."""
        for kind in (_ROWS, *range(_FIRST_INDEX, _FIRST_INDEX + len(self._earliest))):
            start, end = (_PREFIX.pack(self._operator, kind, group) for group in (self._groups.start, self._groups.stop))
            self._database.remove_range(start, end)
        self._earliest = [None, None, None]
        self._written = (self._database.flushes, 0)

    def _written_bytes(self) -> int:
        flushes, size = self._written
        return size if flushes == self._database.flushes else 0

    def size(self) -> int:
        """Return the approximate size of the rows: of files that have rows of others, too, the share of the key groups."""
        first, last = (_PREFIX.pack(self._operator, kind, 0) for kind in (_ROWS, 255))
        size = 0.0
        for start, end, bytes_ in self._database.sizes():
            if start < last and end >= first:
                operators = _PREFIX.unpack_from(end)[0] - _PREFIX.unpack_from(start)[0] + 1
                size += bytes_ / operators
        return round(size * self._share) + self._written_bytes()
