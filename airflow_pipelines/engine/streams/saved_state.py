"""The state of a stream program in traces: one row per page, and one for each other part.

Rows are written when a checkpoint is taken, and not with each step, because a step changes keys in pages everywhere. Only the
newest version of a page counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.state import StateSchema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.streams import StreamOperator, operator_from_json
from airflow_pipelines.rows.zsets import VERSION, WEIGHT, Merge
from airflow_pipelines.streams.worker.messages import PageKey, StateChanges, StoredPages

PAGES: Final = "pages"
REST: Final = "rest"
PROGRESS: Final = "progress"
_KEY: Final = ("uid", "key_group", "depth", "bits")
_VALUES: Final = ("data", "due_event", "due_processing")
_PAGES_AT_A_TIME: Final = 64
_BATCH_BYTES: Final = 96 << 20
"""The number of bytes of pages that make a batch, which is then too large to stay in memory."""
_PROGRAM, _OPERATORS = 0, 1
"""The parts of the state besides pages: bytes from the program's process, and JSON of the program's operators."""

SCHEMAS: Final[Mapping[str, StateSchema]] = {
    PAGES: StateSchema(
        StructType(
            [
                StructField("uid", StringType()),
                StructField("key_group", IntegerType()),
                StructField("depth", IntegerType()),
                StructField("bits", LongType()),
                StructField("data", BinaryType()),
                StructField("due_event", LongType()),
                StructField("due_processing", LongType()),
            ]
        ),
        dict.fromkeys(_VALUES, Merge.NEWEST),
    ),
    REST: StateSchema(StructType([StructField("part", IntegerType()), StructField("data", BinaryType())]), {"data": Merge.NEWEST}),
    PROGRESS: StateSchema(StructType([StructField("part", IntegerType()), StructField("due", LongType())]), {"due": Merge.NEWEST}),
}
"""The states of the operator that runs a stream program.

