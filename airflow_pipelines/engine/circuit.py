"""The circuit: a program with its contents, brought forward step by step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import pyspark.sql.functions as f
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.arrival_order import restored
from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.compaction import compacted, in_canonical_form
from airflow_pipelines.engine.evaluation import Evaluation, EvaluationAnew
from airflow_pipelines.engine.functions.python_functions import register_functions
from airflow_pipelines.engine.held_memory import held_memory
from airflow_pipelines.engine.layout import CANONICAL_FORM
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.lookup.index import file_index
from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.engine.operators.context import Context
from airflow_pipelines.engine.operators.large_contents import LargeContents
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.relation_versions import RelationVersions
from airflow_pipelines.engine.operators.stream_states import StreamStates
from airflow_pipelines.engine.pending import Collected, Pending
from airflow_pipelines.engine.plain_contents import plain_contents
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.scheduler import Workers
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.stages import (
    lacks,
    needed_for,
    restored_states,
)
from airflow_pipelines.engine.state import Kept
from airflow_pipelines.engine.step import Step
from airflow_pipelines.engine.step_stats import StepStats
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.engine.table_deltas import table_deltas
from airflow_pipelines.engine.time.lateness import Waterlines
from airflow_pipelines.engine.time.timing import TimedStep, Timing
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.engine.wiring import wired
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.rows.changes import TableChanges

_PASSING = 4
"""Rows that the step alone needs stay in memory up to so many times the bytes of a batch that is held."""


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
        streams: StreamRuntime | None = None,
    ) -> None:
        """An empty circuit.

        :param program: the program
        :param sessions: sessions for small and large operators
        :param store: where large batches go
        :param strategy: ``incremental`` uses incremental rules where there are any; so does ``auto``, unless most of what a stage
            reads has changed; ``full`` recomputes every view
        :param limits: what counts as small and as large
        :param streams: runs the program's stream program, where it has one
        :raises ValueError: for an unknown strategy
        """
        self.program = program
        self.sessions = sessions
        self.store = store
        self.limits = limits
        self.streams = streams
        self.batch_views = BatchViews(sessions, limits)
        for session in sessions.each:
            register_functions(session, program.definitions.python_functions)
        self.wiring = wired(program, strategy)
        self.stages, self.operators, self.kept = self.wiring.stages, self.wiring.operators, self.wiring.kept
        self.layouts: Mapping[str, str] = self.wiring.layouts
        """How the contents and the states of relations are made, by relation."""
        self.has_consumers: Callable[[str], bool] = lambda _: True
        """Whether somebody outside the circuit takes the deltas of a view that has no contents; asked in every step."""
        self.awaited: Set[str] = frozenset()
        """Views whose contents are still to be evaluated after a change of the program, and cannot be read before."""
        # The rules are those of the incremental stages; to recompute, all rows are needed.
        self.timing = Timing(program, sessions, self.wiring.readers, () if strategy == "full" else program.retention)
        self._memory = held_memory(sessions.small.sparkContext)
        self._by_cost = strategy == "auto"
        self._workers = Workers(sessions.small.sparkContext)
        self._large_contents = LargeContents()
        self._stream_states = StreamStates(streams, self.operators, lambda batch: self._context({}).spill_if_large(batch))
        self._lock = threading.RLock()
        self._snapshot = Snapshot(layouts=self.layouts)
        self._evaluation_under_way: Evaluation | None = None
        self._bootstrap_under_way: EvaluationAnew | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The contents after the newest published step."""
        return self._snapshot

    @property
    def progress(self) -> tuple[int, int]:
        """How many operators of the step under way have been evaluated, and how many are being evaluated."""
        evaluation = self._evaluation_under_way
        return (0, 0) if evaluation is None else evaluation.progress

    @property
    def bootstrap_progress(self) -> tuple[int, int] | None:
        """How many of the stored rows that views are evaluated anew from have been read, and how many there are; None at other
        times. Rows that several operators read count for each of them.
        """
        anew = self._bootstrap_under_way
        return None if anew is None else anew.progress

    @property
    def follows_clock(self) -> bool:
        """Whether an operator reads the clock, which therefore ticks."""
        return self.timing.uses_clock

    @property
    def steps_add_up(self) -> bool:
        """Whether one step over the sum of several steps' deltas gives the same as these steps."""
        if self.program.markers or self.program.late_columns:
            return False
        return not any(operator.depends_on_order or operator.has_timers for operator in self.operators)

    def next_tick(self) -> int | None:
        """While views read the clock, the first instant after the newest step, in microseconds since the epoch; None otherwise.

        The clock's resolution says when the tick comes.
        """
        if not self.timing.ticking:
            return None
        return 0 if self._snapshot.clock is None else self._snapshot.clock + 1

    def next_timer(self) -> int | None:
        """The next instant at which an operator has something to do without any input, in microseconds since the epoch."""
        states = self._snapshot.states
        due = (operator.timer(states.get(operator.relation, {})) for operator in self.operators if operator.has_timers)
        return min((instant for instant in due if instant is not None), default=None)

    def step(self, changes: Iterable[TableChanges], clock: int | None = None) -> Step:
        """Normalise the changes of all tables (in arrival order) and evaluate one step over them.

        :param clock: the time, in microseconds since the epoch, to which the clock moves with this step
        :raises StepError: when a view cannot be evaluated
        :raises StorageError: when rows cannot be read or written
        :raises ValueError: when a change is not allowed for its table
        """
        started = time.monotonic()
        found = table_deltas(changes, self.program, self.wiring, self._snapshot, self._context({}))
        timed = self.timing.begin(self._snapshot, clock, found.deltas)
        timed.late += found.late
        return self._apply(found.deltas, timed, started, found.rejected)

    def collect(self, changes: Sequence[TableChanges], pending: Pending) -> Collected:
        """Normalise the changes of tables without evaluating a step over them; what is current stays as it is.

        :param changes: in arrival order
        :param pending: what was collected before, on top of the current snapshot
        :returns: what waits now, and the changes that were left out
        :raises StepError: when stored rows cannot be looked up
        :raises StorageError: when rows cannot be read or written
        :raises ValueError: when a change is not allowed for its table
        """
        base = pending.on(self._snapshot)
        found = table_deltas(changes, self.program, self.wiring, base, self._context({}), pending.arrived)
        deltas = dict(pending.deltas)
        for name, delta in found.deltas.items():
            if delta.rows:
                trace = deltas.get(name, Trace(self.wiring.schemas[name])).append(self._settled(name, delta))
                deltas[name] = trace.merge(self._compacted, self.limits) if trace.needs_merge(self.limits) else trace
        arrived = pending.arrived + sum(change.rows.num_rows for change in changes)
        return Collected(Pending(deltas, (*pending.late, *found.late), arrived), found.rejected)

    def step_over(self, pending: Pending, clock: int | None = None) -> Step:
        """Evaluate one step over all that was collected.

        :param pending: what was collected on top of the current snapshot
        :param clock: the time to which the clock moves with this step
        :raises StepError: when a view cannot be evaluated
        :raises StorageError: when rows cannot be read or written
        """
        started = time.monotonic()
        deltas = {name: self._emitted(trace.batches) for name, trace in pending.deltas.items() if trace.batches}
        timed = self.timing.begin(self._snapshot, clock, deltas)
        timed.late += pending.late
        return self._apply(deltas, timed, started)

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
        if self.streams is not None:
            self.streams.published()

    def open_streams(self, now: int | None = None) -> None:
        """Start the stream program, where there is one, with what the current snapshot has of its state.

        :param now: the time in microseconds since the epoch; None where steps follow that have a time of their own
        """
        self._stream_states.open(self._snapshot, now)
        with self._lock:
            self._snapshot = self._with_timers(self._snapshot)

    def save_streams(self) -> None:
        """Take what has changed in the state of the stream program since the last time into the current snapshot.

        :raises StreamStateLostError: when the newest step failed
        """
        gained = self._stream_states.changes(self._snapshot)
        with self._lock:
            self._snapshot = self._stream_states.gaining(self._snapshot, gained)

    def _with_timers(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot that knows when the stream program wants to be called."""
        return self._stream_states.gaining(snapshot, self._stream_states.timers(snapshot))

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
        states = {
            operator.relation: restored_states(operator, snapshot.states[operator.relation])
            for operator in self.operators
            if operator.states and operator.relation in same and operator.relation in snapshot.states
        }
        context = self._context({})
        traces = {
            name: restored(name, trace, self.wiring.ordered, context) for name, trace in snapshot.traces.items() if name in known
        }
        if snapshot.canonical_form != CANONICAL_FORM:
            traces = {name: in_canonical_form(trace, context) for name, trace in traces.items()}
        with self._lock:
            self._snapshot = replace(
                snapshot,
                traces=traces,
                states=states,
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
        lacking = {operator.relation for operator in self.operators if self._lacks(operator, base)}
        if not lacking or base.is_initial:
            return frozenset()
        _, snapshot = self._evaluated_anew(lacking, base, None)
        with self._lock:
            self._snapshot = snapshot
        return frozenset(self.wiring.owners[name] for name in lacking)

    def bootstrap(self, views: Set[str], clock: int | None = None, shown: Set[str] = frozenset()) -> Step:
        """Evaluate ``views`` anew from what they read; other views keep what they have and emit nothing, except those in ``shown``.

        Contents that ``views`` need of a relation that keeps none are evaluated on the way.

        :param clock: the time to which the clock moves, unless it is further already
        :param shown: views whose contents are there already and are emitted as well
        :returns: a step whose ``view_deltas`` are the full contents of ``views`` and of those ``shown`` that keep theirs
        :raises StepError: when a view cannot be evaluated
        """
        started = time.monotonic()
        base = self._snapshot
        fresh = {
            operator.relation
            for operator in self.operators
            if self.wiring.owners[operator.relation] in views or self._lacks(operator, base)
        }
        evaluation, evaluated = self._evaluated_anew(fresh, base, clock)
        snapshot = self._with_timers(replace(evaluated, step=base.step + 1))
        deltas = {
            name: self._emitted(evaluation.relations[name].delta)
            for name in self.program.views
            if name in views and evaluation.relations[name].delta
        }
        deltas |= {name: self._compacted(base.traces[name]) for name in shown if name in base.traces and base.traces[name].batches}
        stats = StepStats(snapshot.step, _milliseconds(started), 0, evaluation.stats_of(self.operators))
        return Step(snapshot.step, {}, deltas, snapshot, stats)

    def _evaluated_anew(self, fresh: Set[str], base: Snapshot, clock: int | None) -> tuple[Evaluation, Snapshot]:
        """The evaluation of ``fresh`` stages from nothing, with all that they read as deltas, and ``base`` with what it gives."""
        if self.streams is not None:
            self.streams.bootstrap(self.streams.fresh_inputs)
        needed = needed_for(fresh, self.stages, self.program.tables, base.traces.keys())
        timed = self.timing.begin(base, clock if base.clock is None else None, {})
        evaluation = self._evaluation(base, timed, version=base.step)
        for name, schema in self.wiring.schemas.items():
            batches = () if name in needed else self._trace(base, name).batches
            evaluation.relations[name] = RelationVersions(Trace(schema), batches)
        evaluation.relations.update(self.timing.markers.fresh(timed.after))

        def evaluate(operator: Operator[Any]) -> None:
            nothing = Trace(self.wiring.schemas[operator.relation]) if operator.relation in self.kept else None
            evaluation.evaluate(operator, self.wiring.owners[operator.relation], Kept(contents=nothing))

        readers = [operator for operator in self.operators if operator.relation in needed]
        rows = {
            operator.relation: sum(batch.rows for name in operator.reads for batch in evaluation.relations[name].delta)
            for operator in readers
        }
        self._bootstrap_under_way = EvaluationAnew(evaluation, rows)
        try:
            self._workers.run(self.operators, lambda operator: operator.relation in needed, evaluate)
        finally:
            self._bootstrap_under_way = None
            if self.streams is not None:
                self.streams.bootstrap(None)
        times = timed.after
        traces = {name: self._after(evaluation, name, base, fresh) for name in self.kept}
        states = {name: state for name, state in evaluation.states.items() if name in fresh or name not in base.states}
        snapshot = Snapshot(base.step, traces, {**base.states, **states}, times.clock, times.waterlines, self.layouts)
        return evaluation, snapshot

    def relation(self, name: str, snapshot: Snapshot | None = None) -> DataFrame:
        """The contents of a relation as a plain multiset.

        :param snapshot: the snapshot to read, by default the current one
        :raises KeyError: when no contents of the relation are kept
        """
        at = snapshot or self._snapshot
        small = name in self.kept and self._trace(at, name).is_small(self.limits)
        session = self.sessions.small if small else self.sessions.large
        return session.sql(self.contents(name, at, single_partition=small))

    def materialized(self, name: str) -> Batch:
        """The rows of a relation after the newest step, as a batch of inserts that no later step changes.

        :param name: the relation
        :raises KeyError: when no contents of the relation are kept
        """
        frame = self.relation(name).withColumn(WEIGHT, f.lit(1).cast("bigint"))
        schema = weighted(StructType(frame.schema.fields[:-1]))
        if self._trace(self._snapshot, name).is_small(self.limits):
            return Batch.in_memory(schema, collected(frame))
        return self._context({}).spill(frame, schema)

    def contents(self, name: str, snapshot: Snapshot, *, single_partition: bool = False) -> str:
        """A query for the contents of a relation as a plain multiset, for any session of the application that knows VALUE_BYTES.

        :param name: the relation
        :param snapshot: the contents after which step
        :param single_partition: whether the rows are to be in one partition, which saves exchanges when they are few
        :raises KeyError: when no contents of the relation are kept
        """
        if name not in self.kept:
            raise KeyError(name)
        trace, table = self._trace(snapshot, name), self.program.tables.get(name)
        key = (table.primary_key if table is not None else None) or ()
        query = None if single_partition else self._large_contents.query(trace, key, self._context({}))
        return self.batch_views.with_views(query or self.batch_views.contents(trace, single_partition=single_partition))

    def plain_contents(self, name: str, snapshot: Snapshot, session: SparkSession) -> DataFrame | None:
        """The same as a frame without a query, where a relation is small and its rows need no Spark to be put together.

        :param session: the session of the frame
        :returns: None for any other relation
        :raises KeyError: when no contents of the relation are kept
        """
        if name not in self.kept:
            raise KeyError(name)
        return plain_contents(self._trace(snapshot, name), session)

    def maintain(self) -> bool:
        """Merge traces that have many batches, and forget what late rows can no longer touch; for when there is nothing else to do.

        :returns: whether something was merged
        """
        merged = self._merge(lambda trace: trace.needs_merge(self.limits), self._merged)
        with self._lock:
            self._snapshot = self.timing.retention.apply(self._snapshot, self._context({}))
        self._make_room()
        self.batch_views.sweep()
        if merged:
            file_index(self.store).forget()
        return merged

    def compact(self) -> bool:
        """Merge all batches of every trace into one, however few they are.

        :returns: whether something was merged
        """
        merged = self._merge(lambda trace: len(trace.batches) > 1, lambda trace: trace.compact(self._compacted))
        self.batch_views.sweep()
        if merged:
            file_index(self.store).forget()
        return merged

    def interrupt(self) -> None:
        """End what the stream program does at the moment: a step under way fails. May be called from any thread."""
        if self.streams is not None:
            self.streams.close(0)

    def close(self) -> None:
        """Forget all batches in Spark, and end the threads and the process of the stream program."""
        if self.streams is not None:
            self.streams.close()
        self._workers.close()
        self._large_contents.forget()
        self.batch_views.close()

    def _apply(self, deltas: Mapping[str, Batch], timed: TimedStep, started: float, rejected: tuple[Rejected, ...] = ()) -> Step:
        self._merge(lambda trace: len(trace.batches) > self.limits.hard_limit, self._merged)
        self._make_room()
        self.batch_views.sweep(keep=self.limits.dead_views)
        base = self._snapshot
        evaluation = self._evaluation(base, timed, version=base.step + 1)
        table_deltas = {name: self._given(name, batch) for name, batch in deltas.items() if batch.rows}
        table_rows = {name: batch.rows for name, batch in table_deltas.items() if name != SYSTEM_VIEW}
        for name in self.wiring.schemas:
            added = (table_deltas[name],) if name in table_deltas else ()
            evaluation.relations[name] = RelationVersions(self._trace(base, name), added)
        evaluation.relations.update(self.timing.markers.versions(timed.before, timed.after))

        def due(operator: Operator[Any]) -> bool:
            states = evaluation.states.get(operator.relation, {})
            if operator.is_due(evaluation.changed(operator), timed.after.clock, states):
                return True
            if operator.starts_with_rows:
                return self._lacks(operator, base)
            if operator.states and not states:
                evaluation.states[operator.relation] = operator.empty_states()
            return False

        def evaluate(operator: Operator[Any]) -> None:
            contents = self._trace(base, operator.relation) if operator.relation in self.kept else None
            kept = Kept(evaluation.states.get(operator.relation), contents)
            evaluation.evaluate(operator, self.wiring.owners[operator.relation], kept)

        self._evaluation_under_way = evaluation
        self._workers.run(self.operators, due, evaluate)
        self._evaluation_under_way = None
        reported = self.timing.reports(timed.late) if SYSTEM_VIEW not in table_deltas else None
        if reported is not None:
            table_deltas[SYSTEM_VIEW] = reported
        added = (table_deltas[SYSTEM_VIEW],) if SYSTEM_VIEW in table_deltas else ()
        evaluation.relations[SYSTEM_VIEW] = RelationVersions(self._trace(base, SYSTEM_VIEW), added)
        moved = timed.after.clock is not None and timed.after.clock != timed.before.clock
        quiet = moved and not rejected and not table_deltas and evaluation.is_quiet(base.states)
        number = base.step + (0 if quiet else 1)
        traces = {name: evaluation.relations[name].after for name in self.kept}
        snapshot = Snapshot(number, traces, evaluation.states, timed.after.clock, timed.after.waterlines, self.layouts)
        view_deltas = {}
        for name in self.program.views:
            delta = evaluation.relations[name].delta
            if delta:
                view_deltas[name] = delta[0]
        operators = evaluation.stats_of(self.operators)
        stats = StepStats(number, _milliseconds(started), sum(table_rows.values()), operators, table_rows)
        return Step(number, table_deltas, view_deltas, snapshot, stats, rejected, tuple(timed.late), quiet)

    def _emitted(self, batches: tuple[Batch, ...]) -> Batch:
        if len(batches) == 1:
            return batches[0]
        return self._compacted(Trace(batches[0].schema, batches))

    def _given(self, name: str, batch: Batch) -> Batch:
        """The delta of a table for the length of a step.

        Its rows are in memory already. Where the table keeps none of them, they need not go to files before a query asks for them.
        """
        context = self._context({})
        if name in self.kept or context.has_room(batch) or batch.memory_bytes > _PASSING * self.limits.held_bytes:
            return self._settled(name, batch)
        return batch.passing(self.store)

    def _settled(self, name: str, batch: Batch) -> Batch:
        expected = self.wiring.schemas[name]
        if batch.table is not None and [field.name for field in batch.schema.fields] != [field.name for field in expected.fields]:
            raise ValueError(f"the delta of table {name!r} has other columns than the table")
        return self._context({}).spill_if_large(batch)

    def _context(self, relations: Mapping[str, RelationVersions]) -> Context:
        incomplete = self.timing.retention.relations
        return Context(
            self.sessions,
            self.batch_views,
            self.store,
            relations,
            by_cost=self._by_cost,
            incomplete=incomplete,
            limits=self.limits,
            streams=self.streams,
            memory=self._memory,
        )

    def _evaluation(self, base: Snapshot, timed: TimedStep, version: int) -> Evaluation:
        relations: dict[str, RelationVersions] = {}

        def accept(relation: str, versions: RelationVersions, context: Context) -> Mapping[str, RelationVersions]:
            return self.timing.accept(relation, versions, timed, context)

        unobserved = frozenset(view for view in self.wiring.unread if not self.has_consumers(view))
        context = replace(self._context(relations), unobserved=unobserved, clock=timed.after.clock, version=version)
        return Evaluation(context, relations, dict(base.states), accept)

    def _trace(self, snapshot: Snapshot, name: str) -> Trace:
        found = snapshot.traces.get(name)
        if found is not None:
            return found
        return Trace(self.wiring.schemas[name])

    def _lacks(self, operator: Operator[Any], snapshot: Snapshot) -> bool:
        return lacks(operator, self.kept, snapshot)

    def _after(self, evaluation: Evaluation, name: str, base: Snapshot, fresh: Set[str]) -> Trace:
        if name in fresh or name not in base.traces:
            return evaluation.relations[name].after
        return base.traces[name]

    def _merge(self, due: Callable[[Trace], bool], merged: Callable[[Trace], Trace]) -> bool:
        """Put traces in fewer batches in the place of those for which ``due`` holds.

        :param due: whether a trace is to be merged
        :param merged: merges one
        :returns: whether there were any
        """
        with self._lock:
            base = self._snapshot
            traces = {name: merged(trace) for name, trace in base.traces.items() if due(trace)}
            states = {
                relation: {name: merged(trace) if due(trace) else trace for name, trace in kept.items()}
                for relation, kept in base.states.items()
                if any(map(due, kept.values()))
            }
            if traces or states:
                self._snapshot = replace(base, traces={**base.traces, **traces}, states={**base.states, **states})
        return bool(traces or states)

    def _make_room(self) -> None:
        """When the memory for large batches gets full, put those of the trace that has most into files, then of the next."""
        excess = self._memory.excess
        if excess <= 0:
            return
        base, chosen = self._snapshot, set[Trace]()
        held = {trace: trace.held_bytes(self.limits) for trace in (*base.traces.values(), *base.all_states().values())}
        for trace in sorted(filter(held.get, held), key=held.__getitem__, reverse=True):
            chosen.add(trace)
            excess -= held[trace]
            if excess <= 0:
                break
        if chosen:
            self._merge(chosen.__contains__, self._in_files_only)

    def _in_files_only(self, trace: Trace) -> Trace:
        return trace.in_files_only(self.store, self.limits)

    def _merged(self, trace: Trace) -> Trace:
        return trace.merge(self._compacted, self.limits)

    def _compacted(self, trace: Trace) -> Batch:
        return compacted(trace, self._context({}))


def _milliseconds(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)
