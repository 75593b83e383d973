"""The state of a stream program in traces, besides its state by key, which is in files of a database.

Rows are written when a checkpoint is taken, and not with each step. Only the newest version of a part counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.state import StateSchema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.streams import StreamOperator, operator_from_json
from airflow_pipelines.rows.zsets import VERSION, WEIGHT, Merge
from airflow_pipelines.streams.worker.messages import StateChanges, StoredPages

PageKey: TypeAlias = tuple[str, int, int, int]
"""The key of a page: uid of the operator, and the id of the page: key group, depth, bits."""
PAGES: Final = "pages"
"""The state by key as releases before the database kept it; empty since then."""
REST: Final = "rest"
PROGRESS: Final = "progress"
_KEY: Final = ("uid", "key_group", "depth", "bits")
_VALUES: Final = ("data", "due_event", "due_processing")
_PAGES_AT_A_TIME: Final = 64
_PROGRAM, _OPERATORS = 0, 1
"""The parts of the state besides that by key: bytes from the program's process, and JSON of the program's operators."""

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


def rest_batch(changes: StateChanges, operators: Iterable[StreamOperator], before: Mapping[str, Trace]) -> Batch:
    """Return the batch that a state gains with a checkpoint.

    :param changes: the program's state besides that by key
    :param operators: the operators of the program
    :param before: the states so far
    """
    described = json.dumps([asdict(operator) for operator in operators]).encode()
    weight = 0 if before[REST].batches else 1
    rest = pa.table(
        {
            "part": pa.array([_PROGRAM, _OPERATORS], pa.int32()),
            "data": pa.array([changes.rest, described], pa.binary()),
            WEIGHT: pa.array([weight, weight], pa.int64()),
        }
    )
    return SCHEMAS[REST].batch(rest, 1 + newest_version(before[REST]))


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
    """Return the state of the program's process besides that by key, or None before the first checkpoint.

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
