"""Retention: dropping rows and groups below a waterline that no later step needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from airflow_pipelines.engine.batch_views import consolidated_sql
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.lateness import Waterlines
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.markers import waterline_input
from airflow_pipelines.sql.plan.ir.retention_rule import RetentionRule


@dataclass(slots=True)
class Retention:
    """The search through traces and states for rows that a program's rules allow to drop.

    :param rules: the rules that tell which rows may go
    :param types: the Spark DDL types of the columns with lateness, by relation and column
    """

    rules: Sequence[RetentionRule]
    types: Mapping[tuple[str, str], str]
    _left: dict[tuple[RetentionRule, str], int] = field(default_factory=dict)
    _seen: dict[tuple[RetentionRule, str], Waterlines] = field(default_factory=dict)

    @property
    def relations(self) -> frozenset[str]:
        """The relations whose traces may lack rows that their definition says they have."""
        return frozenset(rule.relation for rule in self.rules if not rule.of_state)

    def apply(self, base: Snapshot, context: Context) -> Snapshot:
        """Return the snapshot without rows that are no longer needed; the same object if nothing was worth dropping."""
        if not self.rules:
            return base
        traces = dict(base.traces)
        states = {relation: dict(kept) for relation, kept in base.states.items()}
        changed = False
        for rule in self.rules:
            # A rule for a state applies to all states of the operator: all of them have the keys in its condition.
            kept = states.get(rule.relation, {}) if rule.of_state else traces
            for name in kept if rule.of_state else kept.keys() & {rule.relation}:
                trace, place = kept[name], (rule, name)
                if self._is_worthwhile(place, trace, base.waterlines, context):
                    kept[name] = self._drop_rows(rule, trace, base.waterlines, context)
                    self._left[place] = kept[name].rows
                    self._seen[place] = base.waterlines
                    changed = True
        return replace(base, traces=traces, states=states) if changed else base

    def _is_worthwhile(self, place: tuple[RetentionRule, str], trace: Trace, waterlines: Waterlines, context: Context) -> bool:
        least = 2 * self._left.get(place, 0) + context.limits.merges.retention_rows
        return trace.rows > least and self._seen.get(place) != waterlines

    def _drop_rows(self, rule: RetentionRule, trace: Trace, waterlines: Waterlines, context: Context) -> Trace:
        condition = rule.condition
        for (relation, column), ddl in self.types.items():
            text = waterlines.get(relation, {}).get(column)
            value = "NULL" if text is None else f"'{text}'"
            condition = condition.replace(quote(waterline_input(relation, column)), f"CAST({value} AS {ddl})")
        small = trace.is_small(context.limits)
        rows = context.batch_views.rows(trace.batches, single_partition=small)
        query = consolidated_sql(trace, f"(SELECT * FROM {rows} WHERE NOT COALESCE({condition}, FALSE))")
        batch = context.run(query, trace.schema, Mode.SMALL if small else Mode.LARGE)
        return replace(trace, batches=(batch,) if batch.rows else ())
