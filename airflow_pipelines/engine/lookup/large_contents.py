"""Queries for the contents of large relations of which few rows have changed.

The batches of such a relation are files with nearly all rows, each once, and some small ones with weights of both signs. To add
them up Spark would have to exchange all rows before it gives the first one. Here the rows that the small batches have are looked
up; these are left out of the files, and what there is of them now is added. So rows come as they are read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from airflow_pipelines.engine.arrow import WEIGHT, arrow_schema, can_group
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.lookup.matching_rows import matching_rows
from airflow_pipelines.engine.operators.context import Context
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote

_REMEMBERED = 8
_INDEXED = 2
"""Rows are looked up by so many of their columns where there is no key; the others are compared afterwards."""


@dataclass(frozen=True, slots=True)
class _Changed:
    """The rows of a relation that its small batches have, and those of them that there are now, each with the weight 1."""

    named: Batch
    present: Batch


class LargeContents:
    """Writes these queries, and remembers what it has looked up."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[int, ...], _Changed | None] = LRUCache(_REMEMBERED)
        self._lock = threading.Lock()

    def query(self, trace: Trace, key: Sequence[str], context: Context) -> str | None:
        """A query for the contents of a relation as a plain multiset, without an exchange.

        :param trace: of the relation
        :param key: the columns of its primary key; none for a relation that has no such key
        :param context: finds rows
        :returns: None for contents that have to be added up, or need not be
        """
        files = tuple(batch for batch in trace.batches if batch.insert_only and batch.table is None)
        others = tuple(batch for batch in trace.batches if not (batch.insert_only and batch.table is None))
        few = sum(batch.rows for batch in others) <= min(context.limits.small_rows, sum(batch.rows for batch in files))
        arrow = arrow_schema(trace.schema)
        if trace.insert_only or not few or not trace.adds_up_weights_only or not can_group(arrow):
            return None
        changed = self._changed(trace, others, key, context)
        if changed is None:
            return None
        views, columns = context.batch_views, ", ".join(quote(name) for name in trace.columns)
        match = " AND ".join(f"s.{quote(name)} <=> c.{quote(name)}" for name in trace.keys)
        untouched = f"SELECT /*+ BROADCAST(c) */ s.* FROM {views.rows(files)} AS s LEFT ANTI JOIN {views.table(changed.named)} AS c"
        return f"SELECT {columns} FROM ({untouched} ON {match}) UNION ALL SELECT {columns} FROM {views.table(changed.present)}"

    def forget(self) -> None:
        """Let go of all batches."""
        with self._lock:
            self._known.clear()

    def _changed(self, trace: Trace, others: Sequence[Batch], key: Sequence[str], context: Context) -> _Changed | None:
        numbers = tuple(batch.number for batch in trace.batches)
        with self._lock:
            if numbers in self._known:
                return self._known[numbers]
        found = _look_up(trace, others, key, context)
        with self._lock:
            self._known[numbers] = found
        return found


def _look_up(trace: Trace, others: Sequence[Batch], key: Sequence[str], context: Context) -> _Changed | None:
    rows = pa.concat_tables([batch.to_arrow() for batch in others])
    named = distinct_rows({name: rows[name] for name in trace.keys})
    limits = replace(context.limits, indexed=len(key) or _INDEXED)
    names = sorted(trace.keys, key=lambda name: (name not in key, _is_long(named[name].type)))
    found = matching_rows(trace, named, names, replace(context, limits=limits))
    found = found.filter(pc.greater(found[WEIGHT], 0))
    weights = found[WEIGHT].to_pylist()
    if sum(weights) > context.limits.fan_out:
        return None
    places = pa.array((at for at, weight in enumerate(weights) for _ in range(weight)), pa.int64())
    return _Changed(_once(trace, named), _once(trace, found.take(places)))


def _is_long(kind: pa.DataType) -> bool:
    """Whether an index over a column of this type takes long to make."""
    return bool(
        pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    )


def _once(trace: Trace, rows: pa.Table) -> Batch:
    """Rows as a batch, each with the weight 1."""
    plain = rows.select([name for name in rows.column_names if name != WEIGHT])
    return Batch.in_memory(trace.schema, plain.append_column(WEIGHT, pa.array([1] * rows.num_rows, pa.int64())))
