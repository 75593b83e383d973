"""Filters, projections, unions and inner joins: one query over the sources' deltas and contents gives the delta."""

from __future__ import annotations

from airflow_pipelines.engine.arrow import arrow_schema, can_group, consolidate_groupable
from airflow_pipelines.engine.batch import Batch, joined, weighted
from airflow_pipelines.engine.operators.context import Context, Mode
from airflow_pipelines.engine.operators.lookup_join.fetch import delta_of
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.result import Outcome, stage_schema
from airflow_pipelines.engine.operators.selected_rows import select_rows
from airflow_pipelines.engine.operators.state import Kept
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.stage import Stage


class LinearOperator(Operator[Linear]):
    """Evaluates one query over the sources' deltas and contents."""

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """See :class:`Operator`."""
        del kept
        rows = self._small_delta(context)
        selected = None if rows is None else select_rows(self.node, rows, context)
        if selected is not None:
            return Outcome(context.spill_if_large(Batch.in_memory(weighted(stage_schema(self.stage)), selected)))
        delta = delta_of(self.node, context)
        if delta.joined is not None:
            return _joined(self.stage, delta.joined, context)
        if delta.query is None:
            return Outcome(Batch.empty(weighted(stage_schema(self.stage))))
        # A join gives many rows for one, and so does whatever unnests a value.
        return context.emit(self.stage, delta.query, delta.mode, may_grow=True, unit_weights=context.gains(self.reads))

    def _small_delta(self, context: Context) -> Batch | None:
        """The delta of the one relation that the stage reads, in one batch; None where there are several, or it is not small."""
        if len(self.reads) > 1 or context.mode(self.reads, frozenset()) is not Mode.SMALL:
            return None
        (name,) = self.reads
        delta = context.relations[name].delta
        return joined(delta) if delta else None


def _joined(stage: Stage, rows: Batch, context: Context) -> Outcome:
    """The rows of a join as what its stage gives."""
    batch = Batch.in_memory(weighted(stage_schema(stage)), rows.table)
    if not batch.is_small(context.limits) and stage.relation in context.unobserved:
        return Outcome(Batch.empty(batch.schema), consolidated=True, unobserved=batch.rows)
    if not batch.insert_only and can_group(arrow_schema(stage_schema(stage))):
        batch = Batch.in_memory(batch.schema, consolidate_groupable(batch.table))
        return Outcome(context.spill_if_large(batch), consolidated=True)
    return Outcome(context.spill_if_large(batch))
