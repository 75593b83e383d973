"""Queries for the contents of large relations of which few rows have changed.

The batches of such a relation are files with nearly all rows, each once, and some small ones with weights of both signs. To
consolidate them Spark would have to exchange all rows before it returns the first one. Here the rows in the small batches are
looked up. They are filtered out of the files, and their current versions are added. So rows are returned as they are read. If rows
cannot be looked up, or more than a few have changed, or there is no index and building one would take long, the batches are merged
on read (:mod:`airflow_pipelines.engine.lookup.merge_on_read`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.ways import Budget, Declined, TooMuch, accepted, first_accepted
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.lookup.index import file_index
from airflow_pipelines.engine.lookup.merge_on_read import SplitChanges, merge_on_read, merge_split, split_changes
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows
from airflow_pipelines.engine.operators.matching_rows import indexed_columns, matching_rows
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.zsets import WEIGHT, can_group

_REMEMBERED = 8
_INDEXED = 2
"""The number of columns by which rows are looked up if there is no key; the others are compared afterwards."""


@dataclass(frozen=True, slots=True)
class _Changed:
    """The rows of a relation in its small batches, and those of them that exist now, each with the weight 1."""

    named: Batch
    present: Batch


class LargeContents:
    """The writer of these queries, which caches the rows that it has looked up."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[int, ...], _Changed | None] = LRUCache(_REMEMBERED)
        self._splits: LRUCache[tuple[int, ...], SplitChanges] = LRUCache(_REMEMBERED)
        self._lock = threading.Lock()

    def query(self, trace: Trace, key: Sequence[str], context: Context) -> str | None:
        """Return a query for the contents of a relation as a plain multiset, without an exchange.

        :param trace: the trace of the relation
        :param key: the columns of its primary key; none for a relation without one
        :param context: the context that finds rows
        :returns: the query; None for contents that have to be consolidated, or need not be
        """
        files = tuple(batch for batch in trace.batches if batch.insert_only and _is_large(batch, context.limits))
        others = tuple(batch for batch in trace.batches if not (batch.insert_only and _is_large(batch, context.limits)))
        stored, changed = (sum(batch.rows for batch in batches) for batches in (files, others))
        few = changed <= min(context.limits.merged_on_read, stored)
        if trace.insert_only or not few or not trace.adds_up_weights_only or not trace.columns:
            return None
        return first_accepted(
            lambda: self._without_changed(trace, files, others, key, context),
            lambda: self._merge_split(trace, changed, key, context),
            lambda: merge_on_read(trace, key, context.batch_views),
        )

    def forget(self) -> None:
        """Release all batches."""
        with self._lock:
            self._known.clear()
            self._splits.clear()

    def _without_changed(
        self, trace: Trace, files: Sequence[Batch], others: Sequence[Batch], key: Sequence[str], context: Context
    ) -> str:
        """Return a query for the rows of the files without the changed ones, which are looked up."""
        Budget(context.limits.small_rows).require(sum(batch.rows for batch in others))
        if not can_group(arrow_schema(trace.schema)):
            raise Declined("Arrow does not group rows of these types")
        return _without_changed(trace, files, self._find_changed(trace, files, others, key, context), context)

    def _merge_split(self, trace: Trace, changed: int, key: Sequence[str], context: Context) -> str:
        """Return a query that merges the batches on read, with the deletions of batches in memory split off.

        :param changed: the number of rows in small batches
        """
        Budget(context.limits.small_rows).require(changed)
        if any(batch.table is None for batch in trace.batches if not batch.insert_only):
            raise Declined("deletions are in files")
        numbers = tuple(batch.number for batch in trace.batches)
        with self._lock:
            known = self._splits.get(numbers)
        if known is None:
            known = split_changes(trace, key, context.batch_views)
            with self._lock:
                # Prefer another thread's result: only cached batches live until the query has been planned.
                known = self._splits.setdefault(numbers, known)
        return merge_split(trace, key, known, context.batch_views)

    def _find_changed(
        self, trace: Trace, files: Sequence[Batch], others: Sequence[Batch], key: Sequence[str], context: Context
    ) -> _Changed:
        """Return the changed rows.

        :raises Declined: if looking them up would take long, or they are too many
        """
        numbers = tuple(batch.number for batch in trace.batches)
        with self._lock:
            is_known, changes = numbers in self._known, self._known.get(numbers)
        if not is_known:
            names, most = _order_of_lookup(trace, key), len(key) or _INDEXED
            if not _may_look_up(trace, files, names, most, context.limits):
                # This is not cached, since an index may be built by then.
                raise TooMuch("rows without an index")
            changes = accepted(lambda: _look_up(trace, others, names.names, most, context))
            with self._lock:
                # Prefer another thread's result: only cached batches live until the query has been planned.
                changes = self._known.setdefault(numbers, changes)
        if changes is None:
            raise TooMuch("rows to look up")
        return changes


