"""Filters, projections, unions and inner joins: the delta is one query over the sources' deltas and contents."""

from __future__ import annotations

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.operators.context import Context
from airflow_pipelines.engine.operators.lookup_join.fetch import delta_of
from airflow_pipelines.engine.operators.result import Outcome, stage_schema
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.stage import Stage


def evaluate_linear(stage: Stage, node: Linear, context: Context) -> Outcome:
    """The delta of a stage without a state of its own."""
    query, mode = delta_of(node, context)
    if query is None:
        return Outcome(Batch.empty(weighted(stage_schema(stage))))
    return context.emit(stage, query, mode, may_grow=bool(stage.rereads), unit_weights=context.gains(stage.reads))
