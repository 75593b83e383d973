"""The circuit: a compiled program with its contents, brought forward step by step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame

from airflow_pipelines.engine.arrow import can_group, consolidate, netted
from airflow_pipelines.engine.batch import SMALL_ROWS, Batch, weighted
from airflow_pipelines.engine.changes import TableChanges
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.failures import step_error
from airflow_pipelines.engine.figures import OperatorFigures, StepFigures
from airflow_pipelines.engine.frames import Frames, summed
from airflow_pipelines.engine.lateness import ERROR_VIEW, Late, LateColumn, Waterlines
from airflow_pipelines.engine.lookup import matching_rows
from airflow_pipelines.engine.normalise import Normaliser, Rejected
from airflow_pipelines.engine.operators.accumulate import accumulator_state, evaluate_accumulators
from airflow_pipelines.engine.operators.context import SMALL_INPUT, Context, Mode, RelationVersions
from airflow_pipelines.engine.operators.full import evaluate_full
from airflow_pipelines.engine.operators.keyed import evaluate_keyed
from airflow_pipelines.engine.operators.linear import evaluate_linear
from airflow_pipelines.engine.operators.recursive import evaluate_recursive
from airflow_pipelines.engine.operators.result import Outcome, stage_schema
from airflow_pipelines.engine.operators.touched import evaluate_touched, touched_state
from airflow_pipelines.engine.python_functions import register_functions
from airflow_pipelines.engine.schema import RelationSchema
from airflow_pipelines.engine.sessions import SparkSessions
from airflow_pipelines.engine.snapshot import Snapshot, owner
from airflow_pipelines.engine.storage import BatchStore
from airflow_pipelines.engine.timing import TimedStep, Timing
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.identifiers import SYSTEM_VIEW
from airflow_pipelines.sql.plan.markers import Marker
from airflow_pipelines.sql.plan.nodes import Aggregate, Full, Keyed, Recursive, Stage, ViewPlan
from airflow_pipelines.sql.program import Program, ViewKind

STRATEGIES = ("auto", "incremental", "full")
DEAD_VIEWS = 200
"""Spark may remember this many batches that are gone while there is no idle moment to forget them."""
HARD_LIMIT = 24
"""A trace with more batches than this is merged before the next step, idle or not."""


class Compiled(Protocol):
    """What the circuit needs of a compiled program."""

    @property
    def program(self) -> Program:
        """Tables and views."""

    @property
    def schemas(self) -> Mapping[str, RelationSchema]:
        """Schemas of tables and views."""

    @property
    def plans(self) -> Mapping[str, ViewPlan]:
        """Plans of the views."""

    @property
    def markers(self) -> Sequence[Marker]:
        """Hidden relations of one row that the views read."""

    @property
    def late_columns(self) -> Sequence[LateColumn]:
        """Columns of tables and views that have lateness."""


@dataclass(frozen=True, slots=True)
class Step:
    """An evaluated step that nobody sees yet. Deltas without rows are left out.

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


@dataclass(slots=True)
class _Round:
    """The evaluation of one step while it goes on."""

    context: Context
    relations: dict[str, RelationVersions]
    states: dict[str, Trace]
    time: TimedStep
    figures: list[OperatorFigures] = field(default_factory=list)


