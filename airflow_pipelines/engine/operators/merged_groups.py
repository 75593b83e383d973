"""Adds what a step brings for groups to what is stored of them, in the driver: both are numbers and extremes in columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from airflow_pipelines.engine.arrow import WEIGHT, arrow_schema, can_group
from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.sql.plan.ir.aggregate import Accumulator
from airflow_pipelines.sql.plan.ir.merge import Merge

CHANGE, OLD, NEW = "__d", "__o", "__n"
_TOUCHED = "__touched"
_MOST_WHOLE = 2**63 - 1
_MOST_DIGITS = 38


def merged_groups(change: Batch, stored: Sequence[Batch], keys: Sequence[str], accumulators: Sequence[Accumulator]) -> Batch | None:
    """The groups of a change with their accumulators: the change, what they were, and what they become, each as a struct.

    :param change: each group once, in memory
    :param stored: batches in memory that add up to what was stored, of these groups and maybe of others
    :param keys: the columns that say which group it is
    :param accumulators: the others, the weight among them
    :returns: None without keys, where Arrow cannot group by one, and where a sum could be too large for its type: Spark knows what
        to do
    """
    names = [accumulator.name for accumulator in accumulators]
    schema = arrow_schema(change.schema)
    if not keys or not can_group([schema.field(name) for name in keys]):
        return None
    old = pa.concat_tables([batch.to_arrow().select([*keys, *names]) for batch in stored])
    new = change.to_arrow().select([*keys, *names])
    sums = [accumulator.name for accumulator in accumulators if accumulator.merge is Merge.SUM]
    if not all(_has_room(table[name], new.num_rows + old.num_rows) for name in sums for table in (old, new)):
        return None
    both = pa.concat_tables([_beside(new, names, CHANGE, OLD, touched=True), _beside(old, names, OLD, CHANGE, touched=False)])
    wanted = [(f"{part}{each.name}", each.merge.value.lower()) for part in (CHANGE, OLD, NEW) for each in accumulators]
    merged = both.group_by(list(keys), use_threads=False).aggregate([*wanted, (_TOUCHED, "max")])
    merged = merged.filter(merged[f"{_TOUCHED}_max"])
    columns = [merged[name] for name in keys]
    for part in (CHANGE, OLD, NEW):
        found = [_total(merged, part, accumulator, schema) for accumulator in accumulators]
        columns.append(pa.StructArray.from_arrays(found, names))
    of_group = StructType([field for field in change.schema.fields if field.name in names])
    fields = [*(change.schema[name] for name in keys), *(StructField(part, of_group) for part in (CHANGE, OLD, NEW))]
    ones = pa.array([1], pa.int64()).take(pa.array([0] * merged.num_rows, pa.int32()))
    return Batch.in_memory(weighted(StructType(fields)), pa.table([*columns, ones], [*keys, CHANGE, OLD, NEW, WEIGHT]))


def _beside(rows: pa.Table, names: Sequence[str], here: str, there: str, *, touched: bool) -> pa.Table:
    """Accumulators as one part of three: in their own place and in that of what groups become, and none in the third."""
    nothing = {name: pa.nulls(rows.num_rows, rows[name].type) for name in names}
    parts = {f"{here}{name}": rows[name] for name in names} | {f"{there}{name}": nothing[name] for name in names}
    parts |= {f"{NEW}{name}": rows[name] for name in names}
    ordered = [f"{part}{name}" for part in (CHANGE, OLD, NEW) for name in names]
    keys = [name for name in rows.column_names if name not in names]
    marks = pa.nulls(rows.num_rows, pa.bool_()).fill_null(touched)
    return pa.table([*(rows[name] for name in keys), *(parts[name] for name in ordered), marks], [*keys, *ordered, _TOUCHED])


def _total(merged: pa.Table, part: str, accumulator: Accumulator, schema: pa.Schema) -> pa.Array:
    """An accumulator of a part, merged; a sum of nothing is 0."""
    found = merged[f"{part}{accumulator.name}_{accumulator.merge.value.lower()}"].combine_chunks()
    return (found.fill_null(0) if accumulator.merge is Merge.SUM else found).cast(schema.field(accumulator.name).type)


def _has_room(column: pa.ChunkedArray, rows: int) -> bool:
    """Whether the sum of so many values as those of a column surely fits into its type."""
    extremes = pc.min_max(column).as_py()
    most = (10 ** (_MOST_DIGITS - column.type.scale) if pa.types.is_decimal(column.type) else _MOST_WHOLE) // max(rows, 1)
    # Arithmetic with these decimals would round.
    return all(value is None or -most < value < most for value in extremes.values())