def _without_changed(trace: Trace, files: Sequence[Batch], changed: _Changed, context: Context) -> str:
    """Return a query for the rows of some files without the changed ones, and then the current versions of these."""
    views, columns = context.batch_views, ", ".join(quote(name) for name in trace.columns)
    match = " AND ".join(f"s.{quote(name)} <=> c.{quote(name)}" for name in trace.keys)
    untouched = (
        f"SELECT /*+ BROADCAST(c) */ s.* FROM {views.rows(tuple(files))} AS s LEFT ANTI JOIN {views.table(changed.named)} AS c"
    )
    return f"SELECT {columns} FROM ({untouched} ON {match}) UNION ALL SELECT {columns} FROM {views.table(changed.present)}"


def _is_large(batch: Batch, limits: Limits) -> bool:
    return batch.table is None or not batch.is_small(limits)


def _has_index(trace: Trace, files: Sequence[Batch], indexed: Sequence[str]) -> bool:
    """Return True if there is an index over some files already.

    Building one takes seconds, and the memory of all the rows of a file.
    """
    columns = [*trace.keys, *trace.merges]
    return all(
        batch.store is not None and file_index(batch.store).has(file, indexed, columns) for batch in files for file in batch.files
    )


def _order_of_lookup(trace: Trace, key: Sequence[str]) -> pa.Schema:
    """Return the columns of a relation in the order in which rows are looked up by them: the key first, and short ones."""
    arrow = arrow_schema(trace.schema)
    columns = [arrow.field(name) for name in trace.keys]
    return pa.schema(sorted(columns, key=lambda column: (column.name not in key, _is_long(column.type))))


def _may_look_up(trace: Trace, files: Sequence[Batch], names: pa.Schema, most: int, limits: Limits) -> bool:
    """Return True if looking rows up in some files does not take long: they are short, or have an index."""
    return sum(batch.rows for batch in files) <= limits.indexed_rows or _has_index(trace, files, indexed_columns(names, most))


def _look_up(trace: Trace, others: Sequence[Batch], names: Sequence[str], most: int, context: Context) -> _Changed:
    """Return the changed rows.

    :param names: the columns by which rows are looked up
    :param most: the greatest number of columns that are indexed
    :raises TooMuch: if they are too many
    """
    rows = pa.concat_tables([batch.to_arrow() for batch in others])
    named = distinct_rows({name: rows[name] for name in trace.keys})
    matches = matching_rows(trace, named, names, context, most)
    matches = matches.filter(pc.greater(matches[WEIGHT], 0))
    weights = matches[WEIGHT].to_numpy()
    Budget(context.limits.fan_out).require(int(weights.sum()))
    places = pa.array(np.repeat(np.arange(len(weights)), weights))
    return _Changed(_to_unit_weights(trace, named), _to_unit_weights(trace, matches.take(places)))


def _is_long(kind: pa.DataType) -> bool:
    """Return True if building an index over a column of this type takes long."""
    return bool(
        pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    )


def _to_unit_weights(trace: Trace, rows: pa.Table) -> Batch:
    """Return rows as a batch, each with the weight 1."""
    plain = rows.select([name for name in rows.column_names if name != WEIGHT])
    return Batch.in_memory(trace.schema, plain.append_column(WEIGHT, pa.array([1] * rows.num_rows, pa.int64())))