class Circuit:
    """Keeps every view of a program equal to its query.

    :meth:`step` (or :meth:`apply`) evaluates a step over the current snapshot and leaves the circuit as it was; :meth:`publish`
    makes the step current. Steps are made by one thread at a time; reading snapshots is free for all.
    """

    def __init__(self, compiled: Compiled, sessions: SparkSessions, store: BatchStore, strategy: str = "auto") -> None:
        """An empty circuit.

        :param compiled: the program
        :param sessions: sessions for small and large operators
        :param store: where large batches go
        :param strategy: ``auto`` or ``incremental`` use incremental rules where there are any, ``full`` recomputes every view
        :raises ValueError: for an unknown strategy
        """
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy {strategy!r} is none of {', '.join(STRATEGIES)}")
        self.compiled = compiled
        self.sessions = sessions
        self.store = store
        self.frames = Frames(sessions)
        for session in (sessions.small, sessions.narrow, sessions.large):
            register_functions(session, compiled.program.definitions.python_functions)
        self.stages = _stages(compiled, strategy)
        self.timing = Timing(compiled, sessions)
        self.kept = (_kept(compiled.program, self.stages) | {SYSTEM_VIEW}) - self.timing.markers.markers.keys()
        self._lock = threading.RLock()
        self._snapshot = Snapshot()

    @property
    def snapshot(self) -> Snapshot:
        """The contents after the newest published step."""
        return self._snapshot

    def step(self, changes: Iterable[TableChanges], clock: int | None = None) -> Step:
        """Normalise the changes of all tables (in arrival order) and evaluate one step over them.

        :param clock: the time, in microseconds since the epoch, to which the clock moves with this step
        :raises StepError: when a view cannot be evaluated
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
                if isinstance(error, ValueError):
                    raise
                raise step_error(name, error) from error
            rejected += normaliser.rejected
            late += [Late(name, rows, normaliser.waterlines) for rows in normaliser.late]
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
        """Make ``snapshot`` current. Relations and states that it lacks are empty until :meth:`bootstrap` fills them."""
        known = set(self.kept)
        states = {stage.relation for stage in self.stages if stage.keeps_state}
        with self._lock:
            self._snapshot = replace(
                snapshot,
                traces={name: trace for name, trace in snapshot.traces.items() if name in known},
                states={name: trace for name, trace in snapshot.states.items() if name in states},
            )

    def bootstrap(self, views: Set[str], clock: int | None = None) -> Step:
        """Evaluate ``views`` anew from what they read; other views keep what they have and emit nothing.

        Contents that ``views`` need of a relation that keeps none are evaluated on the way.

        :param clock: the time to which the clock moves, unless it is further already
        :returns: a step whose ``view_deltas`` are the full contents of ``views``
        :raises StepError: when a view cannot be evaluated
        """
        started = time.monotonic()
        base = self._snapshot
        owners = self._owners()
        tables = self.compiled.program.tables
        # What is evaluated starts from nothing, and everything it reads is given as a delta.
        fresh = {stage.relation for stage in self.stages if owners[stage.relation] in views or self._lacks(stage, base)}
        round_ = self._round(base, self.timing.begin(base, clock if base.clock is None else None, {}))
        for name in (*tables, SYSTEM_VIEW):
            trace = self._trace(base, name)
            round_.relations[name] = RelationVersions(replace(trace, batches=()), trace.batches)
        times = round_.time.after
        round_.relations |= self.timing.markers.fresh(times)
        needed = self._needed(fresh, base)
        for stage in self.stages:
            trace = self._trace(base, stage.relation)
            if stage.relation in needed:
                self._evaluate(stage, round_, RelationVersions(replace(trace, batches=())), fresh_state=True)
            else:
                round_.relations[stage.relation] = RelationVersions(replace(trace, batches=()), trace.batches)
        traces = {name: self._after(round_, name, base, fresh) for name in self.kept}
        states = {name: state for name, state in round_.states.items() if name in fresh or name not in base.states}
        snapshot = Snapshot(base.step + 1, traces, {**base.states, **states}, times.clock, times.waterlines)
        deltas = {
            name: self._emitted(round_.relations[name].delta)
            for name in self.compiled.program.views
            if name in views and round_.relations[name].delta
        }
        figures = StepFigures(snapshot.step, _milliseconds(started), 0, tuple(round_.figures))
        return Step(snapshot.step, {}, deltas, snapshot, figures)

    def relation(self, name: str, snapshot: Snapshot | None = None) -> DataFrame:
        """The contents of a relation as a plain multiset.

        :param snapshot: the snapshot to read, by default the current one
        :raises KeyError: when no contents of the relation are kept
        """
        at = snapshot or self._snapshot
        small = name in self.kept and self._trace(at, name).is_small
        session = self.sessions.small if small else self.sessions.large
        return session.sql(self.contents(name, at, single_partition=small))

    def contents(self, name: str, snapshot: Snapshot, *, single_partition: bool = False) -> str:
        """A query, for any session of the application, for the contents of a relation as a plain multiset.

        :raises KeyError: when no contents of the relation are kept
        """
        if name not in self.kept:
            raise KeyError(name)
        return self.frames.contents(self._trace(snapshot, name), single_partition=single_partition)

    def maintain(self) -> bool:
        """Merge traces that have many batches; to be called when there is nothing else to do.

        :returns: whether something was merged
        """
        merged = self._merge(lambda trace: trace.needs_merge)
        self.frames.sweep()
        return merged

    def close(self) -> None:
        """Forget all batches in Spark."""
        self.frames.close()

    def _apply(self, deltas: Mapping[str, Batch], timed: TimedStep, started: float, rejected: tuple[Rejected, ...] = ()) -> Step:
        self._merge(lambda trace: len(trace.batches) > HARD_LIMIT)
        self.frames.sweep(keep=DEAD_VIEWS)
        base = self._snapshot
        round_ = self._round(base, timed)
        table_deltas = {name: self._settled(name, batch) for name, batch in deltas.items() if batch.rows}
        rows = sum(batch.rows for name, batch in table_deltas.items() if name != SYSTEM_VIEW)
        round_.relations |= self.timing.markers.versions(timed.before, timed.after)
        for name in self.compiled.program.tables:
            added = (table_deltas[name],) if name in table_deltas else ()
            round_.relations[name] = RelationVersions(self._trace(base, name), added)
        for stage in self.stages:
            before = self._trace(base, stage.relation)
            changed = any(round_.relations[name].changed for name in stage.reads)
            if changed or (stage.starts_with_rows and self._lacks(stage, base)):
                self._evaluate(stage, round_, RelationVersions(before), fresh_state=False)
            else:
                round_.relations[stage.relation] = RelationVersions(before)
                if stage.keeps_state and not stage.starts_with_rows:
                    round_.states.setdefault(stage.relation, _empty_state(stage))
        reported = self.timing.reports(timed.late) if SYSTEM_VIEW not in table_deltas else None
        if reported is not None:
            table_deltas[SYSTEM_VIEW] = reported
        added = (table_deltas[SYSTEM_VIEW],) if SYSTEM_VIEW in table_deltas else ()
        round_.relations[SYSTEM_VIEW] = RelationVersions(self._trace(base, SYSTEM_VIEW), added)
        moved = timed.after.clock is not None and timed.after.clock != timed.before.clock
        quiet = moved and not rejected and not table_deltas and self._is_quiet(round_, base)
        number = base.step + (0 if quiet else 1)
        traces = {name: round_.relations[name].after for name in self.kept}
        snapshot = Snapshot(number, traces, round_.states, timed.after.clock, timed.after.waterlines)
        view_deltas = {}
        for name in self.compiled.program.views:
            delta = round_.relations[name].delta
            if delta:
                view_deltas[name] = delta[0]
        figures = StepFigures(number, _milliseconds(started), rows, tuple(round_.figures))
        return Step(number, table_deltas, view_deltas, snapshot, figures, rejected, tuple(timed.late), quiet)

    def _is_quiet(self, round_: _Round, base: Snapshot) -> bool:
        """Whether a round has changed nothing that is kept. A state that was not there before is a change."""
        if any(round_.relations[stage.relation].changed for stage in self.stages):
            return False
        return len(round_.states) == len(base.states) and all(base.states.get(n) is state for n, state in round_.states.items())

    def _evaluate(self, stage: Stage, round_: _Round, before: RelationVersions, *, fresh_state: bool) -> None:
        """Evaluate one stage and note its delta and its state's."""
        started = time.monotonic()
        state = None if fresh_state else round_.states.get(stage.relation)
        try:
            stored = before.before if stage.relation in self.kept else None
            outcome = _evaluated(stage, round_.context, state, stored)
            delta = outcome.delta if outcome.netted else self._netted(outcome.delta)
        except StepError:
            raise
        except Exception as error:
            raise step_error(stage.relation.partition("$")[0] or stage.relation, error) from error
        versions = replace(before, delta=(delta,) if delta.rows else ())
        round_.relations[stage.relation] = self.timing.accept(stage.relation, versions, round_.time, round_.context)
        if outcome.state is not None:
            known = state if state is not None else _empty_state(stage)
            round_.states[stage.relation] = known.append(outcome.state)
        rows_in = sum(batch.rows for name in stage.reads for batch in round_.relations[name].delta)
        view = self._owners()[stage.relation]
        round_.figures.append(OperatorFigures(view, stage.strategy, rows_in, delta.rows, _milliseconds(started)))

    def _netted(self, delta: Batch) -> Batch:
        """The delta without rows that come and go at once."""
        if delta.insert_only or delta.rows == 0:
            return delta
        if delta.table is not None:
            return Batch.in_memory(delta.schema, netted(delta.table))
        query = summed(Trace(delta.schema), self.frames.table(delta))
        return self._context({}).run(query, delta.schema, Mode.LARGE)

    def _emitted(self, batches: tuple[Batch, ...]) -> Batch:
        if len(batches) == 1:
            return batches[0]
        return self._consolidated(Trace(batches[0].schema, batches))

    def _normalised(self, name: str, parts: list[TableChanges], context: Context) -> tuple[Batch, Normaliser]:
        schema = self.compiled.schemas[name]
        trace = self._trace(self._snapshot, name)
        normaliser = Normaliser(
            self.compiled.program.tables[name], schema, lambda wanted, names: matching_rows(trace, wanted, names, context)
        )
        normaliser.waterlines = self._snapshot.waterlines.get(name, {})
        table = normaliser.delta(parts)
        return Batch.in_memory(weighted(schema.spark), table), normaliser

    def _settled(self, name: str, batch: Batch) -> Batch:
        expected = self._schemas()[name]
        if batch.table is not None and [field.name for field in batch.schema.fields] != [field.name for field in expected.fields]:
            raise ValueError(f"the delta of table {name!r} has other columns than the table")
        return self._context({}).settle(batch)

    def _context(self, relations: Mapping[str, RelationVersions]) -> Context:
        return Context(self.sessions, self.frames, self.store, relations)

    def _round(self, base: Snapshot, timed: TimedStep) -> _Round:
        relations: dict[str, RelationVersions] = {}
        return _Round(self._context(relations), relations, dict(base.states), timed)

    def _trace(self, snapshot: Snapshot, name: str) -> Trace:
        found = snapshot.traces.get(name)
        if found is not None:
            return found
        return Trace(self._schemas()[name])

    def _schemas(self) -> Mapping[str, Any]:
        if not hasattr(self, "_schema_cache"):
            tables = {name: weighted(self.compiled.schemas[name].spark) for name in self.compiled.program.tables}
            stages = {stage.relation: weighted(stage_schema(stage)) for stage in self.stages}
            self._schema_cache = {**tables, **stages, SYSTEM_VIEW: weighted(ERROR_VIEW.spark)}
        return self._schema_cache

    def _owners(self) -> Mapping[str, str]:
        """The view that each stage belongs to."""
        views = self.compiled.program.views
        return {stage.relation: owner(stage.relation, views.keys()) for stage in self.stages}

    def _lacks(self, stage: Stage, snapshot: Snapshot) -> bool:
        """Whether something that the stage keeps is not in the snapshot."""
        if stage.keeps_state and stage.relation not in snapshot.states:
            return True
        return stage.relation in self.kept and stage.relation not in snapshot.traces

    def _needed(self, fresh: Set[str], base: Snapshot) -> set[str]:
        """The stages to evaluate so that ``fresh`` ones can be: those whose contents are not kept come along."""
        needed = set(fresh)
        tables = self.compiled.program.tables
        for stage in reversed(self.stages):
            if stage.relation in needed:
                needed |= {name for name in stage.reads if name not in tables and name not in base.traces}
        return needed

    def _after(self, round_: _Round, name: str, base: Snapshot, fresh: Set[str]) -> Trace:
        if name in fresh or name not in base.traces:
            return round_.relations[name].after
        return base.traces[name]

    def _merge(self, due: Any) -> bool:
        """Merge the traces for which ``due`` holds."""
        with self._lock:
            base = self._snapshot
            traces = {name: trace.merge(self._consolidated) for name, trace in base.traces.items() if due(trace)}
            states = {name: trace.merge(self._consolidated) for name, trace in base.states.items() if due(trace)}
            if traces or states:
                self._snapshot = replace(base, traces={**base.traces, **traces}, states={**base.states, **states})
        return bool(traces or states)

    def _consolidated(self, trace: Trace) -> Batch:
        """All rows of a trace added up in one batch."""
        keys = [column for column in Batch.empty(trace.schema).table.schema if column.name not in trace.sums]
        context = self._context({})
        if trace.in_memory and trace.rows <= SMALL_INPUT and can_group(keys):
            import pyarrow as pa

            table = pa.concat_tables([batch.table for batch in trace.batches])
            return context.settle(Batch.in_memory(trace.schema, consolidate(table, trace.sums)))
        small = trace.in_memory and trace.rows <= SMALL_ROWS
        rows = self.frames.rows(trace.batches, single_partition=small)
        return context.run(summed(trace, str(rows)), trace.schema, Mode.SMALL if small else Mode.LARGE)


