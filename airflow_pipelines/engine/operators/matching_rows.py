"""The search for the rows of a trace that equal given rows in some columns: by an index, in memory, or with Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.batch_views import consolidated_sql
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.ways import Declined, first_accepted
from airflow_pipelines.engine.lookup.index import can_look_up
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows, matching_table
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.spark_types import has_map, has_variant
from airflow_pipelines.rows.zsets import Merge, can_group, consolidate_groupable

_WANTED = "__wanted"
INDEXED = 3
"""The number of columns by which whole rows are looked up; the others are compared afterwards."""


def matching_rows(trace: Trace, wanted: pa.Table, names: Sequence[str], context: Context, indexed: int = INDEXED) -> pa.Table:
    """Return the consolidated rows of a trace that are equal to a row of ``wanted`` in the columns ``names`` (NULL equals NULL).

    :param trace: the trace
    :param wanted: distinct rows that have the columns ``names``
    :param names: the columns, the most selective ones first
    :param context: the context that runs queries
    :param indexed: the number of columns by which rows are looked up; the others are compared afterwards
    :returns: the trace's columns with weights, none of which is 0
    """
    arrow = arrow_schema(trace.schema)
    if not trace.batches or wanted.num_rows == 0:
        return arrow.empty_table()
    columns = pa.schema([arrow.field(name) for name in trace.keys])
    if trace.in_memory and trace.rows <= context.limits.small_input and can_group(columns):
        return _find_in_memory(pa.concat_tables([batch.table for batch in trace.batches]), wanted, list(names), trace.merges)
    return first_accepted(
        lambda: _find_by_index(trace, wanted, list(names), indexed, context),
        lambda: _find_by_spark(trace, wanted, names, context),
    )


def _find_by_index(trace: Trace, wanted: pa.Table, names: list[str], most: int, context: Context) -> pa.Table:
    """Return the rows by their indexed columns; the others are compared afterwards."""
    indexed = indexed_columns(wanted.select(names).schema, most)
    arrow = arrow_schema(trace.schema)
    if not indexed or not can_group(pa.schema([arrow.field(name) for name in trace.keys])):
        raise Declined("a type has no index, or Arrow does not group by it")
    columns = [*trace.keys, *trace.merges]
    rows = matching_table(trace.batches, distinct_rows({name: wanted[name] for name in indexed}), columns, context.limits)
    return consolidate_groupable(rows, trace.merges) if indexed == names else _find_in_memory(rows, wanted, names, trace.merges)


def indexed_columns(names: pa.Schema, most: int) -> list[str]:
    """Return the columns by which rows are looked up. The others are compared afterwards.

    :param names: the columns with their types, the most selective ones first
    :param most: the maximum number of these columns
    """
    return [column.name for column in names if can_look_up(column.type)][:most]


def _find_in_memory(stored: pa.Table, wanted: pa.Table, names: list[str], merges: Mapping[str, Merge]) -> pa.Table:
    if len(names) == 1 and wanted[names[0]].null_count == 0:
        rows = stored.filter(pc.is_in(stored[names[0]], value_set=wanted[names[0]].combine_chunks()))
        return consolidate_groupable(rows, merges)
    # Unlike pyarrow's joins, grouping treats NULL as equal to NULL.
    both = pa.concat_tables(
        [
            _append_wanted(stored.select(names), range(stored.num_rows)),
            _append_wanted(wanted.select(names).cast(stored.select(names).schema), [-1] * wanted.num_rows),
        ]
    )
    groups = both.group_by(names, use_threads=False).aggregate([(_WANTED, "min"), (_WANTED, "list")])
    hits = groups.filter(pc.equal(groups[f"{_WANTED}_min"], -1))
    positions = pc.list_flatten(hits[f"{_WANTED}_list"])
    return consolidate_groupable(stored.take(positions.filter(pc.greater_equal(positions, 0))), merges)


def _append_wanted(rows: pa.Table, values: Sequence[int]) -> pa.Table:
    return rows.append_column(_WANTED, pa.array(values, pa.int64()))


def _find_by_spark(trace: Trace, wanted: pa.Table, names: Sequence[str], context: Context) -> pa.Table:
    small = trace.in_memory and trace.rows + wanted.num_rows <= context.limits.small_input
    fields = [field for field in trace.schema.fields if field.name in names] + [trace.schema.fields[-1]]
    keys = wanted.select([field.name for field in fields if field.name != WEIGHT])
    batch = Batch.in_memory(type(trace.schema)(fields), keys.append_column(WEIGHT, pa.array([1] * keys.num_rows, pa.int64())))
    batch = context.spill_if_large(batch)
    stored = context.batch_views.rows(trace.batches, single_partition=small)
    if any(_is_incomparable(type_text(field.dataType)) for field in fields):
        given = ", ".join(quote(name) if name in names else "NULL" for name in trace.keys)
        zeros = ", ".join(["0"] * len(trace.merges))
        both = (
            f"SELECT *, 0 AS {_WANTED} FROM {stored} UNION ALL SELECT {given}, {zeros}, 1 FROM {context.batch_views.table(batch)}"
        )
        # Values that Spark cannot compare can be grouped. No key has such a type, so ``names`` are all columns here.
        query = consolidated_sql(trace, f"({both})", f"<> 0 AND MAX({_WANTED}) = 1")
        return context.run(query, trace.schema, Mode.SMALL if small else Mode.LARGE, may_grow=True).to_arrow()
    match = " AND ".join(f"s.{quote(name)} <=> t.{quote(name)}" for name in names)
    few = batch.is_small(context.limits)
    hint = "/*+ BROADCAST(t) */ " if few and not small else ""
    rows = f"(SELECT {hint}s.* FROM {stored} AS s LEFT SEMI JOIN {context.batch_views.table(batch)} AS t ON {match})"
    narrow = Mode.NARROW if few else Mode.LARGE
    result = context.run(consolidated_sql(trace, rows), trace.schema, Mode.SMALL if small else narrow, may_grow=True)
    return result.to_arrow()


def _is_incomparable(kind: str) -> bool:
    """Return True if Spark has no null-safe equality for a type or a part of it."""
    return has_map(kind) or has_variant(kind)
