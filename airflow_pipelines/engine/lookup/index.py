"""Hash indexes for point lookups in batches.

A scan reads all of a large relation to find a few of its rows. So the first lookup in a batch file creates two kinds of index files
in a cache folder: for a set of key columns the sorted hashes of all rows with the rows' places, and single columns as uncompressed
Arrow files. Both are memory-mapped: they use the operating system's page cache and not the process's memory. Both can be rebuilt
from the batch file at any time. Rows that are found by hash are compared by value.

The name of an index file ends with the checksum of its content. A file that does not match its name when it is first opened is
rebuilt, because a wrong hash would hide rows.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
import weakref
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cachetools import FIFOCache

from airflow_pipelines.engine.execution.ways import Budget
from airflow_pipelines.engine.storage.batch_store import BatchStore, Verification
from airflow_pipelines.engine.storage.errors import storage_access

log = logging.getLogger(__name__)

Hashes: TypeAlias = npt.NDArray[np.uint64]
Places: TypeAlias = npt.NDArray[np.uint64] | npt.NDArray[np.int64]
_SortedHashes: TypeAlias = tuple[Hashes, Places]
"""The sorted hashes of all rows, and the place of the row of each hash."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x5851F42D4C957F2D)
_CHUNK = 1 << 20
_COMPARED_ROWS = 1 << 16
"""The number of pairs that are compared at a time, which bounds the memory and the bytes of one array of texts."""
_CACHED_BYTES = 128 << 20
"""The maximum number of bytes of the cached hashes of all batches in memory."""
_TEXT_ROWS = 250_000
"""The number of rows of which texts are hashed at a time, to bound the memory."""


def can_look_up(kind: pa.DataType) -> bool:
    """Return True if rows can be looked up by a column of this Arrow type."""
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


