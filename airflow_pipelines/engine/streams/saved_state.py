"""The state of a stream program in traces: one row per page, and one for all that is kept besides.

Rows are written when a checkpoint is taken, and not with each step: a step touches keys all over the pages. The newest version of
a page is the one that counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from airflow_pipelines.engine.arrow import VERSION, WEIGHT
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.operators.state import StateSchema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.streams import StreamOperator, operator_from_json
from airflow_pipelines.sql.plan.ir.merge import Merge
from airflow_pipelines.streams.worker.messages import PageKey, StateChanges, StoredPages

PAGES: Final = "pages"
REST: Final = "rest"
PROGRESS: Final = "progress"
_KEY: Final = ("uid", "key_group", "depth", "bits")
_VALUES: Final = ("data", "due_event", "due_processing")
_PAGES_AT_A_TIME: Final = 64
_PROGRAM, _OPERATORS = 0, 1
"""Parts of what is kept besides pages: what the process of the program gave, and JSON of the program's operators."""

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
"""The states of the operator that runs a stream program. ``due`` is when it wants to be called again without input, in microseconds
since the epoch."""


def progress_row(due: int | None, before: Trace) -> pa.Table:
    """The row by which the progress of a program is noted.

    :param due: when it wants to be called again without input
    :param before: the state so far
    """
    weight = 0 if before.batches else 1
    return pa.table({"part": pa.array([0], pa.int32()), "due": pa.array([due], pa.int64()), WEIGHT: pa.array([weight], pa.int64())})


def due_of(progress: Trace) -> int | None:
    """When a program wants to be called again without input.

    :param progress: the state
    :returns: microseconds since the epoch, None for never
    """
    newest: tuple[int, int | None] = (-1, None)
    for batch in progress.batches:
        rows = batch.to_arrow()
        for version, due in zip(rows[VERSION].to_pylist(), rows["due"].to_pylist(), strict=True):
            newest = max(newest, (version, due), key=lambda found: found[0])
    return newest[1]


def with_changes(states: Mapping[str, Trace], changes: StateChanges, operators: Iterable[StreamOperator]) -> dict[str, Batch]:
    """What the states gain by what has changed.

    :param states: the states so far
    :param changes: what the program says
    :param operators: those of the program
    :returns: rows by the names of the states
    """
    version = 1 + max((newest_version(states[name]) for name in (PAGES, REST)), default=0)
    known = known_pages(states[PAGES])
    described = json.dumps([asdict(operator) for operator in operators]).encode()
    weight = 0 if states[REST].batches else 1
    rest = pa.table(
        {
            "part": pa.array([_PROGRAM, _OPERATORS], pa.int32()),
            "data": pa.array([changes.rest, described], pa.binary()),
            WEIGHT: pa.array([weight, weight], pa.int64()),
        }
    )
    return {
        PAGES: SCHEMAS[PAGES].batch(_page_rows(changes, known), version),
        REST: SCHEMAS[REST].batch(rest, version),
    }


def newest_version(state: Trace) -> int:
    """The version of the newest row; 0 without any.

    :param state: a state with versions
    """
    versions = (pc.max(_columns(batch, (VERSION,))[VERSION]).as_py() for batch in state.batches if batch.rows)
    return max(versions, default=0)


def known_pages(pages: Trace) -> frozenset[PageKey]:
    """The pages that are there.

    :param pages: the state
    """
    weights: dict[PageKey, int] = {}
    for batch in pages.batches:
        rows = _columns(batch, (*_KEY, WEIGHT))
        for key, weight in zip(_keys(rows), rows[WEIGHT].to_pylist(), strict=True):
            weights[key] = weights.get(key, 0) + weight
    return frozenset(key for key, weight in weights.items() if weight)


def page_bytes(pages: Trace) -> dict[str, int]:
    """How much each operator keeps in pages.

    :param pages: the state
    :returns: bytes by uid of the operator
    """
    sizes: dict[str, int] = {}
    for part in pages_of(pages):
        sizes[part.uid] = sizes.get(part.uid, 0) + sum(len(page[0]) for page in part.pages.values())
    return sizes


def rest_of(state: Trace) -> bytes | None:
    """What the process of the program keeps besides pages; None before the first checkpoint.

    :param state: the state
    """
    return _newest_part(state, _PROGRAM)


def operators_of(state: Trace) -> tuple[StreamOperator, ...]:
    """The operators that the program had when it was saved.

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
    """The pages, some at a time, so that they need not all be in memory.

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
            yield from _stored(rows.filter(pa.array(wanted, pa.bool_())))


def _stored(rows: pa.Table) -> Iterator[StoredPages]:
    for start in range(0, rows.num_rows, _PAGES_AT_A_TIME):
        some = rows.slice(start, _PAGES_AT_A_TIME)
        by_uid: dict[str, dict[tuple[int, int, int], tuple[bytes, int | None, int | None]]] = {}
        values = zip(*(some[name].to_pylist() for name in _VALUES), strict=True)
        for (uid, group, depth, bits), page in zip(_keys(some), values, strict=True):
            by_uid.setdefault(uid, {})[group, depth, bits] = page
        for uid, pages in by_uid.items():
            yield StoredPages(uid, pages)


def _page_rows(changes: StateChanges, known: frozenset[PageKey]) -> pa.Table:
    keys: list[PageKey] = []
    values: list[tuple[bytes | None, int | None, int | None]] = []
    weights: list[int] = []
    for part in changes.pages:
        for page_id, page in part.pages.items():
            key = (part.uid, *page_id)
            keys.append(key)
            values.append(page)
            weights.append(0 if key in known else 1)
    for key in changes.gone:
        if key in known:
            keys.append(key)
            values.append((None, None, None))
            weights.append(-1)
    columns = [
        pa.array([key[at] for key in keys], kind) for at, kind in enumerate((pa.string(), pa.int32(), pa.int32(), pa.int64()))
    ]
    columns += [pa.array([value[at] for value in values], kind) for at, kind in enumerate((pa.binary(), pa.int64(), pa.int64()))]
    return pa.table([*columns, pa.array(weights, pa.int64())], names=[*_KEY, *_VALUES, WEIGHT])


def _keys(rows: pa.Table) -> Iterable[PageKey]:
    return zip(*(rows[name].to_pylist() for name in _KEY), strict=True)


def _columns(batch: Batch, names: tuple[str, ...]) -> pa.Table:
    """Some columns of a batch, so that the bytes of pages are read only where they are needed."""
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
