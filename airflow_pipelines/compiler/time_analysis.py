"""The compilation of a program's time semantics: the clock in queries, LATENESS, and views that emit only final rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import pyarrow as pa

from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer
from airflow_pipelines.engine.lateness import LateColumn
from airflow_pipelines.engine.spark.analysis import Analysis, QueryRefused
from airflow_pipelines.program.names import display, quote
from airflow_pipelines.program.relations import Table, span_of
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.plan.clock import ClockMarkers
from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source
from airflow_pipelines.sql.plan.ir.markers import CLOCK, Marker
from airflow_pipelines.sql.plan.ir.stage import Stage, ViewPlan
from airflow_pipelines.sql.plan.pipeline import finished_plan
from airflow_pipelines.sql.plan.properties.waterlines import WaterlineAnalysis
from airflow_pipelines.sql.program.declarations import PropertyText, ViewDeclaration
from airflow_pipelines.sql.rewrite.clock_calls import clock_edits
from airflow_pipelines.sql.syntax.edits import Edit

Note = Callable[[Span | None, str], None]
"""A function that takes the place of an error and its message."""
ALL_ROWS = "$all"
"""The suffix of the relation with all rows of a view's query, for views that show only some of them."""


class TimeAnalysis:
    """The markers and late columns of a program, collected relation by relation; errors go to ``note``."""

    def __init__(self, analyzer: SparkAnalyzer, analysis: Analysis, note: Note) -> None:
        self._analyzer = analyzer
        self._analysis = analysis
        self._note = note
        self._clock = ClockMarkers()
        self.waterlines = WaterlineAnalysis()
        self._final_markers: list[Marker] = []
        self.late_columns: list[LateColumn] = []
        """The columns with LATENESS."""

    @property
    def markers(self) -> tuple[Marker, ...]:
        """All markers that the program's plans read."""
        return (*self._clock.markers.values(), *self._final_markers)

    def add_table(self, table: Table, schema: RelationSchema) -> None:
        """Check and note the lateness of a table's columns."""
        for column in table.columns:
            if column.lateness is not None:
                self._add_lateness(schema, column.name, column.lateness, span_of(column))

    def clock_edits(self, query: str, columns: Collection[str]) -> list[Edit]:
        """Return the edits by which a query reads the clock as a relation, and declare that; none if it does not call NOW()."""
        edits = clock_edits(query, columns)
        if edits:
            self._analyzer.declare({CLOCK.relation: ((CLOCK.column, CLOCK.type),)})
        return edits

    def with_markers(self, query: str) -> tuple[str, tuple[Marker, ...]]:
        """Return the query and its markers, with each expression over the clock read from a marker.

        A marker changes as rarely as possible.
        """
        rewritten = self._clock.rewrite(query, self._analyzer)
        return rewritten, self._clock.read_by(rewritten)

    def add_view(self, view: ViewDeclaration, schema: RelationSchema) -> None:
        """Check and note the lateness of a view's columns."""
        for lateness in view.lateness:
            if lateness.column not in schema.column_names:
                listed = ", ".join(map(display, schema.column_names))
                self._note(
                    lateness.span, f"View {display(view.name)} has no column {display(lateness.column)}; its columns: {listed}"
                )
                continue
            self._add_lateness(schema, lateness.column, lateness.bound, lateness.span)

    def finish(self, view: ViewDeclaration, plan: ViewPlan) -> ViewPlan:
        """Return the finished plan of a view.

        :param view: the view
        :param plan: the plan of the planner
        """
        whole = self._with_time(view, plan)
        return finished_plan(whole, {marker.relation: marker for marker in self.markers})

    def _with_time(self, view: ViewDeclaration, plan: ViewPlan) -> ViewPlan:
        """Return the plan of a view with the stages for its clock, lateness and ``emit_final``."""
        self.waterlines.markers = frozenset(marker.relation for marker in self._clock.markers.values())
        final = view.emit_final
        if not view.lateness and final is None:
            self.waterlines.add(plan.stages)
            return plan
        if view.cycle or view.declared is not None:
            self._note(view.span, f"View {display(view.name)} is recursive, so it can have neither LATENESS nor 'emit_final'")
            return plan
        whole = f"{view.name}{ALL_ROWS}"
        *before, last = plan.stages
        plan = replace(plan, stages=(*before, replace(last, relation=whole)), full=replace(plan.full, relation=whole))
        self.waterlines.add(plan.stages)
        if view.lateness:
            names = tuple(name for name, _ in plan.columns)
            projection = Select(
                (Source("s", Scan(whole, names)),), tuple(Item(name, Expression.column("s", name)) for name in names)
            )
            plan = replace(plan, after=(Stage(view.name, plan.columns, projection),))
        if final is not None:
            if view.lateness:
                self._note(final.key_span, f"View {display(view.name)} cannot have both LATENESS and 'emit_final'")
                return plan
            plan = self._emit_final(view, plan, whole, final)
        return plan

    def _emit_final(self, view: ViewDeclaration, plan: ViewPlan, whole: str, final: PropertyText) -> ViewPlan:
        names = [name for name, _ in plan.columns]
        wanted = final.value.strip()
        if wanted.isdigit() and int(wanted) < len(names):
            column = names[int(wanted)]
        elif wanted in names:
            column = wanted
        elif wanted.lower() in names:
            column = wanted.lower()
        else:
            listed = ", ".join(map(display, names))
            self._note(
                final.value_span,
                f"'emit_final' of view {display(view.name)} names no column: '{wanted}'; write a number from 0 to {len(names) - 1} "
                f"or one of {listed}",
            )
            return plan
        text = self.waterlines.relations.get(whole, {}).get(column)
        if text is None:
            self._note(final.value_span, self._explain_no_waterline(view, plan, column))
            return plan
        marker = Marker(f"{view.name}$waterline", "__waterline", dict(plan.columns)[column], text, follows_clock=False)
        self._final_markers.append(marker)
        self._analyzer.declare({marker.relation: ((marker.column, marker.type),)})
        shown = Select(
            (Source("w", Scan(marker.relation, (marker.column,))), Source("s", Scan(whole, tuple(names)))),
            tuple(Item(name, Expression.column("s", name)) for name in names),
            WhereClause(f"`s`.{quote(column)} < `w`.{quote(marker.column)}"),
        )
        return replace(plan, after=(Stage(view.name, plan.columns, shown),))

    def _explain_no_waterline(self, view: ViewDeclaration, plan: ViewPlan, column: str) -> str:
        reason = f"; {plan.reason}" if isinstance(plan.stages[-1].node, Full) and plan.reason else ""
        return (
            f"No waterline can be derived for column {display(column)} of view {display(view.name)}, which 'emit_final' names: it "
            "must follow from a column with LATENESS by expressions that keep the order, and be a GROUP BY key above "
            f"aggregates{reason}"
        )

    def _add_lateness(self, schema: RelationSchema, name: str, bound: str, span: Span | None) -> None:
        title = f"LATENESS of column {display(name)} of {display(schema.name)}"
        kind = schema.column(name).type
        if not (_is_signed_number(kind) or kind.is_date or kind.is_timestamp):
            self._note(span, f"{title}: a column of type {kind} has no order that rows could be late in; use a time or a number")
            return
        try:
            analyzed = self._analysis.evaluate_constants(f"SELECT {bound}")
        except QueryRefused as refused:
            self._note(span, f"{title}: {refused.message}")
            return
        bound_type = str(analyzed.fields[0]["type"])
        if not analyzed.deterministic or not _fits(kind, bound_type):
            wanted = "an INTERVAL of days, hours, minutes or seconds" if kind.is_date or kind.is_timestamp else "a number"
            self._note(span, f"{title} must be {wanted}, not {bound}")
            return
        if not self._is_length(bound, is_number=not bound_type.startswith("interval")):
            self._note(span, f"{title}: {bound} is no length; it must be finite, and zero or more")
            return
        self.late_columns.append(LateColumn(schema.name, name, bound))
        self.waterlines.declare(schema.name, [name])

    def _is_length(self, bound: str, *, is_number: bool) -> bool:
        """Return True if a bound is zero or more: no waterline can be derived from a bound of NULL, NaN or less than zero."""
        # For Spark, NaN is the greatest number.
        condition = "BETWEEN 0 AND 1.7976931348623157E308D" if is_number else ">= INTERVAL '0' SECOND"
        query = f"SELECT coalesce(({bound}) {condition}, FALSE) AS is_length"
        return bool(self._analysis.rows(query, pa.schema([("is_length", pa.bool_())]))[0]["is_length"])


def _is_signed_number(kind: ColumnType) -> bool:
    return kind.is_number and not kind.is_unsigned_integer


def _fits(kind: ColumnType, bound: str) -> bool:
    number = bound in {"byte", "short", "integer", "long", "double", "float"} or bound.startswith("decimal")
    if _is_signed_number(kind):
        return number
    return (bound.startswith("interval") and "year" not in bound and "month" not in bound) or (kind.is_date and number)