@dataclass(frozen=True, slots=True)
class Keys:
    """Key rows to look up, which may contain many duplicates. NULL equals NULL, and NaN equals NaN.

    :param rows: the keys, one column for each part, in the type of the stored column or a wider integer type
    :param hashes: the distinct hashes of the keys, sorted
    :param places: the place of each row's hash in ``hashes``
    """

    rows: pa.Table
    hashes: Hashes
    places: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: pa.Table) -> Keys:
        """Return the keys for some rows, hashed once for any number of batches that are searched."""
        hashes, places = np.unique(hash_rows(rows), return_inverse=True)
        return cls(rows, hashes, places)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of looked-up rows and equal stored rows.

    :param asked: the places of the looked-up rows
    :param stored: the place of the stored row of each pair
    :param column: the function that returns a column of the stored rows
    """

    asked: npt.NDArray[np.int64]
    stored: npt.NDArray[np.int64]
    column: Callable[[str], pa.ChunkedArray]


_indexes: weakref.WeakKeyDictionary[BatchStore, FileIndex] = weakref.WeakKeyDictionary()


def file_index(store: BatchStore) -> FileIndex:
    """Return the index of a store. A process has one per store."""
    index = _indexes.get(store)
    if index is None:
        index = _indexes.setdefault(store, FileIndex(store))
    return index


class FileIndex:
    """The index of the batch files of one store. Several threads may use it."""

    def __init__(self, store: BatchStore) -> None:
        """:param store: the store; its folder gets a folder with the index files."""
        self._files = store.folder
        # A weak reference: the index lives as long as the store, by which it is found.
        self._store = weakref.ref(store)
        self._verifies = store.verification is not Verification.NEVER
        self._folder = store.folder / ".lookup"
        self._columns: dict[tuple[str, str], pa.ChunkedArray] = {}
        self._hashes: dict[tuple[str, tuple[str, ...]], _SortedHashes] = {}
        self._lock = threading.Lock()
        self._index_files: dict[str, Path] | None = None

    def find(self, file: str, wanted: pa.Table, columns: Sequence[str], budget: Budget) -> pa.Table:
        """Return the rows of a file that are equal to a row of ``wanted`` in all its columns (NULL equals NULL, NaN equals NaN).

        :param file: the batch file's name
        :param wanted: the distinct rows to look for
        :param columns: the columns of the result
        :param budget: the number of rows that may be found
        :raises TooMuch: if there are more
        """
        hashes, places = self._sorted_hashes(file, tuple(wanted.column_names))
        return _find_rows(hashes, places, lambda name: self._column(file, name), wanted, columns, budget)

    def pairs(self, file: str, keys: Keys, budget: Budget) -> Pairs:
        """Return the pairs of keys and equal rows of a file.

        :param file: the batch file's name
        :param keys: the rows of the columns by which rows are looked up
        :param budget: the number of pairs that may be found
        :raises TooMuch: if there are more
        """
        return _pairs(self._sorted_hashes(file, tuple(keys.rows.column_names)), lambda name: self._column(file, name), keys, budget)

    def has(self, file: str, names: Sequence[str], columns: Sequence[str]) -> bool:
        """Return True if rows of a file can be found without reading the whole file first.

        :param file: the batch file's name
        :param names: the columns by which rows are looked up
        :param columns: the columns of the result
        """
        with self._lock:
            return (file, tuple(names)) in self._hashes and all((file, name) in self._columns for name in (*names, *columns))

    def forget(self) -> None:
        """Remove the index files of batch files that no longer exist. Mapped columns stay readable."""
        files = {path.name for path in self._files.iterdir()}
        with self._lock:
            self._columns = {key: value for key, value in self._columns.items() if key[0] in files}
            self._hashes = {key: value for key, value in self._hashes.items() if key[0] in files}
        for path in self._folder.iterdir() if self._folder.exists() else ():
            if f"{path.name.partition('.')[0]}.parquet" not in files:
                path.unlink(missing_ok=True)

    def _sorted_hashes(self, file: str, names: tuple[str, ...]) -> _SortedHashes:
        with self._lock:
            known = self._hashes.get((file, names))
        if known is None:

            def make(aside: Path) -> None:
                hashes = hash_rows(pq.read_table(self._open(file), columns=list(names), partitioning=None))
                order = np.argsort(hashes, kind="stable")
                with aside.open("wb") as target:
                    np.save(target, np.stack([hashes[order], order.astype(np.uint64)]))

            both = np.load(self._index_file(_stem(file, "hash", *names), make), mmap_mode="r")
            known = (both[0], both[1])
            with self._lock:
                self._hashes[file, names] = known
        return known

    def _column(self, file: str, name: str) -> pa.ChunkedArray:
        with self._lock:
            known = self._columns.get((file, name))
        if known is None:

            def make(aside: Path) -> None:
                table = pq.read_table(self._open(file), columns=[name], partitioning=None)
                with pa.ipc.new_file(str(aside), table.schema) as writer:
                    writer.write_table(table.combine_chunks())

            # Not closed: the column reads from the map as long as it lives.
            path = self._index_file(_stem(file, "column", name), make)
            known = pa.ipc.open_file(pa.memory_map(str(path))).read_all().column(0)
            with self._lock:
                self._columns[file, name] = known
        return known

    def _open(self, file: str) -> Path:
        store = self._store()
        if store is None:
            raise LookupError(f"the store of {self._files / file} is no longer in use")
        return store.open(file)

    def _index_file(self, stem: str, make: Callable[[Path], None]) -> Path:
        """Return the index file for a name without its checksum.

        The file is created if there is none, and rebuilt if its content has changed.
        """
        file = self._list_index_files().get(stem)
        if file is not None and file.exists():
            if not self._verifies or file.name == f"{stem}.{_checksum(file)}":
                return file
            log.warning("%s is damaged and is made again from its batch file", file)
            file.unlink(missing_ok=True)
        with storage_access(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            aside = self._folder / f".{uuid.uuid4().hex}"
            make(aside)
            path = self._folder / f"{stem}.{_checksum(aside)}"
            aside.replace(path)
        with self._lock:
            if self._index_files is not None:
                self._index_files[stem] = path
        return path

    def _list_index_files(self) -> dict[str, Path]:
        """Return the index files by their names without the checksum.

        Index files of an earlier release have no checksum and are removed.
        """
        with self._lock:
            if self._index_files is None:
                self._index_files = {}
                for path in self._folder.iterdir() if self._folder.exists() else ():
                    stem, _, checksum = path.name.rpartition(".")
                    if "." in stem:
                        self._index_files[stem] = path
                    elif checksum:
                        path.unlink(missing_ok=True)
            return self._index_files


def _stem(file: str, *what: str) -> str:
    digest = hashlib.blake2b("\0".join(what).encode(), digest_size=10).hexdigest()
    return f"{file.partition('.')[0]}.{digest}"


def _checksum(path: Path) -> str:
    """Return a fast checksum. The file is only a cache, and the batch file that it is built from is verified by a strong hash."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return f"{value:08x}"


