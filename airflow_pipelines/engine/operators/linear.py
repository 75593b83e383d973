"""Filters, projections, unions and inner joins: one query over the sources' deltas and contents gives the delta."""

from __future__ import annotations

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.operators.context import Context
from airflow_pipelines.engine.operators.lookup_join.fetch import delta_of
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.result import Outcome, stage_schema
from airflow_pipelines.engine.operators.state import Kept
from airflow_pipelines.sql.plan.ir.linear import Linear


class LinearOperator(Operator[Linear]):
    """Evaluates one query over the sources' deltas and contents."""

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """See :class:`Operator`."""
        del kept
        query, mode = delta_of(self.node, context)
        if query is None:
            return Outcome(Batch.empty(weighted(stage_schema(self.stage))))
        # A join gives many rows for one, and so does whatever unnests a value.
        return context.emit(self.stage, query, mode, may_grow=True, unit_weights=context.gains(self.reads))
