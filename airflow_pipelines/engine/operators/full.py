"""The strategy that always works: evaluating the query over the contents of its relations and subtracting the stored result."""

from __future__ import annotations

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import consolidated_sql
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.state import Kept
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.stage import Stage


class FullOperator(Operator[Full]):
    """The operator that evaluates the whole query and subtracts the stored result."""

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`."""
        before = kept.contents or self._empty_contents()
        if self.node.needs and not before.batches and not any(context.relations[name].after.batches for name in self.node.needs):
            return Outcome(Batch.empty(before.schema), consolidated=True)
        mode = context.mode(frozenset(), self.reads, before)
        return subtract_stored(self.stage, with_contents(self.node, context, mode is Mode.SMALL), context, mode, before)


def subtract_stored(stage: Stage, answer: str, context: Context, mode: Mode, stored: Trace) -> Outcome:
    """Return the delta between a stage's stored contents and its current answer.

    :param stage: the stage, for its columns
    :param answer: a query for the answer's plain rows, without weights
    :param context: the context of the step
    :param mode: the mode in which the query runs
    :param stored: the contents so far
    """
    schema = weighted(stage_schema(stage))
    names = ", ".join(quote(name) for name, _ in stage.columns)
    now = f"SELECT * FROM (SELECT *, CAST(1 AS BIGINT) FROM ({answer})) AS q({names}, {WEIGHT})"
    if not stored.batches:
        return Outcome(context.run(now, schema, mode, may_grow=True), consolidated=True, reason=stage.reason)
    small = mode is Mode.SMALL
    rows = context.batch_views.rows(stored.batches, single_partition=small)
    hint = "/*+ COALESCE(1) */ " if small else ""
    both = f"(SELECT {hint}* FROM ({now} UNION ALL SELECT {names}, -{WEIGHT} FROM {rows}))"
    delta = context.run(consolidated_sql(Trace(schema), both), schema, mode, may_grow=True)
    return Outcome(delta, consolidated=True, reason=stage.reason)


def with_contents(node: Full, context: Context, small: bool) -> str:
    """Return the query over its relations' contents after the step. A WITH clause around the unchanged query names them.

    :param node: the query and the relations it reads
    :param context: the context of the step
    :param small: True if all that it reads is small
    """
    contents = [
        f"{quote(name)} AS ({context.batch_views.contents(context.relations[name].after, single_partition=small)})"
        for name in node.inputs
    ]
    clause = f"WITH {', '.join(contents)} " if contents else ""
    return f"{clause}SELECT * FROM ({node.query})"
