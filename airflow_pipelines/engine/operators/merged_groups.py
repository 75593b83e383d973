"""The addition of a step's changes of groups to their stored accumulators, in the driver: sums and extremes in columns."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.ways import Budget, Declined
from airflow_pipelines.engine.lookup.index import Keys, Pairs, can_look_up, file_index, memory_index
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.zsets import Merge
from airflow_pipelines.sql.plan.ir.aggregate import Accumulator

_GROUP = "__group"
_MOST_WHOLE = 2**63 - 1
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class MergedGroups:
    """The groups of a change. All columns have one value for each group.

    :param keys: the key columns by name
    :param before: the accumulators before the change, including the weight
    :param after: the accumulators after the change
    """

    keys: Mapping[str, ArrowColumn]
    before: Mapping[str, ArrowColumn]
    after: Mapping[str, ArrowColumn]


def merged_groups(
    change: Batch, stored: Sequence[Batch], keys: Sequence[str], accumulators: Sequence[Accumulator], most: int = sys.maxsize
) -> MergedGroups:
    """Return the groups of a change with their accumulators before and after it.

    :param change: the change, with each group once, in memory
    :param stored: the batches whose sum is the stored state of these groups and of others
    :param keys: the key columns
    :param accumulators: the other columns, including the weight
    :param most: the maximum number of stored rows of the groups, as estimated from the numbers of rows
    :raises Declined: if there are no keys, they cannot be looked up, too much could be stored, or a sum could be too large for its
        type, which Spark then handles
    """
    schema = arrow_schema(change.schema)
    rows = change.to_arrow()
    if not keys or not all(_can_look_up(schema.field(name).type) for name in keys):
        raise Declined("the keys cannot be looked up")
    # A batch of a state has each group at most once.
    Budget(most).require(sum(min(change.rows, batch.rows) for batch in stored))
    names = [accumulator.name for accumulator in accumulators]
    wanted = Keys.of(rows.select(list(keys)))
    kinds = pa.schema([schema.field(name) for name in names])
    parts = [pairs for batch in stored if batch.rows for pairs in _find_stored(batch, wanted)]
    tables = [
        pa.table([part.column(name).take(pa.array(part.stored)) for name in names], names=names).cast(kinds) for part in parts
    ]
    old = pa.concat_tables([kinds.empty_table(), *tables])
    places = np.concatenate([np.zeros(0, np.int64), *(part.asked for part in parts)])
    sums = [accumulator.name for accumulator in accumulators if accumulator.merge is Merge.SUM]
    if not all(_has_room(table[name], rows.num_rows + old.num_rows) for name in sums for table in (rows, old)):
        raise Declined("a sum may be too large for its type")
    own = np.arange(rows.num_rows)
    before = _totals(old, places, rows.num_rows, accumulators, schema)
    both = pa.concat_tables([rows.select(names), old])
    after = _totals(both, np.concatenate([own, places]), rows.num_rows, accumulators, schema)
    return MergedGroups({name: rows[name] for name in keys}, before, after)


def _can_look_up(kind: pa.DataType) -> bool:
    return all(can_look_up(field.type) for field in kind) if pa.types.is_struct(kind) else can_look_up(kind)


def _find_stored(batch: Batch, wanted: Keys) -> list[Pairs]:
    """Return the stored rows of some groups in a batch, as pairs."""
    any_number = Budget(sys.maxsize)
    if batch.table is not None:
        return [memory_index.pairs(batch.number, batch.table, wanted, any_number)]
    if batch.store is not None:
        return [file_index(batch.store).pairs(file, wanted, any_number) for file in batch.files]
    return []


def _totals(
    rows: pa.Table, places: npt.NDArray[np.int64], groups: int, accumulators: Sequence[Accumulator], schema: pa.Schema
) -> dict[str, ArrowColumn]:
    """Return the accumulators of all groups by their places. A sum of nothing is 0, and an extreme is NULL."""
    wanted = [(accumulator.name, accumulator.merge.value.lower()) for accumulator in accumulators]
    added = rows.append_column(_GROUP, pa.array(places)).group_by([_GROUP], use_threads=False).aggregate(wanted)
    at = np.full(groups, -1, np.int64)
    at[added[_GROUP].to_numpy()] = np.arange(added.num_rows)
    indices = pa.array(at, mask=at < 0)
    totals: dict[str, ArrowColumn] = {}
    for name, function in wanted:
        column = added[f"{name}_{function}"].take(indices)
        totals[name] = (column.fill_null(0) if function == "sum" else column).cast(schema.field(name).type)
    return totals


def _has_room(column: pa.ChunkedArray, rows: int) -> bool:
    """Return True if the sum of ``rows`` values like those of a column surely fits into its type."""
    extremes = pc.min_max(column).as_py()
    most = (10 ** (_MOST_DIGITS - column.type.scale) if pa.types.is_decimal(column.type) else _MOST_WHOLE) // max(rows, 1)
    # Arithmetic with these decimals would round.
    return all(value is None or -most < value < most for value in extremes.values())