class MemoryIndex:
    """An index of batches in memory, which caches the hashes of the most recent ones."""

    def __init__(self) -> None:
        self._hashes: FIFOCache[tuple[int, tuple[str, ...]], _SortedHashes] = FIFOCache(_CACHED_BYTES, getsizeof=_size_of)
        self._lock = threading.Lock()

    def find(self, number: int, table: pa.Table, wanted: pa.Table, columns: Sequence[str], budget: Budget) -> pa.Table:
        """Return the same as :meth:`FileIndex.find`, for a batch in memory.

        :param number: the number of the batch, which is the cache key of the hashes of ``table``
        :param table: the batch's rows
        :param wanted: the keys to look for, one column for each part of the key
        :param columns: the columns of the result
        :param budget: the number of rows that may be found
        """
        hashes, places = self._sorted_hashes(number, table, tuple(wanted.column_names))
        return _find_rows(hashes, places, lambda name: table[name], wanted, columns, budget)

    def pairs(self, number: int, table: pa.Table, keys: Keys, budget: Budget) -> Pairs:
        """Return the same as :meth:`FileIndex.pairs`, for a batch in memory.

        :param number: the number of the batch, which is the cache key of the hashes of ``table``
        :param table: the batch's rows
        :param keys: the rows of the columns by which rows are looked up
        :param budget: the number of pairs that may be found
        :raises TooMuch: if there are more
        """
        return _pairs(self._sorted_hashes(number, table, tuple(keys.rows.column_names)), lambda name: table[name], keys, budget)

    def _sorted_hashes(self, number: int, table: pa.Table, names: tuple[str, ...]) -> _SortedHashes:
        with self._lock:
            known = self._hashes.get((number, names))
        if known is None:
            hashes = hash_rows(table.select(list(names)))
            order = np.argsort(hashes, kind="stable")
            known = (hashes[order], order)
            if _size_of(known) <= _CACHED_BYTES:
                with self._lock:
                    self._hashes[number, names] = known
        return known


def _size_of(hashes: _SortedHashes) -> int:
    return hashes[0].nbytes + hashes[1].nbytes


memory_index = MemoryIndex()
"""The index for all batches of the process."""


def _find_rows(
    hashes: Hashes,
    places: Places,
    column: Callable[[str], pa.ChunkedArray],
    wanted: pa.Table,
    columns: Sequence[str],
    budget: Budget,
) -> pa.Table:
    rows = pa.array(np.sort(_find_places(hashes, places, column, wanted, budget)))
    return pa.table([column(name).take(rows) for name in columns], names=list(columns))


def _find_places(
    hashes: Hashes, places: Places, column: Callable[[str], pa.ChunkedArray], wanted: pa.Table, budget: Budget
) -> npt.NDArray[np.int64]:
    """Return the places of the stored rows that are equal to a wanted row."""
    looked_for = hash_rows(wanted)
    # Sorted, so that each search begins where the last one ended.
    order = np.argsort(looked_for)
    ordered = looked_for[order]
    first = np.searchsorted(hashes, ordered, side="left")
    counts = np.searchsorted(hashes, ordered, side="right") - first
    total = int(counts.sum())
    budget.require(total)
    ends = np.cumsum(counts)
    at = np.repeat(first - (ends - counts), counts) + np.arange(total)
    matches, asked = np.asarray(places[at], dtype=np.int64), np.repeat(order, counts)
    same = np.ones(total, dtype=bool)
    for name in wanted.column_names:
        stored = column(name).take(pa.array(matches))
        same &= _compare_columns(stored, wanted[name].take(pa.array(asked)).cast(stored.type))
    budget.spend(int(same.sum()))
    return matches[same]