``due`` is the time at which it wants to be called again without input, in microseconds since the epoch.
"""


def progress_row(due: int | None, before: Trace) -> pa.Table:
    """Return the row that records the progress of a program.

    :param due: the time at which it wants to be called again without input
    :param before: the state so far
    """
    weight = 0 if before.batches else 1
    return pa.table({"part": pa.array([0], pa.int32()), "due": pa.array([due], pa.int64()), WEIGHT: pa.array([weight], pa.int64())})


def due_of(progress: Trace) -> int | None:
    """Return the time at which a program wants to be called again without input.

    :param progress: the state
    :returns: microseconds since the epoch; None for never
    """
    newest: tuple[int, int | None] = (-1, None)
    for batch in progress.batches:
        rows = batch.to_arrow()
        for version, due in zip(rows[VERSION].to_pylist(), rows["due"].to_pylist(), strict=True):
            newest = max(newest, (version, due), key=lambda pair: pair[0])
    return newest[1]


class SavedChanges:
    """The conversion of a program's changes to rows, some pages at a time, so that not all of them are in memory.

    :param states: the states so far
    :param operators: the operators of the program
    :param settled: the function that moves a large batch to where it is kept
    """

    def __init__(self, states: Mapping[str, Trace], operators: Iterable[StreamOperator], settled: Callable[[Batch], Batch]) -> None:
        self._version = 1 + max((newest_version(states[name]) for name in (PAGES, REST)), default=0)
        self._known = known_pages(states[PAGES])
        self._is_first = not states[REST].batches
        self._operators = operators
        self._settled = settled
        self._rows = _PageRows(self._known)
        self._batches: list[Batch] = []

    def take(self, stored: StoredPages) -> None:
        """Add pages that have changed.

        :param stored: the pages
        """
        self._rows.add(stored)
        if self._rows.size >= _BATCH_BYTES:
            self._settle()

    def batches(self, changes: StateChanges) -> dict[str, tuple[Batch, ...]]:
        """Return the batches that the states gain.

        :param changes: the program's changes besides its pages
        :returns: rows by the names of the states
        """
        self._rows.remove(changes.gone)
        self._settle()
        described = json.dumps([asdict(operator) for operator in self._operators]).encode()
        weight = 1 if self._is_first else 0
        rest = pa.table(
            {
                "part": pa.array([_PROGRAM, _OPERATORS], pa.int32()),
                "data": pa.array([changes.rest, described], pa.binary()),
                WEIGHT: pa.array([weight, weight], pa.int64()),
            }
        )
        return {PAGES: tuple(self._batches), REST: (self._settled(SCHEMAS[REST].batch(rest, self._version)),)}

    def _settle(self) -> None:
        self._batches.append(self._settled(SCHEMAS[PAGES].batch(self._rows.table(), self._version)))
        self._rows = _PageRows(self._known)


def newest_version(state: Trace) -> int:
    """Return the version of the newest row, or 0 if there are no rows.

    :param state: a state with versions
    """
    versions = (pc.max(_columns(batch, (VERSION,))[VERSION]).as_py() for batch in state.batches if batch.rows)
    return max(versions, default=0)


def known_pages(pages: Trace) -> frozenset[PageKey]:
    """Return the keys of the pages in a state.

    :param pages: the state
    """
    weights: dict[PageKey, int] = {}
    for batch in pages.batches:
        rows = _columns(batch, (*_KEY, WEIGHT))
        for key, weight in zip(_keys(rows), rows[WEIGHT].to_pylist(), strict=True):
            weights[key] = weights.get(key, 0) + weight
    return frozenset(key for key, weight in weights.items() if weight)


def page_bytes(pages: Trace) -> dict[str, int]:
    """Return the size of each operator's pages.

    :param pages: the state
    :returns: bytes by uid of the operator
    """
    sizes: dict[str, int] = {}
    for part in pages_of(pages):
        sizes[part.uid] = sizes.get(part.uid, 0) + sum(len(page[0]) for page in part.pages.values())
    return sizes


def rest_of(state: Trace) -> bytes | None:
    """Return the state of the program's process besides pages, or None before the first checkpoint.

    :param state: the state
    """
    return _newest_part(state, _PROGRAM)


def operators_of(state: Trace) -> tuple[StreamOperator, ...]:
    """Return the operators that the program had when it was saved.

    :param state: the state
    """
    described = _newest_part(state, _OPERATORS)
    return () if described is None else tuple(map(operator_from_json, json.loads(described)))


def _newest_part(state: Trace, part: int) -> bytes | None:
    newest: tuple[int, bytes | None] = (-1, None)
    for batch in state.batches:
        rows = batch.to_arrow()
        rows = rows.filter(pc.equal(rows["part"], part))
        for version, data in zip(rows[VERSION].to_pylist(), rows["data"].to_pylist(), strict=True):
            newest = max(newest, (version, data), key=lambda one: one[0])
    return newest[1]


def pages_of(state: Trace) -> Iterator[StoredPages]:
    """Yield the pages, some at a time, so that they need not all be in memory.

    :param state: the state
    """
    there = known_pages(state)
    newest: dict[PageKey, tuple[int, int]] = {}
    for number, batch in enumerate(state.batches):
        rows = _columns(batch, (*_KEY, VERSION))
        for key, version in zip(_keys(rows), rows[VERSION].to_pylist(), strict=True):
            if key in there and (key not in newest or version > newest[key][0]):
                newest[key] = (version, number)
    for number, batch in enumerate(state.batches):
        for rows in _tables(batch):
            wanted = [
                newest.get(key) == (version, number) for key, version in zip(_keys(rows), rows[VERSION].to_pylist(), strict=True)
            ]
            yield from _to_stored_pages(rows.filter(pa.array(wanted, pa.bool_())))


def _to_stored_pages(rows: pa.Table) -> Iterator[StoredPages]:
    for start in range(0, rows.num_rows, _PAGES_AT_A_TIME):
        some = rows.slice(start, _PAGES_AT_A_TIME)
        by_uid: dict[str, dict[tuple[int, int, int], tuple[bytes, int | None, int | None]]] = {}
        values = zip(*(some[name].to_pylist() for name in _VALUES), strict=True)
        for (uid, group, depth, bits), page in zip(_keys(some), values, strict=True):
            by_uid.setdefault(uid, {})[group, depth, bits] = page
        for uid, pages in by_uid.items():
            yield StoredPages(uid, pages)


class _PageRows:
    """A buffer of the rows of changed pages.

    :param known: the pages that the state has
    """

    def __init__(self, known: frozenset[PageKey]) -> None:
        self.size = 0
        """The size of the pages in bytes."""
        self._known = known
        self._keys: list[PageKey] = []
        self._values: list[tuple[bytes | None, int | None, int | None]] = []
        self._weights: list[int] = []

    def add(self, stored: StoredPages) -> None:
        for page_id, page in stored.pages.items():
            key = (stored.uid, *page_id)
            self._keys.append(key)
            self._values.append(page)
            self._weights.append(0 if key in self._known else 1)
            self.size += len(page[0])

    def remove(self, gone: Iterable[PageKey]) -> None:
        for key in gone:
            if key in self._known:
                self._keys.append(key)
                self._values.append((None, None, None))
                self._weights.append(-1)

    def table(self) -> pa.Table:
        kinds = (pa.string(), pa.int32(), pa.int32(), pa.int64())
        columns = [pa.array([key[at] for key in self._keys], kind) for at, kind in enumerate(kinds)]
        of_values = (pa.binary(), pa.int64(), pa.int64())
        columns += [pa.array([value[at] for value in self._values], kind) for at, kind in enumerate(of_values)]
        return pa.table([*columns, pa.array(self._weights, pa.int64())], names=[*_KEY, *_VALUES, WEIGHT])


def _keys(rows: pa.Table) -> Iterable[PageKey]:
    return zip(*(rows[name].to_pylist() for name in _KEY), strict=True)


def _columns(batch: Batch, names: tuple[str, ...]) -> pa.Table:
    """Return some columns of a batch, so that the bytes of pages are read only where they are needed."""
    if batch.table is not None:
        return batch.table.select(list(names))
    assert batch.store is not None  # noqa: S101 (a batch is in memory or in files)
    return batch.store.read(batch.files, names)


def _tables(batch: Batch) -> Iterator[pa.Table]:
    if batch.table is not None:
        yield batch.table
        return
    assert batch.store is not None  # noqa: S101 (a batch is in memory or in files)
    yield from batch.store.read_in_parts(batch.files, _PAGES_AT_A_TIME)
