"""Recomputation of touched groups in the driver, from all of their rows. Spark only evaluates expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.outcome import struct_of
from airflow_pipelines.engine.execution.ways import Budget, Declined
from airflow_pipelines.engine.operators.column_totals import ColumnTotals, column_totals
from airflow_pipelines.engine.operators.group_outputs import output_delta
from airflow_pipelines.engine.operators.lookup_join.matching import (
    distinct_rows,
    limits_of_groups,
    matching_batch,
    matching_table,
)
from airflow_pipelines.engine.operators.merged_groups import merged_groups
from airflow_pipelines.engine.operators.passed_deltas import passed_delta
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.zsets import WEIGHT, Merge, can_group, consolidate, consolidate_groupable
from airflow_pipelines.sql.plan.ir.aggregate import Accumulator, Aggregate
from airflow_pipelines.sql.plan.ir.expression import Expression, columns_in
from airflow_pipelines.sql.plan.ir.passed_rows import PassedRows
from airflow_pipelines.sql.plan.ir.stage import Stage


def change_of_groups(stage: Stage, node: Aggregate, known: Trace, context: Context) -> Batch:
    """Return the change of the output rows of the groups that a step touches.

    :param stage: the aggregate's stage
    :param node: the aggregate
    :param known: the output rows before the step, with the keys of their groups
    :param context: the context with the input's rows
    :returns: rows of ``known``
    :raises Declined: if keys are expressions, calls do not follow from accumulators, there is HAVING, or there are too many rows
    """
    if node.over_rows is None or node.having is not None:
        raise Declined("the calls do not follow from accumulators over the rows of a group")
    whole = replace(node, calls=node.over_rows.calls, accumulators=node.over_rows.accumulators)
    totals = ColumnTotals.of(whole)
    if totals is None or totals.relation is None or not all(key in totals.columns for key in totals.keys):
        raise Declined("the keys are not columns of a relation")
    if len(set(totals.keys)) < len(totals.keys):
        raise Declined("two keys are the same column")
    passed = PassedRows(totals.relation, totals.columns)
    names = dict(zip((key.name for key in node.keys), totals.keys, strict=True))
    changed = _collect_changed_rows(passed, [*names.values(), *_values(totals)], context)
    groups = distinct_rows({key: changed[column] for key, column in names.items()})
    rows = _find_rows(passed, groups, names, changed, context)
    stored = matching_batch(known.batches, known.schema, groups, limits_of_groups(known.batches, context.limits))
    if all(accumulator.merge is not Merge.SUM for accumulator in whole.accumulators):
        rows = _to_unit_weights(rows)
    fresh = _compute_output_rows(whole, stage, totals, rows, known.schema, context)
    gone = stored.to_arrow()
    gone = gone.set_column(gone.num_columns - 1, fresh.schema.field(WEIGHT), pc.negate(gone[WEIGHT]))
    return context.spill_if_large(Batch.in_memory(known.schema, consolidate(pa.concat_tables([fresh, gone]))))


def _values(totals: ColumnTotals) -> list[str]:
    """Return the columns that accumulators read."""
    return columns_in([text for _, text in totals.totals if text is not None], totals.columns)


def _collect_changed_rows(passed: PassedRows, columns: Sequence[str], context: Context) -> pa.Table:
    """Return some columns of the inserted and deleted rows.

    :raises Declined: if there are none or too many
    """
    parts, budget = list[pa.Table](), Budget(context.limits.driver_rows)
    for part in passed_delta(passed, list(dict.fromkeys(columns)), context):
        budget.spend(part.num_rows)
        parts.append(part)
    if not parts:
        raise Declined("no row has changed")
    return pa.concat_tables(parts)


def _find_rows(passed: PassedRows, groups: pa.Table, names: Mapping[str, str], changed: pa.Table, context: Context) -> Batch:
    """Return the rows of some groups after the step.

    :param groups: the keys by their names
    :param names: the columns of the changed rows by the names of the keys
    :raises Declined: if they cannot be looked up
    """
    before = context.relations[passed.relation].before
    rows = changed
    if any(batch.rows for batch in before.batches):
        wanted = groups.rename_columns([passed.columns[names[key]] for key in groups.column_names])
        columns = [passed.columns[name] for name in changed.column_names if name != WEIGHT]
        limits = limits_of_groups(before.batches, context.limits)
        matches = matching_table(before.batches, wanted, [*dict.fromkeys(columns), WEIGHT], limits)
        stored = pa.table([*(matches[column] for column in columns), matches[WEIGHT]], names=changed.column_names)
        rows = pa.concat_tables([stored, changed])
    if not can_group(rows.drop_columns([WEIGHT]).schema):
        raise Declined("Arrow does not group rows of these types")
    types = {field.name: field.dataType for field in before.schema.fields}
    kinds = StructType([StructField(name, types[passed.columns[name]]) for name in rows.column_names if name != WEIGHT])
    return Batch.in_memory(weighted(kinds), consolidate_groupable(rows))


def _to_unit_weights(rows: Batch) -> Batch:
    """Return each row once, because extremes do not depend on the number of copies."""
    table = rows.to_arrow()
    ones = pa.array(np.ones(table.num_rows, np.int64))
    return Batch.in_memory(rows.schema, table.set_column(table.num_columns - 1, WEIGHT, ones))


def _compute_output_rows(
    node: Aggregate, stage: Stage, totals: ColumnTotals, rows: Batch, schema: StructType, context: Context
) -> pa.Table:
    """Return the keys and output rows of all groups of some rows."""
    columns = [(key.name, kind) for key, kind in zip(node.keys, node.key_types, strict=True)]
    columns += [(accumulator.name, accumulator.type) for accumulator in node.accumulators]
    kept = weighted(struct_of(tuple(columns)))
    own = replace(totals, relation=None, columns={name: name for name in rows.to_arrow().column_names if name != WEIGHT})
    added = column_totals(own, (rows,), kept, context)
    names = [key.name for key in node.keys]
    groups = merged_groups(added, (), names, (*node.accumulators, Accumulator(WEIGHT, "BIGINT", Expression(WEIGHT))))
    shown = output_delta(stage, node, groups, kept, context, had_output=False)
    # Every group is shown, and the order is the same.
    values = [*(added.to_arrow()[name] for name in names), *shown.columns]
    return pa.table(values, schema=arrow_schema(schema))
