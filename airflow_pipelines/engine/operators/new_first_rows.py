"""The effect of new rows on the first rows of their keys, computed in the driver. Keys and order must be plain columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.ways import Budget, Declined, TooMuch, first_accepted
from airflow_pipelines.engine.operators.first_rows import can_rank, first_rows
from airflow_pipelines.engine.operators.gathered_groups import GatheredGroups
from airflow_pipelines.engine.operators.lookup_join.fetch import queried_delta_of
from airflow_pipelines.engine.operators.lookup_join.joined_rows import joined_parts
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows, limits_of_groups, matching_batch
from airflow_pipelines.engine.operators.passed_deltas import passed_delta
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.zsets import WEIGHT, consolidate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.passed_rows import passed_rows
from airflow_pipelines.sql.plan.ir.ranking import RankFunction, Ranking


def change_of_first_rows(node: AppendOnlyTopK, stored: Trace, context: Context) -> Batch:
    """Return the change of a top-k stage's contents. Equal rows of it are consolidated.

    :param node: the node that ranks the rows
    :param stored: the contents before the step
    :param context: the context with the new rows
    :raises Declined: if an expression determines the ranks, or there are too many rows for one process
    """
    if node.ranking is None or not can_rank(arrow_schema(stored.schema), node.ranking):
        raise Declined("the ranks are not those of plain columns")
    new = _find_first_new_rows(node, node.ranking, context)
    known = _find_stored_rows(node.ranking, new, stored, context)
    return Batch.in_memory(stored.schema, _change(node, node.ranking, known, new))


def _find_first_new_rows(node: AppendOnlyTopK, ranking: Ranking, context: Context) -> pa.Table:
    """Return the source's new rows that rank first among themselves, each as often as it exists.

    :raises Declined: if they are too many
    """

    def first(tables: Sequence[pa.Table]) -> pa.Table:
        rows = pa.concat_tables(tables)
        # In their stored order, to read texts sequentially.
        return rows.take(pa.array(np.sort(first_rows(rows, ranking, node.most).rows)))

    changed = sum(batch.rows for name in node.source.reads for batch in context.relations[name].delta)
    gathered = GatheredGroups(first, changed, context.limits)
    for rows in first_accepted(
        lambda: _pass_new_rows(node, context), lambda: joined_parts(node.source, context), lambda: _query_new_rows(node, context)
    ):
        most = context.limits.most_groups(rows.nbytes // max(1, rows.num_rows))
        gathered.add(_repeat_rows(rows, ranking, node.most, most), rows.num_rows)
    return gathered.result()


def _pass_new_rows(node: AppendOnlyTopK, context: Context) -> Iterator[pa.Table]:
    """Return the source's new rows with their weights, some at a time, if it passes on those of a relation."""
    passed = passed_rows(node.source)
    columns = node.source.columns
    if passed is None or not set(columns) <= passed.columns.keys():
        raise Declined("the source computes")
    return passed_delta(passed, columns, context)


def _query_new_rows(node: AppendOnlyTopK, context: Context) -> Iterator[pa.Table]:
    """Return the source's new rows with their weights, by a query for few rows."""
    delta = queried_delta_of(node.source, context)
    if delta.query is None:
        return iter(())
    if delta.mode is Mode.LARGE:
        raise TooMuch("a large query for new rows")
    return iter([context.batch_bounded(delta.query, delta.mode).to_arrow()])


def _repeat_rows(rows: pa.Table, ranking: Ranking, most: int, limit: int) -> pa.Table:
    """Return rows as often as their weights say, without weights.

    :raises Declined: if there are negative weights, or more rows than the limit
    """
    plain, weights = rows.drop_columns([WEIGHT]), rows[WEIGHT].to_numpy()
    if (weights == 1).all():
        return plain
    if ranking.function is RankFunction.ROW_NUMBER:
        weights = np.minimum(weights, most)
    if (weights < 0).any():
        raise Declined("rows are deleted")
    Budget(limit).require(int(weights.sum()))
    return plain.take(pa.array(np.repeat(np.arange(len(weights)), weights)))


def _find_stored_rows(ranking: Ranking, new: pa.Table, stored: Trace, context: Context) -> pa.Table:
    """Return the stored rows of the new rows' groups, each as often as it exists. There may be rows of other groups among them.

    :raises Declined: if they are too many
    """
    limits = limits_of_groups(stored.batches, context.limits)
    groups = distinct_rows({name: new[name] for name in ranking.partition})
    batch = matching_batch(stored.batches, stored.schema, groups, limits)
    rows = batch.to_arrow() if batch.insert_only else consolidate(batch.to_arrow())
    return _repeat_rows(rows, ranking, limits.fan_out, limits.fan_out)


def _change(node: AppendOnlyTopK, ranking: Ranking, stored: pa.Table, new: pa.Table) -> pa.Table:
    """Return the rows whose place has changed. Each is inserted with its new place and deleted with its old one."""
    own = list(node.source.columns)
    both = pa.concat_tables([stored.select(own), new.select(own)])
    was = np.concatenate((stored[node.place].to_numpy(), np.zeros(new.num_rows, np.int64)))
    first = first_rows(both, ranking, node.most)
    places = np.zeros(both.num_rows, np.int64)
    places[first.rows] = first.places
    moved = places != was
    comes, goes = np.flatnonzero(moved & (places > 0)), np.flatnonzero(moved & (was > 0))
    rows = both.take(pa.array(np.concatenate((comes, goes))))
    place = pa.array(np.concatenate((places[comes], was[goes])), stored.schema.field(node.place).type)
    weights = np.repeat(np.array([1, -1]), [len(comes), len(goes)])
    changes = rows.append_column(node.place, place).append_column(WEIGHT, pa.array(weights, pa.int64()))
    # Rows that differ only in their places may swap them.
    return changes if ranking.function is RankFunction.ROW_NUMBER and not first.equals else consolidate(changes)
