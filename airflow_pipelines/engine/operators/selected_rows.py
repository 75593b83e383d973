"""Evaluation of a block over rows of one relation in memory. Spark gets only the columns that it needs to compute others.

Moving a column to the JVM and back costs more than most expressions. So columns that a block passes on are taken directly from the
Arrow table. If rows are filtered or unnested, Spark returns the numbers of the remaining ones.
"""

from __future__ import annotations

import pyarrow as pa

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.operators.arrow_conditions import can_decide, holds
from airflow_pipelines.engine.operators.computed_values import ComputedValues, by_place, computed_values, numbered
from airflow_pipelines.engine.operators.context import Context, Mode
from airflow_pipelines.sql.plan.ir.computed_columns import ComputedColumns, computed_columns
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select
from airflow_pipelines.sql.plan.ir.version import Version


def select_rows(node: Linear, rows: Batch, context: Context) -> pa.Table | None:
    """Return the result of a block for some rows of the relation that it reads.

    :param node: blocks with one source each over a relation
    :param rows: the rows, in the relation's columns
    :param context: the context that runs queries
    :returns: the block's columns in order and the weight; None if the block joins or adds relations, the rows are not in memory, or
        the block makes too many of them
    """
    split = computed_columns(node)
    if split is None or rows.table is None:
        return None
    passed = rows.table.select(list(dict.fromkeys([*split.passed.values(), WEIGHT])))
    if split.block is None:
        return _assemble(node, split, passed, None)
    filtered = _filter(node, split, rows, passed)
    if filtered is not None:
        return _assemble(node, split, filtered, None)
    computed = computed_values(split, split.block, rows, context) or _compute_by_one_query(split, split.block, rows, context)
    if computed is None:
        return None
    return _assemble(node, split, passed if computed.rows is None else passed.take(pa.array(computed.rows)), computed.columns)


def _filter(node: Linear, split: ComputedColumns, rows: Batch, passed: pa.Table) -> pa.Table | None:
    """Return the passed columns of the rows for which a block's conditions hold, or None if Spark is needed.

    :param split: the block that does more than pass columns on
    :param rows: the rows of the relation
    :param passed: the columns of the rows that are passed on
    """
    if not isinstance(node, Select) or split.block is None or split.block.items or node.laterals or rows.table is None:
        return None
    source, graph = node.sources[0], node.join_graph
    if not isinstance(source.node, Scan) or not graph.is_complete or not graph.conjuncts:
        return None
    kinds = {(source.alias, field.name): field.dataType for field in rows.schema.fields}
    if not all(can_decide(conjunct, kinds) for conjunct in graph.conjuncts):
        return None
    columns = frozenset().union(*(conjunct.columns for conjunct in graph.conjuncts))
    return passed.filter(pa.array(holds(graph.conjuncts, {column: rows.table[column[1]] for column in columns})))


def _compute_by_one_query(split: ComputedColumns, block: Select, rows: Batch, context: Context) -> ComputedValues | None:
    """Compute the values of a block for a few rows by one query, or return None for many rows, and if it returns too many."""
    if rows.rows > context.limits.small_input or rows.memory_bytes > context.limits.small_bytes:
        return None
    read = numbered(rows.to_arrow().select(list(split.read)), rows.schema)
    query = str(context.over(split.relation, read).contents(block, Version.DELTA))
    table = context.collect_bounded(query, Mode.SMALL) if split.may_grow else context.collect(query, Mode.SMALL)
    return None if table is None else by_place(table, rows.rows)


def _assemble(node: Linear, split: ComputedColumns, passed: pa.Table, computed: pa.Table | None) -> pa.Table:
    columns = {name: passed[column] for name, column in split.passed.items()}
    if computed is not None:
        columns |= {name: computed[name] for name in computed.column_names if name != WEIGHT}
    return pa.table([*(columns[name] for name in node.columns), passed[WEIGHT]], names=[*node.columns, WEIGHT])
