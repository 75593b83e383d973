"""Queries over rows in memory whose results are put together with the rows again: each result has the place of its row.

Many rows have few distinct values: a function of a few columns is evaluated once for each combination of their values. The rest is
evaluated piece by piece, by Spark plans that run in the driver, by as many threads as there are cores. A query without such a plan
runs as a job, if there are few rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.distinct_rows import DistinctRows, Places, distinct_rows
from airflow_pipelines.engine.execution.ways import Budget, Declined, TooMuch, first_accepted
from airflow_pipelines.engine.spark.driver_tasks import enter_group, group_of_this_thread
from airflow_pipelines.rows.arrow import ArrowColumn

_FEW: Final = 2_000
"""The number of rows that are evaluated in less time than it takes to look for equal ones."""
_LANES: Final = min(4, os.cpu_count() or 1)
_SHARED: Final = 4_000
"""The number of rows below which a second thread is not worthwhile."""

_threads = ThreadPoolExecutor(_LANES, "evaluating expressions")


@dataclass(frozen=True, slots=True)
class RowQuery:
    """A query that returns for each row of a batch none, one or several rows.

    :param text: the function that returns the query over a batch. The batch has the place of each row instead of the weight, and so
        has the query's result
    :param schema: the Spark types of the rows' columns, by name; there may be others
    :param may_grow: True if there may be many rows for one
    """

    text: Callable[[Batch], str]
    schema: StructType
    may_grow: bool = False


@dataclass(frozen=True, slots=True)
class ComputedValues:
    """The results of a query over rows.

    :param rows: for each result the place of its row, in ascending order; None if each row has exactly one
    :param columns: the columns of the results
    """

    rows: Places | None
    columns: pa.Table


def table_of(columns: Mapping[str, ArrowColumn], rows: int) -> pa.Table:
    """Return a table of some columns, which has its number of rows also without any.

    >>> table_of({}, 3).num_rows
    3

    :param columns: the columns
    :param rows: the number of rows
    """
    return pa.table({**columns, WEIGHT: pa.array(np.zeros(rows, np.int64))}).drop_columns([WEIGHT])


def compute_values(query: RowQuery, rows: pa.Table, context: Context) -> ComputedValues:
    """Return the results of a query over rows.

    :param query: the query
    :param rows: the columns that it reads
    :param context: the context that runs queries
    :raises Declined: if there are too many rows or results, or a job would be needed for many rows
    """
    return first_accepted(lambda: _compute_in_driver(query, rows, context), lambda: _compute_at_once(query, rows, context))


def _compute_in_driver(query: RowQuery, rows: pa.Table, context: Context) -> ComputedValues:
    """Return the results by plans that run in the driver, of distinct rows where there are few."""
    if query.may_grow or rows.num_rows > context.limits.driver_rows:
        raise TooMuch("results or rows")
    distinct = None if rows.num_rows <= _FEW else distinct_rows(rows)
    if distinct is None:
        return _compute_in_pieces(query, rows, context)
    return _expand(_compute_in_pieces(query, distinct.rows, context), distinct, context.limits.driver_bytes)


def _compute_at_once(query: RowQuery, rows: pa.Table, context: Context) -> ComputedValues:
    """Return the results by one query of one task."""
    if rows.num_rows > context.limits.small_input or rows.nbytes > context.limits.small_bytes:
        raise TooMuch("rows for one task")
    # The batch that the query names lives until the query has run.
    batch = _number_rows(rows, query.schema)
    text = query.text(batch)
    table = context.collect_bounded(text, Mode.SMALL) if query.may_grow else context.collect(text, Mode.SMALL)
    return _by_place(table, rows.num_rows)


def _compute_in_pieces(query: RowQuery, rows: pa.Table, context: Context) -> ComputedValues:
    """Return the results piece by piece, by several threads.

    :raises Declined: if this needs a job, or takes too many bytes
    """
    pieces = list(_split_to_pieces(rows.num_rows, _piece_rows(rows, context)))
    group = group_of_this_thread()

    def evaluate(lane: int) -> list[pa.Table]:
        # Join the job group of the step, by which it is cancelled.
        enter_group(group)
        return _evaluate_pieces(query, rows, pieces[lane::_LANES], lane, context)

    lanes = range(min(_LANES, len(pieces)))
    tables = [evaluate(0)] if len(lanes) == 1 else _run_lanes(evaluate, lanes)
    in_order = [tables[at % _LANES][at // _LANES] for at in range(len(pieces))]
    return _by_place(pa.concat_tables(in_order), rows.num_rows)


def _piece_rows(rows: pa.Table, context: Context) -> int:
    """Return the number of rows of a piece: at most what fits into a leaf, and so few that each thread has some."""
    count = int(rows.num_rows)
    most = max(1, context.limits.plans.piece_bytes // (8 + int(rows.nbytes) // max(1, count)))
    return most if count < _SHARED else min(most, -(-count // _LANES))


def _evaluate_pieces(query: RowQuery, rows: pa.Table, pieces: Sequence[range], lane: int, context: Context) -> list[pa.Table]:
    """Return the results for each of some pieces, with the places of their rows."""
    room, tables = Budget(context.limits.driver_bytes // _LANES), []
    for piece in pieces:
        batch = _number_rows(rows.slice(piece.start, len(piece)), query.schema, piece.start)
        values = context.batch_views.result_in_driver(query.text(batch), room.left, lane)
        if values is None:
            raise Declined("the query needs a job, or its result takes too many bytes")
        room.spend(values.rows.nbytes)
        tables.append(values.rows)
    return tables


def _run_lanes(evaluate: Callable[[int], list[pa.Table]], lanes: range) -> list[list[pa.Table]]:
    """Return the result of each lane.

    If one fails, its error is raised after the others have ended, so that nothing goes on after the step.
    """
    futures = [_threads.submit(evaluate, lane) for lane in lanes]
    wait(futures)
    return [future.result() for future in futures]


def _split_to_pieces(rows: int, size: int) -> Iterator[range]:
    """Yield the places of rows in pieces of one size; one empty piece if there are no rows."""
    for start in range(0, max(1, rows), size):
        yield range(start, min(start + size, rows))


def _number_rows(rows: pa.Table, schema: StructType, first: int = 0) -> Batch:
    """Return the rows as a batch, with their places instead of the weight.

    :param rows: the rows
    :param schema: the Spark types of their columns
    :param first: the place of the first row
    """
    fields = {field.name: field for field in schema.fields}
    table = rows.append_column(WEIGHT, pa.array(np.arange(first, first + rows.num_rows)))
    return Batch(weighted(StructType([fields[name] for name in rows.column_names])), rows.num_rows, table)


def _by_place(results: pa.Table, rows: int) -> ComputedValues:
    """Return the results of a query over numbered rows.

    :param results: the result of the query
    :param rows: the number of rows
    """
    places: Places = results[WEIGHT].to_numpy()
    if (places[1:] < places[:-1]).any():
        results = results.take(pa.array(np.argsort(places, kind="stable")))
        places = results[WEIGHT].to_numpy()
    columns = results.drop_columns([WEIGHT])
    if len(places) == rows and (places == np.arange(rows)).all():
        return ComputedValues(None, columns)
    return ComputedValues(places, columns)


def _expand(values: ComputedValues, distinct: DistinctRows, most_bytes: int) -> ComputedValues:
    """Return the results for all rows, given those for the distinct ones.

    :raises TooMuch: if they take more bytes than allowed
    """
    rows, places = None, distinct.places
    if values.rows is not None:
        # The results of each distinct row are next to each other in this order.
        order = np.argsort(values.rows, kind="stable")
        counts = np.bincount(values.rows, minlength=distinct.rows.num_rows)
        first = np.cumsum(counts) - counts
        each = counts[distinct.places]
        ends = np.cumsum(each)
        rows = np.repeat(np.arange(len(distinct.places)), each)
        places = order[np.repeat(first[distinct.places] - (ends - each), each) + np.arange(len(rows))]
    Budget(most_bytes).spend(sum(_estimate_bytes(column, places) for column in values.columns.columns))
    return ComputedValues(rows, values.columns.take(pa.array(places)))


def _estimate_bytes(column: pa.ChunkedArray, places: Places) -> int:
    """Return the approximate size in bytes of the values of a column at some places."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy()
        return int(lengths[places].sum(dtype=np.int64)) + 4 * len(places)
    return int(column.nbytes) * len(places) // max(1, len(column))
