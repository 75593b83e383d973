"""The first rows per key of a source that never loses a row, computed from the known first rows and the new rows.

Stream processors call this an append-only top-k: the result is stored, not the source's rows.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import expanded_sql
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema
from airflow_pipelines.engine.execution.ways import Declined, TooMuch, first_accepted
from airflow_pipelines.engine.operators.lookup_join.fetch import delta_of
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows, matching_batch, same_kind
from airflow_pipelines.engine.operators.new_first_rows import change_of_first_rows
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.state import Kept
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.ir.to_sql import top_k_over

_WAS = "__was"
"""The name of the column with a row's place before the step."""


class AppendOnlyTopKOperator(Operator[AppendOnlyTopK]):
    """The operator that ranks the new rows among the known first rows of their keys."""

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`."""
        return _evaluate(self.stage, self.node, context, kept.contents or self._empty_contents())


def _evaluate(stage: Stage, node: AppendOnlyTopK, context: Context, stored: Trace) -> Outcome:
    """Return the delta of a top-k stage.

    :param stored: the stage's own contents before the step
    """
    return first_accepted(
        lambda: Outcome(context.spill_if_large(change_of_first_rows(node, stored, context)), consolidated=True),
        lambda: _query(stage, node, context, stored),
    )


def _query(stage: Stage, node: AppendOnlyTopK, context: Context, stored: Trace) -> Outcome:
    """Return the delta by a query that ranks the new rows among the stored ones."""
    schema = weighted(stage_schema(stage))
    source = delta_of(node.source, context)
    delta, mode = source.query, source.mode
    if delta is None:
        return Outcome(Batch.empty(schema), consolidated=True)
    if not stored.batches:
        return _first(node, delta, Trace(schema), context, mode)
    if mode is Mode.SMALL and context.is_few(stored.batches):
        return _small(stage, node, delta, stored, context, Mode.SMALL)
    return first_accepted(
        lambda: _near(stage, node, delta, stored, context, mode), lambda: _large(stage, node, delta, stored, context)
    )


def _small(stage: Stage, node: AppendOnlyTopK, delta: str, stored: Trace, context: Context, mode: Mode) -> Outcome:
    """Return the outcome for few new rows, by one query over them and the stored ones."""
    schema = weighted(stage_schema(stage))
    return Outcome(context.run(_change(node, delta, stored, context, mode), schema, mode, may_grow=True), consolidated=True)


def _near(stage: Stage, node: AppendOnlyTopK, delta: str, stored: Trace, context: Context, mode: Mode) -> Outcome:
    """Return the outcome for few new rows among many stored ones, of which those with the same keys are looked up."""
    if mode is Mode.LARGE:
        raise TooMuch("many new rows")
    rows = context.batch_bounded(delta, mode)
    # The batch that the query reads lives until the query has run.
    delta = f"SELECT * FROM {context.batch_views.table(rows)}"
    return first_accepted(
        lambda: _small(stage, node, delta, _look_up_stored(node, rows, stored, context), context, Mode.SMALL),
        lambda: _small(stage, node, delta, stored, context, Mode.NARROW),
    )


def _first(node: AppendOnlyTopK, delta: str, empty: Trace, context: Context, mode: Mode) -> Outcome:
    """Return the delta's first rows as the outcome, because nothing was stored before."""
    mode = Mode.SMALL if mode is Mode.SMALL else Mode.LARGE
    query = f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({_rank_sql(node, delta, context)})"
    return Outcome(context.run(query, empty.schema, mode, may_grow=True), consolidated=True)


def _large(stage: Stage, node: AppendOnlyTopK, delta: str, stored: Trace, context: Context) -> Outcome:
    """Return the outcome for many new rows. Only those that rank first among themselves are compared with the stored ones.

    Spark filters out most of them before it sorts.
    """
    own = ", ".join(quote(name) for name in node.source.columns)
    first = f"SELECT {own}, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({_rank_sql(node, delta, context)})"
    query = _change(node, first, stored, context, Mode.LARGE)
    return Outcome(context.run(query, weighted(stage_schema(stage)), Mode.LARGE), consolidated=True)


def _rank_sql(node: AppendOnlyTopK, delta: str, context: Context) -> str:
    """Return a query for the first rows of a delta of the source, and their places in it."""
    unit_weights = context.gains(node.source.reads)
    return top_k_over(node, expanded_sql(Trace(weighted(context.schema(node.source))), f"({delta})", insert_only=unit_weights))


def _look_up_stored(node: AppendOnlyTopK, rows: Batch, stored: Trace, context: Context) -> Trace:
    """Return the stored rows for the keys of some rows, perhaps with others.

    :raises Declined: if a scan is needed to find them
    """
    types = {column.name: type_text(column.dataType) for column in stored.schema.fields}
    wanted = {}
    for column, kind in zip(node.key_columns, node.key_types, strict=False):
        if column is not None and same_kind(types[column], kind):
            wanted[column] = rows.to_arrow()[column]
    if not wanted:
        raise Declined("no part of the key is a stored column")
    batch = matching_batch(stored.batches, stored.schema, distinct_rows(wanted), context.limits)
    return replace(stored, batches=(batch,) if batch.rows else ())


def _change(node: AppendOnlyTopK, delta: str, stored: Trace, context: Context, mode: Mode) -> str:
    """Return a query for the current first rows of the delta's keys less the stored ones.

    One exchange, by key, serves to consolidate the stored rows, to rank them among the new ones, and to net the changes. In the
    mode LARGE every row of the delta has the weight 1.
    """
    own = ", ".join(quote(name) for name in node.source.columns)
    place = quote(node.place)
    kind = type_text(stored.schema[node.place].dataType)
    parts = [f"SELECT {own}, CAST(NULL AS {kind}) AS {_WAS}, {WEIGHT} FROM ({delta})"]
    known = _find_stored(node, delta, stored, context, mode)
    if known is not None:
        parts.append(f"SELECT {own}, {place} AS {_WAS}, {WEIGHT} FROM {known}")
    hint = "/*+ COALESCE(1) */ " if mode is Mode.SMALL else ""
    both = f"SELECT {hint}* FROM ({' UNION ALL '.join(parts)})"
    if mode is Mode.LARGE:
        both = f"SELECT * FROM ({both}) DISTRIBUTE BY {', '.join(node.keys)}"
    rows = f"SELECT {own}, {_WAS} FROM ({both})"
    if mode is not Mode.LARGE or not stored.insert_only:
        summed = f"SELECT {own}, {_WAS}, SUM({WEIGHT}) AS {WEIGHT} FROM ({both}) GROUP BY {own}, {_WAS} HAVING SUM({WEIGHT}) > 0"
        rows = f"SELECT {own}, {_WAS} FROM ({summed}) LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, INT({WEIGHT}))) AS `__n`"
    moved = f"SELECT * FROM (SELECT *, {node.rank} AS {place} FROM ({rows})) WHERE NOT {_WAS} <=> {place}"
    comes, goes = (
        f"NAMED_STRUCT('place', {where}, 'weight', CAST({weight} AS BIGINT))" for where, weight in ((place, 1), (_WAS, -1))
    )
    changes = f"ARRAY({comes}, {goes})"
    places = (
        f"SELECT {own}, `__c`.place AS {place}, `__c`.weight AS {WEIGHT} FROM ({moved}) LATERAL VIEW EXPLODE({changes}) AS `__c`"
    )
    return (
        f"SELECT {own}, {place}, SUM({WEIGHT}) AS {WEIGHT} FROM ({places}) WHERE {place} <= {node.most}"
        f" GROUP BY {own}, {place} HAVING SUM({WEIGHT}) <> 0"
    )


def _find_stored(node: AppendOnlyTopK, delta: str, stored: Trace, context: Context, mode: Mode) -> str | None:
    """Return a table expression for the stored rows that the delta's keys may affect."""
    rows = context.batch_views.rows(stored.batches, single_partition=mode is Mode.SMALL)
    if rows is None or mode is Mode.SMALL or (mode is Mode.LARGE and _affects_most(node, stored, context)):
        return rows
    touched = ", ".join(f"{key} AS k{at}" for at, key in enumerate(node.keys))
    match = " AND ".join(f"{key} <=> t.k{at}" for at, key in enumerate(node.keys))
    hint = "/*+ BROADCAST(t) */ " if mode is Mode.NARROW else ""
    return f"(SELECT {hint}s.* FROM {rows} AS s LEFT SEMI JOIN (SELECT DISTINCT {touched} FROM ({delta})) AS t ON {match})"


def _affects_most(node: AppendOnlyTopK, stored: Trace, context: Context) -> bool:
    """Return True if there are so many new rows that finding the affected stored rows costs more than reading all stored rows."""
    return context.is_most(node.source.reads, stored.rows)