def _stages(compiled: Compiled, strategy: str) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    for name in compiled.program.views:
        plan = compiled.plans[name]
        stages += (plan.full, *plan.after) if strategy == "full" else (*plan.stages, *plan.after)
    return tuple(stages)


def _kept(program: Program, stages: Iterable[Stage]) -> frozenset[str]:
    """The relations whose contents are kept."""
    kept = set(program.tables) | {name for name, view in program.views.items() if view.kind is ViewKind.MATERIALIZED}
    for stage in stages:
        kept |= stage.rereads
        if stage.keeps_contents:
            kept.add(stage.relation)
    return frozenset(kept)


def _empty_state(stage: Stage) -> Trace:
    node = stage.node
    if isinstance(node, Aggregate):
        return accumulator_state(node) if node.is_linear else touched_state(stage, node)
    return Trace(weighted(stage_schema(stage)))


def _evaluated(stage: Stage, context: Context, state: Trace | None, stored: Trace | None) -> Outcome:
    """The outcome of one stage; ``stored`` are its contents before the step where they are kept."""
    match stage.node:
        case Full():
            return evaluate_full(stage, stage.node, context, stored or Trace(weighted(stage_schema(stage))))
        case Keyed():
            return evaluate_keyed(stage, stage.node, context, stored)
        case Aggregate():
            if stage.node.is_linear:
                return evaluate_accumulators(stage, stage.node, context, state)
            return evaluate_touched(stage, stage.node, context, state)
        case Recursive():
            return evaluate_recursive(stage, stage.node, context, state, stored or Trace(weighted(stage_schema(stage))))
        case _:
            return evaluate_linear(stage, stage.node, context)


def _milliseconds(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)
