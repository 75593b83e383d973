"""Forgetting what is below a waterline, when there is enough of it to be worth a pass over the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from airflow_pipelines.engine.batch_views import consolidated_sql
from airflow_pipelines.engine.operators.context import Context, Mode
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.time.lateness import Waterlines
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.markers import waterline_input
from airflow_pipelines.sql.plan.properties.retention import RetentionRule


@dataclass(slots=True)
class Discarding:
    """Looks through traces and states for rows that a program's discards allow to go.

    ``types``: Spark DDL types of the columns with lateness, by relation and column.
    """

    discards: Sequence[RetentionRule]
    types: Mapping[tuple[str, str], str]
    _left: dict[RetentionRule, int] = field(default_factory=dict)
    _seen: dict[RetentionRule, Waterlines] = field(default_factory=dict)

    @property
    def relations(self) -> frozenset[str]:
        """The relations whose traces may lack rows that their definition says they have."""
        return frozenset(discard.relation for discard in self.discards if not discard.of_state)

    def apply(self, base: Snapshot, context: Context) -> Snapshot:
        """The snapshot without what is not needed any more; the same object when there was nothing worth it."""
        traces, states = dict(base.traces), dict(base.states)
        changed = False
        for discard in self.discards:
            kept = states if discard.of_state else traces
            trace = kept.get(discard.relation)
            if trace is None or not self._worth(discard, trace, base.waterlines, context):
                continue
            kept[discard.relation] = self._without(discard, trace, base.waterlines, context)
            self._left[discard] = kept[discard.relation].rows
            self._seen[discard] = base.waterlines
            changed = True
        return replace(base, traces=traces, states=states) if changed else base

    def _worth(self, discard: RetentionRule, trace: Trace, waterlines: Waterlines, context: Context) -> bool:
        least = 2 * self._left.get(discard, 0) + context.limits.discard_rows
        return trace.rows > least and self._seen.get(discard) != waterlines

    def _without(self, discard: RetentionRule, trace: Trace, waterlines: Waterlines, context: Context) -> Trace:
        condition = discard.condition
        for (relation, column), ddl in self.types.items():
            text = waterlines.get(relation, {}).get(column)
            value = "NULL" if text is None else f"'{text}'"
            condition = condition.replace(quote(waterline_input(relation, column)), f"CAST({value} AS {ddl})")
        small = trace.is_small(context.limits)
        rows = context.batch_views.rows(trace.batches, single_partition=small)
        query = consolidated_sql(trace, f"(SELECT * FROM {rows} WHERE NOT COALESCE({condition}, FALSE))")
        batch = context.run(query, trace.schema, Mode.SMALL if small else Mode.LARGE)
        return replace(trace, batches=(batch,) if batch.rows else ())
