"""Consolidation of equal rows: in a delta before it is published, and across the batches of a trace when there are many."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.batch_views import consolidated_sql
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.flat_structs import can_group_flat, with_structs, without_structs
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.zsets import WEIGHT, consolidate, consolidate_groupable, merge_groupable
from airflow_pipelines.sql.values import canonical_form


def without_cancelled(delta: Batch, context: Context) -> Batch:
    """Return the delta without rows whose weights cancel out."""
    if delta.insert_only or delta.rows == 0:
        return delta
    if delta.table is not None:
        return context.spill_if_large(Batch.in_memory(delta.schema, consolidate(delta.table)))
    query = consolidated_sql(Trace(delta.schema), context.batch_views.table(delta))
    return context.run(query, delta.schema, Mode.LARGE)


def compact_trace(trace: Trace, context: Context) -> Batch:
    """Return all rows of a trace, consolidated in one batch."""
    keys = pa.schema([column for column in arrow_schema(trace.schema) if column.name not in trace.merges])
    if trace.in_memory and trace.insert_only and trace.adds_up_weights_only and not trace.is_small(context.limits):
        # Kept in their order, the rows need no sorting, either now or by readers.
        table = pa.concat_tables([batch.table for batch in trace.batches]).combine_chunks()
        return context.spill_if_large(Batch.in_memory(trace.schema, table))
    if trace.in_memory and can_group_flat(keys):
        table = pa.concat_tables([batch.table for batch in trace.batches])
        merge = consolidate_groupable if trace.drops_zeros else merge_groupable
        merged = merge(without_structs(table, trace.merges), trace.merges)
        return context.spill_if_large(Batch.in_memory(trace.schema, with_structs(merged, table.schema, trace.merges)))
    small = trace.is_small(context.limits)
    if trace.insert_only and trace.adds_up_weights_only and not small:
        # Kept in their order, the rows need no sorting, either now or by readers.
        return context.run(f"SELECT * FROM {context.batch_views.rows(trace.batches)}", trace.schema, Mode.LARGE)
    rows = context.batch_views.rows(trace.batches, single_partition=small)
    return context.run(consolidated_sql(trace, str(rows)), trace.schema, Mode.SMALL if small else Mode.LARGE)


def replacing(trace: Trace, rows: Batch, context: Context) -> Batch:
    """Return the delta that turns the contents of a relation into other rows. Rows that are in both are not in it.

    :param trace: the current contents
    :param rows: the new contents
    :param context: the context that runs queries
    """
    if not trace.batches:
        return rows
    if trace.in_memory:
        gone = tuple(Batch.in_memory(trace.schema, _negate(batch.table)) for batch in trace.batches)
        return compact_trace(Trace(trace.schema, (*gone, rows)), context)
    names = ", ".join(quote(field.name) for field in trace.schema.fields[:-1])
    weight = quote(WEIGHT)
    both = f"SELECT {names}, -{weight} AS {weight} FROM {context.batch_views.rows(trace.batches)}"
    if rows.rows:
        both += f" UNION ALL SELECT {names}, {weight} FROM {context.batch_views.table(rows)}"
    return context.run(consolidated_sql(trace, f"({both})"), trace.schema, Mode.LARGE)


def _negate(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.num_columns - 1, rows.schema.field(WEIGHT), pc.negate(rows[WEIGHT]))


def in_canonical_form(trace: Trace, context: Context) -> Trace:
    """Return a trace with all values in canonical form, for one that was stored under another form or none."""
    kinds = {field.name: type_text(field.dataType) for field in trace.schema.fields}
    if not trace.batches or not any(map(canonical_form.has_several_forms, kinds.values())):
        return trace
    items = (f"{canonical_form.in_canonical_form(quote(name), kind)} AS {quote(name)}" for name, kind in kinds.items())
    rows = f"(SELECT {', '.join(items)} FROM {context.batch_views.rows(trace.batches)})"
    batch = context.run(consolidated_sql(trace, rows), trace.schema, Mode.LARGE)
    return replace(trace, batches=(batch,) if batch.rows else ())
