"""Point lookups in batches: sorted hashes of key columns, and columns that can be read at any place.

A scan reads all of a large relation to find a few rows of it. Here a batch file has, once somebody looks something up in it, two
kinds of companions in a cache folder: for a set of key columns the sorted hashes of all rows with the rows' places, and single
columns as uncompressed Arrow files. Both are memory-mapped, so that they take the operating system's page cache and no memory of
the process, and both can be made again from the batch file at any time. Hashes are verified against the values.

A companion's name ends with the checksum of its content. One that does not agree with its name when it is first opened is made
again: a wrong hash would hide rows.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_pipelines.engine.storage.batch_store import BatchStore, Verification
from airflow_pipelines.engine.storage.errors import storage_access

log = logging.getLogger(__name__)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x5851F42D4C957F2D)
_CHUNK = 1 << 20
_TEXT_ROWS = 250_000
"""Texts are hashed in pieces of this many rows, which bounds the memory that it takes."""


def can_look_up(kind: Any) -> bool:
    """Whether rows can be found by a column of this Arrow type."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_time64(kind)
        or pa.types.is_duration(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


_indexes: weakref.WeakKeyDictionary[BatchStore, FileIndex] = weakref.WeakKeyDictionary()


def file_index(store: BatchStore) -> FileIndex:
    """The one index of a store in this process."""
    found = _indexes.get(store)
    if found is None:
        found = _indexes.setdefault(store, FileIndex(store))
    return found


class FileIndex:
    """Finds rows in the batch files of one store. May be used by several threads."""

    def __init__(self, store: BatchStore) -> None:
        """Keep the companions of the store's files beside them."""
        self._files = store.folder
        # Not the store itself: the index is found by it for as long as somebody else has it.
        self._store = weakref.ref(store)
        self._verifies = store.verification is not Verification.NEVER
        self._folder = store.folder / ".lookup"
        self._columns: dict[tuple[str, str], Any] = {}
        self._hashes: dict[tuple[str, tuple[str, ...]], tuple[Any, Any]] = {}
        self._lock = threading.Lock()
        self._companions: dict[str, Path] | None = None

    def find(self, file: str, wanted: Any, columns: Sequence[str], most: int) -> Any | None:
        """The rows of a file that agree with a row of ``wanted`` in all its columns (NULL agrees with NULL, NaN with NaN).

        :param file: the batch file's name
        :param wanted: pyarrow Table of distinct rows
        :param columns: the columns of the result
        :param most: give up when there are more rows than this
        :returns: a pyarrow Table, or None when there are too many rows
        """
        hashes, places = self._sorted_hashes(file, tuple(wanted.column_names))
        return _found(hashes, places, lambda name: self._column(file, name), wanted, columns, most)

    def forget(self) -> None:
        """Remove the companions of files that are no more. What a companion was mapped for can still be read by whoever has it."""
        files = {path.name for path in self._files.iterdir()}
        with self._lock:
            self._columns = {key: value for key, value in self._columns.items() if key[0] in files}
            self._hashes = {key: value for key, value in self._hashes.items() if key[0] in files}
        for path in self._folder.iterdir() if self._folder.exists() else ():
            if f"{path.name.partition('.')[0]}.parquet" not in files:
                path.unlink(missing_ok=True)

    def _sorted_hashes(self, file: str, names: tuple[str, ...]) -> tuple[Any, Any]:
        with self._lock:
            known = self._hashes.get((file, names))
        if known is None:

            def make(aside: Path) -> None:
                hashes = hash_rows(pq.read_table(self._open(file), columns=list(names), partitioning=None))
                order = np.argsort(hashes, kind="stable")
                with aside.open("wb") as target:
                    np.save(target, np.stack([hashes[order], order.astype(np.uint64)]))

            both = np.load(self._companion(_stem(file, "hash", *names), make), mmap_mode="r")
            known = (both[0], both[1])
            with self._lock:
                self._hashes[file, names] = known
        return known

    def _column(self, file: str, name: str) -> Any:
        with self._lock:
            known = self._columns.get((file, name))
        if known is None:

            def make(aside: Path) -> None:
                table = pq.read_table(self._open(file), columns=[name], partitioning=None)
                with pa.ipc.new_file(str(aside), table.schema) as writer:
                    writer.write_table(table.combine_chunks())

            # Not closed: the column reads from the map for as long as it is there.
            path = self._companion(_stem(file, "column", name), make)
            known = pa.ipc.open_file(pa.memory_map(str(path))).read_all().column(0)
            with self._lock:
                self._columns[file, name] = known
        return known

    def _open(self, file: str) -> Path:
        store = self._store()
        if store is None:
            raise LookupError(f"the store of {self._files / file} is no longer in use")
        return store.open(file)

    def _companion(self, stem: str, make: Callable[[Path], None]) -> Path:
        """The companion of that name, made where there is none or where it is not what was written."""
        found = self._known().get(stem)
        if found is not None and found.exists():
            if not self._verifies or found.name == f"{stem}.{_checksum(found)}":
                return found
            log.warning("%s is damaged and is made again from its batch file", found)
            found.unlink(missing_ok=True)
        with storage_access(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            aside = self._folder / f".{uuid.uuid4().hex}"
            make(aside)
            path = self._folder / f"{stem}.{_checksum(aside)}"
            aside.replace(path)
        with self._lock:
            if self._companions is not None:
                self._companions[stem] = path
        return path

    def _known(self) -> dict[str, Path]:
        """The companions that are there, by their names without the checksum; those of an earlier release have none and go."""
        with self._lock:
            if self._companions is None:
                self._companions = {}
                for path in self._folder.iterdir() if self._folder.exists() else ():
                    stem, _, checksum = path.name.rpartition(".")
                    if "." in stem:
                        self._companions[stem] = path
                    elif checksum:
                        path.unlink(missing_ok=True)
            return self._companions


def _stem(file: str, *what: str) -> str:
    digest = hashlib.blake2b("\0".join(what).encode(), digest_size=10).hexdigest()
    return f"{file.partition('.')[0]}.{digest}"


def _checksum(path: Path) -> str:
    """A quick one: a companion is a cache, and what it is made from has a name that is a real hash."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return f"{value:08x}"


class MemoryIndex:
    """Finds rows in batches that are in memory; remembers the hashes of those that it was asked about lately."""

    def __init__(self, size: int = 256) -> None:
        """Remember so many sets of hashes."""
        self._size = size
        self._hashes: OrderedDict[tuple[int, tuple[str, ...]], tuple[Any, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, number: int, table: Any, wanted: Any, columns: Sequence[str], most: int) -> Any | None:
        """The same as :meth:`FileIndex.find` in a pyarrow Table, which ``number`` stands for."""
        key = (number, tuple(wanted.column_names))
        with self._lock:
            known = self._hashes.get(key)
        if known is None:
            hashes = hash_rows(table.select(wanted.column_names))
            order = np.argsort(hashes, kind="stable")
            known = (hashes[order], order)
            with self._lock:
                self._hashes[key] = known
                while len(self._hashes) > self._size:
                    self._hashes.popitem(last=False)
        return _found(known[0], known[1], lambda name: table[name], wanted, columns, most)


memory_index = MemoryIndex()
"""The one for all batches of this process."""


def _found(hashes: Any, places: Any, column: Callable[[str], Any], wanted: Any, columns: Sequence[str], most: int) -> Any | None:
    looked_for = hash_rows(wanted)
    first = np.searchsorted(hashes, looked_for, side="left")
    counts = np.searchsorted(hashes, looked_for, side="right") - first
    total = int(counts.sum())
    if total > most:
        return None
    ends = np.cumsum(counts)
    at = np.repeat(first - (ends - counts), counts) + np.arange(total)
    found, asked = np.asarray(places[at], dtype=np.int64), np.repeat(np.arange(len(looked_for)), counts)
    same = np.ones(total, dtype=bool)
    for name in wanted.column_names:
        stored = column(name).take(pa.array(found))
        same &= _equal(stored, wanted[name].take(pa.array(asked)).cast(stored.type))
    rows = pa.array(np.sort(found[same]))
    return pa.table([column(name).take(rows) for name in columns], names=list(columns))


def _equal(one: Any, other: Any) -> Any:
    """Where two columns agree, NULL with NULL and NaN with NaN."""
    same = pc.fill_null(pc.equal(one, other), False)
    both = pc.and_(pc.is_null(one), pc.is_null(other))
    if pa.types.is_floating(one.type):
        both = pc.or_(both, pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
    return pc.or_(same, both).to_numpy(zero_copy_only=False).astype(bool)


def hash_rows(table: Any) -> Any:
    """A 64-bit hash of each row of a pyarrow Table; rows that SQL groups together have the same."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    for column in table.columns:
        total = _mixed(total ^ _hash_column(column.combine_chunks()))
    return total


def _mixed(values: Any) -> Any:
    """The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)."""
    with np.errstate(over="ignore"):
        values = values + _GOLDEN
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


def _hash_column(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        parts = [_hash_column(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        hashes = _hash_texts(column)
    elif pa.types.is_decimal128(kind):
        halves = np.frombuffer(column.buffers()[1], dtype=np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
        hashes = _mixed(_mixed(halves[0::2]) ^ halves[1::2])
    else:
        hashes = _mixed(_bits(column))
    if column.null_count:
        hashes = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def _bits(column: Any) -> Any:
    """The values of a column of fixed width as 64-bit patterns; the same one for all that count as equal."""
    if pa.types.is_floating(column.type):
        # Adding zero makes a zero of the negative one.
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif not pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    return pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)


def _hash_texts(column: Any) -> Any:
    column = column.cast(pa.large_binary())
    parts = [_hash_bytes(column.slice(at, _TEXT_ROWS)) for at in range(0, len(column), _TEXT_ROWS)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _hash_bytes(column: Any) -> Any:
    """Each text's bytes, mixed with their place in it, summed."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets)
    data = column.buffers()[2]
    values = np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    inside = np.arange(len(values), dtype=np.int64) - np.repeat(offsets[:-1] - offsets[0], lengths)
    mixed = _mixed(values.astype(np.uint64) | (inside.astype(np.uint64) << np.uint64(8)))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)))
    ends = offsets - offsets[0]
    with np.errstate(over="ignore"):
        return _mixed(sums[ends[1:]] - sums[ends[:-1]] + lengths.astype(np.uint64))
