"""Evaluation of a block over rows of one relation in memory. Spark gets only the columns that it needs to compute others.

Moving a column to the JVM and back costs more than most expressions. So columns that a block passes on are taken directly from the
Arrow table. If rows are filtered or unnested, Spark returns the numbers of the remaining ones.
"""

from __future__ import annotations

import pyarrow as pa

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.execution.arrow_conditions import can_decide, holds
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.row_queries import RowQuery, compute_values
from airflow_pipelines.engine.execution.ways import Declined, first_accepted
from airflow_pipelines.sql.plan.ir.computed_columns import ComputedColumns, computed_columns
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select
from airflow_pipelines.sql.plan.ir.version import Version


def select_rows(node: Linear, rows: Batch, context: Context) -> pa.Table:
    """Return the result of a block for some rows of the relation that it reads.

    :param node: blocks with one source each over a relation
    :param rows: the rows, in the relation's columns
    :param context: the context that runs queries
    :returns: the block's columns in order and the weight
    :raises Declined: if the block joins or adds relations, the rows are not in memory, or the block returns too many of them
    """
    split = computed_columns(node)
    if split is None or rows.table is None:
        raise Declined("the block reads several relations, or files")
    passed = rows.table.select(list(dict.fromkeys([*split.passed.values(), WEIGHT])))
    block = split.block
    if block is None:
        return _assemble(node, split, passed, None)
    return first_accepted(
        lambda: _filter(node, split, rows, passed),
        lambda: _compute(node, split, block, rows, passed, context),
    )


def _filter(node: Linear, split: ComputedColumns, rows: Batch, passed: pa.Table) -> pa.Table:
    """Return the rows for which the conditions of a block hold, by Arrow.

    :param split: the block that does more than pass columns on
    :param rows: the rows of the relation
    :param passed: the columns of the rows that are passed on
    :raises Declined: if Spark is needed
    """
    if not isinstance(node, Select) or split.block is None or split.block.items or node.laterals or rows.table is None:
        raise Declined("the block computes")
    source, graph = node.sources[0], node.join_graph
    if not isinstance(source.node, Scan) or not graph.is_complete or not graph.conjuncts:
        raise Declined("the conditions are not those of one block")
    kinds = {(source.alias, field.name): field.dataType for field in rows.schema.fields}
    if not all(can_decide(conjunct, kinds) for conjunct in graph.conjuncts):
        raise Declined("Arrow does not decide the conditions as Spark does")
    columns = frozenset().union(*(conjunct.columns for conjunct in graph.conjuncts))
    kept = passed.filter(pa.array(holds(graph.conjuncts, {column: rows.table[column[1]] for column in columns})))
    return _assemble(node, split, kept, None)


def _compute(node: Linear, split: ComputedColumns, block: Select, rows: Batch, passed: pa.Table, context: Context) -> pa.Table:
    """Return the rows of a block whose columns, conditions or unnested values Spark computes."""
    query = RowQuery(
        lambda batch: str(context.over(split.relation, batch).contents(block, Version.DELTA)), rows.schema, split.may_grow
    )
    computed = compute_values(query, rows.to_arrow().select(list(split.read)), context)
    kept = passed if computed.rows is None else passed.take(pa.array(computed.rows))
    return _assemble(node, split, kept, computed.columns)


def _assemble(node: Linear, split: ComputedColumns, passed: pa.Table, computed: pa.Table | None) -> pa.Table:
    columns = {name: passed[column] for name, column in split.passed.items()}
    if computed is not None:
        columns |= {name: computed[name] for name in computed.column_names if name != WEIGHT}
    return pa.table([*(columns[name] for name in node.columns), passed[WEIGHT]], names=[*node.columns, WEIGHT])
