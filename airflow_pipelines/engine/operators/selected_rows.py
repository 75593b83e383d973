"""Evaluates a block over rows of one relation in memory. Spark gets only the columns that it needs to compute others.

To move a column to the JVM and back costs more than most expressions do. So what a block passes on is taken from the Arrow table as
it is. Where rows are filtered or unnested, Spark says by their numbers which ones are left.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.operators.context import Context, Mode
from airflow_pipelines.sql.plan.ir.computed_columns import ComputedColumns, computed_columns
from airflow_pipelines.sql.plan.ir.linear import Linear, Select
from airflow_pipelines.sql.plan.ir.version import Version


def select_rows(node: Linear, rows: Batch, context: Context) -> pa.Table | None:
    """What a block gives for some rows of the relation that it reads.

    :param node: blocks with one source each over a relation
    :param rows: the rows, in the relation's columns
    :param context: runs queries
    :return: the block's columns in order and the weight; None where the block joins or adds relations, the rows are not in
        memory, or the block makes too many of them
    """
    split = computed_columns(node)
    if split is None or rows.table is None:
        return None
    passed = rows.table.select(list(dict.fromkeys([*split.passed.values(), WEIGHT])))
    if split.block is None:
        return _assembled(node, split, passed, None)
    computed = _computed(split, split.block, rows, context)
    if computed is None:
        return None
    return _assembled(node, split, _taken(passed, computed[WEIGHT]), computed)


def _computed(split: ComputedColumns, block: Select, rows: Batch, context: Context) -> pa.Table | None:
    """What Spark computes, with the number of the row that it is computed for in the place of the weight."""
    fields = {field.name: field for field in rows.schema.fields}
    numbers = pa.array(np.arange(rows.rows))
    read = rows.to_arrow().select(list(split.read)).append_column(WEIGHT, numbers)
    numbered = Batch(weighted(StructType([fields[name] for name in split.read])), rows.rows, read)
    query = str(context.over(split.relation, numbered).contents(block, Version.DELTA))
    return context.collect_bounded(query, Mode.SMALL) if split.may_grow else context.collect(query, Mode.SMALL)


def _taken(table: pa.Table, numbers: pa.ChunkedArray) -> pa.Table:
    """The rows of a table with some numbers."""
    wanted = numbers.to_numpy()
    if len(wanted) == table.num_rows and (wanted == np.arange(table.num_rows)).all():
        return table
    return table.take(pa.array(wanted))


def _assembled(node: Linear, split: ComputedColumns, passed: pa.Table, computed: pa.Table | None) -> pa.Table:
    columns = {name: passed[column] for name, column in split.passed.items()}
    if computed is not None:
        columns |= {name: computed[name] for name in computed.column_names if name != WEIGHT}
    return pa.table([*(columns[name] for name in node.columns), passed[WEIGHT]], names=[*node.columns, WEIGHT])
