"""Evaluation of a block's expressions over many rows in memory, by Spark plans that run in the driver.

Many rows have few distinct values: a function of a few columns is evaluated once for each combination of their values. The rest is
evaluated piece by piece, by as many threads as there are cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.operators.context import Context
from airflow_pipelines.engine.operators.distinct_rows import DistinctRows, Places, distinct_rows
from airflow_pipelines.engine.spark.driver_tasks import enter_group, group_of_this_thread
from airflow_pipelines.sql.plan.ir.computed_columns import ComputedColumns
from airflow_pipelines.sql.plan.ir.linear import Select
from airflow_pipelines.sql.plan.ir.version import Version

_FEW: Final = 2_000
"""The number of rows that are evaluated in less time than it takes to look for equal ones."""
_LANES: Final = min(4, os.cpu_count() or 1)
_SHARED: Final = 4_000
"""The number of rows below which a second thread is not worthwhile."""

_threads = ThreadPoolExecutor(_LANES, "evaluating expressions")


@dataclass(frozen=True, slots=True)
class ComputedValues:
    """The computed values of a block.

    :param rows: for each output row the place of its input row, in order; None if each input row has exactly one
    :param columns: the computed columns
    """

    rows: Places | None
    columns: pa.Table


def computed_values(split: ComputedColumns, block: Select, rows: Batch, context: Context) -> ComputedValues | None:
    """Compute the values of a block for many rows.

    :param split: a block over a relation, with the columns that it computes
    :param block: the part of it that computes
    :param rows: rows of the relation, in memory
    :param context: the context that runs queries
    :returns: the values; None if this needs a job, or there are too many values
    """
    if split.may_grow or rows.rows > context.limits.computed_rows:
        return None
    read = rows.to_arrow().select(list(split.read))
    work = _Work(split, block, rows.schema, context)
    distinct = None if rows.rows <= _FEW else distinct_rows(read)
    if distinct is None:
        return work.values(read)
    values = work.values(distinct.rows)
    return None if values is None else _expand(values, distinct, context.limits.computed_bytes)


@dataclass(frozen=True, slots=True)
class _Work:
    """A block over a relation with some columns, and the means to evaluate it."""

    split: ComputedColumns
    block: Select
    schema: StructType
    context: Context

    def values(self, rows: pa.Table) -> ComputedValues | None:
        """Compute the values of the block for some rows. Return None if this needs a job, or takes too many bytes."""
        pieces = list(_pieces(rows.num_rows, self._piece_rows(rows)))
        group = group_of_this_thread()

        def evaluate(lane: int) -> list[pa.Table] | None:
            # Join the job group of the step, by which it is cancelled.
            enter_group(group)
            return self._evaluate_pieces(rows, pieces[lane::_LANES], lane)

        lanes = range(min(_LANES, len(pieces)))
        results = [evaluate(0)] if len(lanes) == 1 else _run_lanes(evaluate, lanes)
        tables = [each for each in results if each is not None]
        if len(tables) < len(results):
            return None
        in_order = [tables[at % _LANES][at // _LANES] for at in range(len(pieces))]
        return by_place(pa.concat_tables(in_order), rows.num_rows)

    def _piece_rows(self, rows: pa.Table) -> int:
        """Return the number of rows of a piece: at most what fits into a leaf, and so few that each thread has some."""
        count = int(rows.num_rows)
        most = max(1, self.context.limits.piece_bytes // (8 + int(rows.nbytes) // max(1, count)))
        return most if count < _SHARED else min(most, -(-count // _LANES))

    def _evaluate_pieces(self, rows: pa.Table, pieces: Sequence[range], lane: int) -> list[pa.Table] | None:
        """Return the values of the block for each of some pieces, with the rows' places instead of the weight."""
        room, tables = self.context.limits.computed_bytes // _LANES, []
        for piece in pieces:
            batch = numbered(rows.slice(piece.start, len(piece)), self.schema, piece.start)
            query = str(self.context.over(self.split.relation, batch).contents(self.block, Version.DELTA))
            values = self.context.batch_views.result_in_driver(query, room, lane)
            if values is None:
                return None
            room -= values.rows.nbytes
            tables.append(values.rows)
        return tables


def _run_lanes(evaluate: Callable[[int], list[pa.Table] | None], lanes: range) -> list[list[pa.Table] | None]:
    """Return the result of each lane.

    If one fails, its error is raised after the others have ended, so that nothing goes on after the step.
    """
    futures = [_threads.submit(evaluate, lane) for lane in lanes]
    wait(futures)
    return [future.result() for future in futures]


def _pieces(rows: int, size: int) -> Iterator[range]:
    """Yield the places of rows in pieces of one size; one empty piece if there are no rows."""
    for start in range(0, max(1, rows), size):
        yield range(start, min(start + size, rows))


def numbered(rows: pa.Table, schema: StructType, first: int = 0) -> Batch:
    """Return the rows as a batch, with their places instead of the weight.

    :param rows: some columns of rows of a relation
    :param schema: the relation's columns
    :param first: the place of the first row
    """
    fields = {field.name: field for field in schema.fields}
    table = rows.append_column(WEIGHT, pa.array(np.arange(first, first + rows.num_rows)))
    return Batch(weighted(StructType([fields[name] for name in rows.column_names])), rows.num_rows, table)


def by_place(computed: pa.Table, rows: int) -> ComputedValues:
    """Return the values that a query over :func:`numbered` rows has computed.

    :param computed: the result of the query
    :param rows: the number of rows
    """
    places: Places = computed[WEIGHT].to_numpy()
    columns = computed.drop_columns([WEIGHT])
    if len(places) == rows and (places == np.arange(rows)).all():
        return ComputedValues(None, columns)
    return ComputedValues(places, columns)


def _expand(values: ComputedValues, distinct: DistinctRows, most_bytes: int) -> ComputedValues | None:
    """Expand the values of distinct rows to all rows. Return None if they take more bytes than allowed."""
    rows, places = None, distinct.places
    if values.rows is not None:
        place_of = np.full(distinct.rows.num_rows, -1)
        place_of[values.rows] = np.arange(len(values.rows))
        places = place_of[distinct.places]
        rows = np.flatnonzero(places >= 0)
        places = places[rows]
    if sum(_estimate_bytes(column, places) for column in values.columns.columns) > most_bytes:
        return None
    return ComputedValues(rows, values.columns.take(pa.array(places)))


def _estimate_bytes(column: pa.ChunkedArray, places: Places) -> int:
    """Return the approximate size in bytes of the values of a column at some places."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy()
        return int(lengths[places].sum(dtype=np.int64)) + 4 * len(places)
    return int(column.nbytes) * len(places) // max(1, len(column))
