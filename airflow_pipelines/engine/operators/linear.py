"""Filters, projections, unions and inner joins: one query over the sources' deltas and contents computes the delta."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from airflow_pipelines.engine.batch import Batch, concat_batches, weighted
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema
from airflow_pipelines.engine.execution.selected_rows import select_rows
from airflow_pipelines.engine.execution.ways import Declined, TooMuch, first_accepted
from airflow_pipelines.engine.operators.lookup_join.fetch import queried_delta_of
from airflow_pipelines.engine.operators.lookup_join.joined_rows import joined_rows
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.state import Kept
from airflow_pipelines.rows.zsets import can_group, consolidate_groupable
from airflow_pipelines.sql.plan.ir.computed_columns import computed_columns
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.stage import Stage


class LinearOperator(Operator[Linear]):
    """The operator that evaluates one query over the sources' deltas and contents."""

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`."""
        del kept
        return first_accepted(lambda: self._select(context), lambda: self._join(context), lambda: self._query(context))

    def _select(self, context: Context) -> Outcome:
        """Return the outcome over rows in memory of the one relation that the stage reads."""
        if len(self.reads) > 1:
            raise Declined("several relations")
        (name,) = self.reads
        delta = context.relations[name].delta
        if not delta or any(batch.table is None for batch in delta):
            raise Declined("no rows, or rows in files")
        if context.mode(self.reads, frozenset()) is not Mode.SMALL:
            split = computed_columns(self.node)
            if split is None or (split.block is not None and split.may_grow):
                raise TooMuch("many rows of a block that may return more")
        return _to_outcome(self.stage, select_rows(self.node, concat_batches(delta), context), context)

    def _join(self, context: Context) -> Outcome:
        """Return the outcome of a join in the driver."""
        return _consolidate_joined(self.stage, joined_rows(self.node, context).to_arrow(), context)

    def _query(self, context: Context) -> Outcome:
        """Return the outcome of a query of Spark."""
        delta = queried_delta_of(self.node, context)
        if delta.query is None:
            return Outcome(Batch.empty(weighted(stage_schema(self.stage))))
        # A join may return many rows for one, and so may an unnested value.
        return context.emit(self.stage, delta.query, delta.mode, may_grow=True, unit_weights=context.gains(self.reads))


def _consolidate_joined(stage: Stage, rows: pa.Table, context: Context) -> Outcome:
    """Return the outcome for the rows of a join, whose equal rows may come from several places."""
    batch = Batch.in_memory(weighted(stage_schema(stage)), rows)
    if not batch.insert_only and not _is_dropped(stage, batch, context) and can_group(arrow_schema(stage_schema(stage))):
        return replace(_to_outcome(stage, consolidate_groupable(rows), context), consolidated=True)
    return _to_outcome(stage, rows, context)


def _to_outcome(stage: Stage, rows: pa.Table, context: Context) -> Outcome:
    batch = Batch.in_memory(weighted(stage_schema(stage)), rows)
    if _is_dropped(stage, batch, context):
        return Outcome(Batch.empty(batch.schema), consolidated=True, unobserved=batch.rows)
    return Outcome(context.spill_if_large(batch))


def _is_dropped(stage: Stage, batch: Batch, context: Context) -> bool:
    """Return True if there are many rows and no consumer reads them."""
    return stage.relation in context.unobserved and not batch.is_small(context.limits)
