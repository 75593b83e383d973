"""Time in a circuit: ticks of the clock, waterlines of columns with LATENESS, and late rows."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.lateness import Bounds, Late, Waterlines, late_rows, reports
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.intervals import format_intervals
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.time.markers import Markers, Times
from airflow_pipelines.engine.time.retention import Retention
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.retention_rule import RetentionRule


@dataclass(slots=True)
class TimedStep:
    """The time in one step: the times ``before`` and ``after`` it, and the late rows that it found."""

    before: Times
    after: Times
    late: list[Late] = field(default_factory=list)


class Timing:
    """The program's markers and waterlines, advanced from step to step."""

    def __init__(
        self, program: Program, sessions: SparkSessions, readers: Mapping[str, str], rules: Sequence[RetentionRule]
    ) -> None:
        """Set up the time before the first step.

        :param program: the program
        :param sessions: sessions that evaluate markers
        :param readers: a view that reads each marker, by the marker's relation
        :param rules: the rules that tell which rows and groups may be dropped
        """
        self._session = sessions.small
        self._lock = threading.Lock()
        types = {
            (late.relation, late.column): program.schemas[late.relation].column(late.column).type.spark_ddl()
            for late in program.late_columns
        }
        self.bounds = Bounds(program.late_columns, sessions.small)
        self.markers = Markers(program.markers, types, sessions.small, readers)
        self.retention = Retention(rules, types)

    @property
    def uses_clock(self) -> bool:
        """True if ticks can change anything."""
        return bool(self.ticking)

    @property
    def ticking(self) -> frozenset[str]:
        """The relations that may change with each tick of the clock."""
        return frozenset(name for name, marker in self.markers.markers.items() if marker.follows_clock)

    def begin(
        self, base: Snapshot, clock: int | None, deltas: Mapping[str, Batch], waterlines: Waterlines | None = None
    ) -> TimedStep:
        """Return the time of a step over tables' deltas. The clock never goes back.

        :param waterlines: the waterlines after the step if they are known already, from a journal
        """
        if waterlines is None:
            waterlines = self.bounds.advance(base.waterlines, deltas)
        return TimedStep(Times(base.clock, base.waterlines), Times(_find_later(base.clock, clock), waterlines))

    def accept(
        self, relation: str, versions: RelationVersions, step: TimedStep, context: Context
    ) -> Mapping[str, RelationVersions]:
        """Apply a view's delta to the time of the step, and return the versions that change.

        If the view has lateness, late rows are left out and recorded, and its waterline advances.

        :param relation: the view
        :param versions: its contents before the step, and its computed delta
        :param step: the time of the step
        :param context: the context of the step
        :returns: the versions of the view and of the markers, by their relations
        """
        if relation not in self.bounds.relations or not versions.delta:
            return {relation: versions}
        waterlines = step.before.waterlines.get(relation, {})
        # Views may be evaluated at the same time.
        with self._lock:
            accepted = tuple(self._keep_on_time(relation, batch, waterlines, step, context) for batch in versions.delta)
            for batch in accepted:
                advanced = self.bounds.advance(step.after.waterlines, {relation: batch})
                step.after = replace(step.after, waterlines=advanced)
            moved = self.markers.versions(step.before, step.after)
        return {**moved, relation: replace(versions, delta=tuple(batch for batch in accepted if batch.rows))}

    def reports(self, late: Sequence[Late]) -> Batch | None:
        """Return the delta of the system view that reports late rows, or None if there are none."""
        return reports(late, self._session) if late else None

    def _keep_on_time(self, relation: str, batch: Batch, waterlines: Mapping[str, str], step: TimedStep, context: Context) -> Batch:
        if not waterlines:
            return batch
        if batch.table is not None:
            late = late_rows(batch.table, waterlines)
            rows, kept = batch.table.filter(late), batch.table.filter(pc.invert(late))
        else:
            kinds = {column.name: type_text(column.dataType) for column in batch.schema.fields}
            below = " OR ".join(f"{quote(name)} < CAST('{text}' AS {kinds[name]})" for name, text in waterlines.items())
            source = context.batch_views.table(batch)
            rows = context.collect(f"SELECT * FROM {source} WHERE {below}", Mode.LARGE)
            if not rows.num_rows:
                return batch
            kept = None
        if not rows.num_rows:
            return batch
        step.late.append(Late(relation, format_intervals(rows, batch.schema), waterlines))
        if kept is not None:
            return Batch.in_memory(batch.schema, kept)
        return context.run(f"SELECT * FROM {source} WHERE NOT COALESCE({below}, FALSE)", batch.schema, Mode.LARGE)


def _find_later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
