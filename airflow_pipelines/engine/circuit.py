"""The circuit: a program with its contents, brought forward step by step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.changes import TableChanges
from airflow_pipelines.engine.compaction import compacted, in_canonical_form
from airflow_pipelines.engine.functions.python_functions import register_functions
from airflow_pipelines.engine.layout import CANONICAL_FORM, layouts
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.lookup.index import file_index
from airflow_pipelines.engine.lookup.matching_rows import matching_rows
from airflow_pipelines.engine.normalise import Normaliser, Rejected
from airflow_pipelines.engine.operators.context import Context, RelationVersions
from airflow_pipelines.engine.operators.result import stage_schema
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.scheduler import Round, Workers
from airflow_pipelines.engine.snapshot import Snapshot, owner
from airflow_pipelines.engine.spark.failures import step_error
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.stages import (
    empty_state,
    ends,
    keeps_state,
    kept_relations,
    lacks,
    needed_for,
    shown_relations,
    stages_of,
)
from airflow_pipelines.engine.step_stats import OperatorFigures, StepFigures
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.time.lateness import ERROR_VIEW, Late, Waterlines
from airflow_pipelines.engine.time.timing import TimedStep, Timing
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.engine.values.intervals import shown
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.sql.plan.ir.stage import Stage


@dataclass(frozen=True, slots=True)
class Step:
    """An evaluated step that nobody sees yet. Deltas without rows are left out, and large ones that nobody takes.

    ``late``: rows of tables and views that were left out because they were behind a waterline; ``table_deltas`` has what the system
    view gains by them.
    """

    number: int
    table_deltas: Mapping[str, Batch]
    view_deltas: Mapping[str, Batch]
    snapshot: Snapshot
    figures: StepFigures
    rejected: tuple[Rejected, ...] = ()
    late: tuple[Late, ...] = ()
    quiet: bool = False
    """Whether nothing but time has moved: no contents and no state have changed, and the step's number is the one before's."""


class Circuit:
    """Keeps every view of a program equal to its query.

    :meth:`step` (or :meth:`apply`) evaluates a step over the current snapshot and leaves the circuit as it was; :meth:`publish`
    makes the step current. Steps are made by one thread at a time; reading snapshots is free for all.
    """

    def __init__(
        self,
        program: Program,
        sessions: SparkSessions,
        store: BatchStore,
        strategy: str = "auto",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """An empty circuit.

        :param program: the program
        :param sessions: sessions for small and large operators
        :param store: where large batches go
        :param strategy: ``incremental`` uses incremental rules where there are any; so does ``auto``, unless most of what a stage
            reads has changed; ``full`` recomputes every view
        :param limits: what counts as small and as large
        :raises ValueError: for an unknown strategy
        """
        self.program = program
        self.sessions = sessions
        self.store = store
        self.limits = limits
        self.batch_views = BatchViews(sessions, limits)
        for session in (sessions.small, sessions.narrow, sessions.large):
            register_functions(session, program.definitions.python_functions)
        self.stages = stages_of(program, strategy)
        self._by_cost = strategy == "auto"
        self._owners = {stage.relation: owner(stage.relation, program.views.keys()) for stage in self.stages}
        self.timing = Timing(program, sessions, {name: self._owners[s.relation] for s in reversed(self.stages) for name in s.reads})
        self.has_consumers: Callable[[str], bool] = lambda _: True
        """Whether somebody outside the circuit takes the deltas of a view that has no contents; asked in every step."""
        self.kept = (kept_relations(program, self.stages) | {SYSTEM_VIEW}) - self.timing.markers.markers.keys()
        tables = {name: weighted(program.schemas[name].spark) for name in program.tables}
        stages = {stage.relation: weighted(stage_schema(stage)) for stage in self.stages}
        self._ends = ends(program, self.stages, self.kept | {column.relation for column in program.late_columns})
        self._schemas = {**tables, **stages, SYSTEM_VIEW: weighted(ERROR_VIEW.spark)}
        self.timing.allow_discards(program, self.stages, shown_relations(program))
        self._workers = Workers(sessions.small.sparkContext)
        self._lock = threading.RLock()
        states = {stage.relation: empty_state(stage) for stage in self.stages if keeps_state(stage)}
        plain = {name: self._schemas[name] for name in (*tables, SYSTEM_VIEW)}
        self.layouts: Mapping[str, str] = layouts(plain, self.timing.markers.markers, self.stages, states)
        """How the contents and the states of relations are made, by relation."""
        self._snapshot = Snapshot(layouts=self.layouts)

    @property
    def snapshot(self) -> Snapshot:
        """The contents after the newest published step."""
        return self._snapshot

    def step(self, changes: Iterable[TableChanges], clock: int | None = None) -> Step:
        """Normalise the changes of all tables (in arrival order) and evaluate one step over them.

        :param clock: the time, in microseconds since the epoch, to which the clock moves with this step
        :raises StepError: when a view cannot be evaluated
        :raises StorageError: when rows cannot be read or written
        :raises ValueError: when a change is not allowed for its table
        """
        started = time.monotonic()
        by_table: dict[str, list[TableChanges]] = {}
        for change in changes:
            by_table.setdefault(change.table, []).append(change)
        context = self._context({})
        deltas, rejected, late = {}, [], []
        for name, parts in by_table.items():
            try:
                deltas[name], normaliser = self._normalised(name, parts, context)
            except Exception as error:
                if isinstance(error, ValueError | StorageError):
                    raise
                raise step_error(name, error) from error
            rejected += normaliser.rejected
            late += [Late(name, shown(rows, self.program.schemas[name].spark), normaliser.waterlines) for rows in normaliser.late]
        timed = self.timing.begin(self._snapshot, clock, deltas)
        timed.late += late
        return self._apply(deltas, timed, started, tuple(rejected))

    def apply(self, deltas: Mapping[str, Batch], clock: int | None = None, waterlines: Waterlines | None = None) -> Step:
        """Evaluate one step over deltas that are normalised already: of tables, and of the system view.

        :param clock: the time to which the clock moves with this step
        :param waterlines: those after the step; None when they follow from the deltas
        :raises StepError: when a view cannot be evaluated
        """
        timed = self.timing.begin(self._snapshot, clock, deltas, waterlines)
        return self._apply(deltas, timed, time.monotonic())

    def publish(self, step: Step) -> None:
        """Make a step's snapshot the current one; readers see all of it or nothing."""
        with self._lock:
            self._snapshot = step.snapshot

    def restore(self, snapshot: Snapshot) -> None:
        """Make ``snapshot`` current, without what it has in another layout, and with its rows in canonical form.

        Relations and states that it then lacks are empty until :meth:`bootstrap` or :meth:`refresh` fills them.

        :raises ValueError: when it has a table with other columns
        """
        same = {name for name, layout in snapshot.layouts.items() if self.layouts.get(name) == layout}
        other = sorted(set(snapshot.traces) & {*self.program.tables, SYSTEM_VIEW} - same)
        if other:
            raise ValueError(f"the snapshot has {', '.join(other)} with other columns than the program")
        known = self.kept & same
        states = {stage.relation for stage in self.stages if keeps_state(stage) and stage.relation in same}
        traces = {name: trace for name, trace in snapshot.traces.items() if name in known}
        if snapshot.canonical_form != CANONICAL_FORM:
            traces = {name: in_canonical_form(trace, self._context({})) for name, trace in traces.items()}
        with self._lock:
            self._snapshot = replace(
                snapshot,
                traces=traces,
                states={name: trace for name, trace in snapshot.states.items() if name in states},
                layouts=self.layouts,
                canonical_form=CANONICAL_FORM,
            )

    def in_canonical_form(self, deltas: Mapping[str, Batch]) -> dict[str, Batch]:
        """Deltas of tables with the values of their rows in canonical form, for what was stored under another form or none."""
        traces = {name: in_canonical_form(Trace(delta.schema, (delta,)), self._context({})) for name, delta in deltas.items()}
        return {name: batch for name, trace in traces.items() for batch in trace.batches}

    def refresh(self) -> frozenset[str]:
        """Evaluate what the current snapshot lacks from what it has, and make that current.

        Nobody sees it: contents are the same before and after, nothing is emitted, and it is no step.

        :returns: the views that something was evaluated of
        :raises StepError: when a view cannot be evaluated
        """
        base = self._snapshot
        lacking = {stage.relation for stage in self.stages if self._lacks(stage, base)}
        if not lacking or not (base.traces or base.states):
            return frozenset()
        _, snapshot = self._evaluated_anew(lacking, base, None)
        with self._lock:
            self._snapshot = snapshot
        return frozenset(self._owners[name] for name in lacking)

    def bootstrap(self, views: Set[str], clock: int | None = None) -> Step:
        """Evaluate ``views`` anew from what they read; other views keep what they have and emit nothing.

        Contents that ``views`` need of a relation that keeps none are evaluated on the way.

        :param clock: the time to which the clock moves, unless it is further already
        :returns: a step whose ``view_deltas`` are the full contents of ``views``
        :raises StepError: when a view cannot be evaluated
        """
        started = time.monotonic()
        base = self._snapshot
        fresh = {stage.relation for stage in self.stages if self._owners[stage.relation] in views or self._lacks(stage, base)}
        round_, evaluated = self._evaluated_anew(fresh, base, clock)
        snapshot = replace(evaluated, step=base.step + 1)
        deltas = {
            name: self._emitted(round_.relations[name].delta)
            for name in self.program.views
            if name in views and round_.relations[name].delta
        }
        figures = StepFigures(snapshot.step, _milliseconds(started), 0, self._figures(round_))
        return Step(snapshot.step, {}, deltas, snapshot, figures)

    def _evaluated_anew(self, fresh: Set[str], base: Snapshot, clock: int | None) -> tuple[Round, Snapshot]:
        """The evaluation of ``fresh`` stages from nothing, with all that they read as deltas, and ``base`` with what it gives."""
        needed = needed_for(fresh, self.stages, self.program.tables, base.traces.keys())
        timed = self.timing.begin(base, clock if base.clock is None else None, {})
        round_ = self._round(base, timed)
        for name, schema in self._schemas.items():
            batches = () if name in needed else self._trace(base, name).batches
            round_.relations[name] = RelationVersions(Trace(schema), batches)
        round_.relations.update(self.timing.markers.fresh(timed.after))

        def evaluate(stage: Stage) -> None:
            stored = Trace(self._schemas[stage.relation]) if stage.relation in self.kept else None
            round_.evaluate(stage, self._owners[stage.relation], stored, fresh_state=True)

        self._workers.run(self.stages, lambda stage: stage.relation in needed, evaluate)
        times = timed.after
        traces = {name: self._after(round_, name, base, fresh) for name in self.kept}
        states = {name: state for name, state in round_.states.items() if name in fresh or name not in base.states}
        snapshot = Snapshot(base.step, traces, {**base.states, **states}, times.clock, times.waterlines, self.layouts)
        return round_, snapshot

    def relation(self, name: str, snapshot: Snapshot | None = None) -> DataFrame:
        """The contents of a relation as a plain multiset.

        :param snapshot: the snapshot to read, by default the current one
        :raises KeyError: when no contents of the relation are kept
        """
        at = snapshot or self._snapshot
        small = name in self.kept and self._trace(at, name).is_small(self.limits)
        session = self.sessions.small if small else self.sessions.large
        return session.sql(self.contents(name, at, single_partition=small))

    def contents(self, name: str, snapshot: Snapshot, *, single_partition: bool = False) -> str:
        """A query, for any session of the application that knows VALUE_BYTES, for the contents of a relation as a plain multiset.

        :raises KeyError: when no contents of the relation are kept
        """
        if name not in self.kept:
            raise KeyError(name)
        return self.batch_views.with_views(
            self.batch_views.contents(self._trace(snapshot, name), single_partition=single_partition)
        )

    def maintain(self) -> bool:
        """Merge traces that have many batches, and forget what late rows can no longer touch; for when there is nothing else to do.

        :returns: whether something was merged
        """
        merged = self._merge(lambda trace: trace.needs_merge(self.limits))
        with self._lock:
            self._snapshot = self.timing.discarding.apply(self._snapshot, self._context({}))
        self.batch_views.sweep()
        if merged:
            file_index(self.store).forget()
        return merged

    def close(self) -> None:
        """Forget all batches in Spark and end the threads."""
        self._workers.close()
        self.batch_views.close()

    def _apply(self, deltas: Mapping[str, Batch], timed: TimedStep, started: float, rejected: tuple[Rejected, ...] = ()) -> Step:
        self._merge(lambda trace: len(trace.batches) > self.limits.hard_limit)
        self.batch_views.sweep(keep=self.limits.dead_views)
        base = self._snapshot
        round_ = self._round(base, timed)
        table_deltas = {name: self._settled(name, batch) for name, batch in deltas.items() if batch.rows}
        rows = sum(batch.rows for name, batch in table_deltas.items() if name != SYSTEM_VIEW)
        for name in self._schemas:
            added = (table_deltas[name],) if name in table_deltas else ()
            round_.relations[name] = RelationVersions(self._trace(base, name), added)
        round_.relations.update(self.timing.markers.versions(timed.before, timed.after))

        def due(stage: Stage) -> bool:
            if any(round_.relations[name].changed for name in stage.reads):
                return True
            if stage.node.starts_with_rows:
                return self._lacks(stage, base)
            if keeps_state(stage):
                round_.states.setdefault(stage.relation, empty_state(stage))
            return False

        def evaluate(stage: Stage) -> None:
            stored = self._trace(base, stage.relation) if stage.relation in self.kept else None
            round_.evaluate(stage, self._owners[stage.relation], stored, fresh_state=False)

        self._workers.run(self.stages, due, evaluate)
        reported = self.timing.reports(timed.late) if SYSTEM_VIEW not in table_deltas else None
        if reported is not None:
            table_deltas[SYSTEM_VIEW] = reported
        added = (table_deltas[SYSTEM_VIEW],) if SYSTEM_VIEW in table_deltas else ()
        round_.relations[SYSTEM_VIEW] = RelationVersions(self._trace(base, SYSTEM_VIEW), added)
        moved = timed.after.clock is not None and timed.after.clock != timed.before.clock
        quiet = moved and not rejected and not table_deltas and self._is_quiet(round_, base)
        number = base.step + (0 if quiet else 1)
        traces = {name: round_.relations[name].after for name in self.kept}
        snapshot = Snapshot(number, traces, round_.states, timed.after.clock, timed.after.waterlines, self.layouts)
        view_deltas = {}
        for name in self.program.views:
            delta = round_.relations[name].delta
            if delta:
                view_deltas[name] = delta[0]
        figures = StepFigures(number, _milliseconds(started), rows, self._figures(round_))
        return Step(number, table_deltas, view_deltas, snapshot, figures, rejected, tuple(timed.late), quiet)

    def _is_quiet(self, round_: Round, base: Snapshot) -> bool:
        """Whether a round has changed nothing that is kept. A state that was not there before is a change."""
        if any(round_.relations[stage.relation].changed for stage in self.stages):
            return False
        return len(round_.states) == len(base.states) and all(base.states.get(n) is state for n, state in round_.states.items())

    def _emitted(self, batches: tuple[Batch, ...]) -> Batch:
        if len(batches) == 1:
            return batches[0]
        return self._compacted(Trace(batches[0].schema, batches))

    def _normalised(self, name: str, parts: list[TableChanges], context: Context) -> tuple[Batch, Normaliser]:
        schema = self.program.schemas[name]
        trace = self._trace(self._snapshot, name)
        normaliser = Normaliser(
            self.program.tables[name], schema, lambda wanted, names: matching_rows(trace, wanted, names, context)
        )
        normaliser.waterlines = self._snapshot.waterlines.get(name, {})
        table = normaliser.delta(parts)
        return Batch.in_memory(weighted(schema.spark), table), normaliser

    def _settled(self, name: str, batch: Batch) -> Batch:
        expected = self._schemas[name]
        if batch.table is not None and [field.name for field in batch.schema.fields] != [field.name for field in expected.fields]:
            raise ValueError(f"the delta of table {name!r} has other columns than the table")
        return self._context({}).spill_if_large(batch)

    def _context(self, relations: Mapping[str, RelationVersions]) -> Context:
        incomplete = self.timing.discarding.relations
        return Context(
            self.sessions, self.batch_views, self.store, relations, by_cost=self._by_cost, incomplete=incomplete, limits=self.limits
        )

    def _round(self, base: Snapshot, timed: TimedStep) -> Round:
        relations: dict[str, RelationVersions] = {}

        def accept(relation: str, versions: RelationVersions, context: Context) -> Mapping[str, RelationVersions]:
            return self.timing.accept(relation, versions, timed, context)

        unobserved = frozenset(view for view in self._ends if not self.has_consumers(view))
        context = replace(self._context(relations), unobserved=unobserved)
        return Round(context, relations, dict(base.states), accept)

    def _trace(self, snapshot: Snapshot, name: str) -> Trace:
        found = snapshot.traces.get(name)
        if found is not None:
            return found
        return Trace(self._schemas[name])

    def _lacks(self, stage: Stage, snapshot: Snapshot) -> bool:
        return lacks(stage, self.kept, snapshot)

    def _figures(self, round_: Round) -> tuple[OperatorFigures, ...]:
        return tuple(round_.figures[stage.relation] for stage in self.stages if stage.relation in round_.figures)

    def _after(self, round_: Round, name: str, base: Snapshot, fresh: Set[str]) -> Trace:
        if name in fresh or name not in base.traces:
            return round_.relations[name].after
        return base.traces[name]

    def _merge(self, due: Callable[[Trace], bool]) -> bool:
        """Merge the traces for which ``due`` holds."""
        with self._lock:
            base = self._snapshot
            traces = {name: trace.merge(self._compacted, self.limits) for name, trace in base.traces.items() if due(trace)}
            states = {name: trace.merge(self._compacted, self.limits) for name, trace in base.states.items() if due(trace)}
            if traces or states:
                self._snapshot = replace(base, traces={**base.traces, **traces}, states={**base.states, **states})
        return bool(traces or states)

    def _compacted(self, trace: Trace) -> Batch:
        return compacted(trace, self._context({}))


def _milliseconds(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)