def _pairs(hashed: _SortedHashes, column: Callable[[str], pa.ChunkedArray], keys: Keys, budget: Budget) -> Pairs:
    hashes, places = hashed
    first = np.searchsorted(hashes, keys.hashes, side="left")
    counts = (np.searchsorted(hashes, keys.hashes, side="right") - first)[keys.places]
    total = int(counts.sum())
    budget.require(total)
    ends = np.cumsum(counts)
    at = np.repeat(first[keys.places] - (ends - counts), counts) + np.arange(total)
    stored, asked = np.asarray(places[at], dtype=np.int64), np.repeat(np.arange(len(counts)), counts)
    same = np.ones(total, dtype=bool)
    for part in (slice(at, at + _COMPARED_ROWS) for at in range(0, total, _COMPARED_ROWS)):
        for name in keys.rows.column_names:
            wanted = keys.rows[name].take(pa.array(asked[part]))
            same[part] &= _compare_columns(column(name).take(pa.array(stored[part])).cast(wanted.type), wanted)
    budget.spend(int(same.sum()))
    return Pairs(asked, stored, column) if same.all() else Pairs(asked[same], stored[same], column)


def _compare_columns(one: pa.ChunkedArray, other: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows in which two columns are equal. NULL equals NULL, and NaN equals NaN."""
    if pa.types.is_struct(one.type):
        alike: npt.NDArray[np.bool_] = pc.equal(pc.is_null(one), pc.is_null(other)).to_numpy().astype(bool)
        for at in range(one.type.num_fields):
            alike &= _compare_columns(pc.struct_field(one, [at]), pc.struct_field(other, [at]))
        return alike
    same = pc.fill_null(pc.equal(one, other), False)
    both = pc.and_(pc.is_null(one), pc.is_null(other))
    if pa.types.is_floating(one.type):
        both = pc.or_(both, pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
    mask: npt.NDArray[np.bool_] = pc.or_(same, both).to_numpy(zero_copy_only=False).astype(bool)
    return mask


def hash_rows(table: pa.Table) -> Hashes:
    """Return a 64-bit hash of each row. Rows that SQL puts into one group have the same hash."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    for column in table.columns:
        total = _mix(total ^ _hash_column(column.combine_chunks()))
    return total


def _mix(values: Hashes) -> Hashes:
    """Apply the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)."""
    with np.errstate(over="ignore"):
        values = values + _GOLDEN
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


def _hash_column(column: pa.Array | pa.ChunkedArray) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        parts = [_hash_column(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        hashes = _hash_texts(column)
    elif pa.types.is_struct(kind):
        fields = [pc.struct_field(column, [at]) for at in range(kind.num_fields)]
        hashes = hash_rows(pa.table(fields, names=[str(at) for at in range(kind.num_fields)]))
    elif pa.types.is_decimal128(kind):
        halves = np.frombuffer(column.buffers()[1], dtype=np.uint64)[2 * column.offset : 2 * (column.offset + len(column))]
        hashes = _mix(_mix(halves[0::2]) ^ halves[1::2])
    else:
        hashes = _mix(_to_bits(column))
    if column.null_count:
        hashes = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def _to_bits(column: pa.Array) -> Hashes:
    """Return the values of a column of fixed width as 64-bit patterns. Equal values have the same pattern."""
    if pa.types.is_floating(column.type):
        # Adding zero turns a negative zero into a positive one.
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif not pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    numbers: npt.NDArray[np.int64] = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers.view(np.uint64)


def _hash_texts(column: pa.Array) -> Hashes:
    encoded = column.dictionary_encode()
    if 2 * len(encoded.dictionary) < len(column):
        # Each different text is hashed once; those of NULL are replaced.
        different = _hash_texts(encoded.dictionary)
        return different[encoded.indices.fill_null(0).to_numpy()] if len(different) else np.zeros(len(column), np.uint64)
    column = column.cast(pa.large_binary())
    parts = [_hash_bytes(column.slice(at, _TEXT_ROWS)) for at in range(0, len(column), _TEXT_ROWS)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _hash_bytes(column: pa.Array) -> Hashes:
    """Return the hash of each text: the sum of its bytes, each mixed with its position."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets)
    data = column.buffers()[2]
    values = np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    inside = np.arange(len(values), dtype=np.int64) - np.repeat(offsets[:-1] - offsets[0], lengths)
    mixed = _mix(values.astype(np.uint64) | (inside.astype(np.uint64) << np.uint64(8)))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)))
    ends = offsets - offsets[0]
    with np.errstate(over="ignore"):
        return _mix(sums[ends[1:]] - sums[ends[:-1]] + lengths.astype(np.uint64))
