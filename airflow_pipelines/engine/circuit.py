"""The circuit: a program with its contents, which steps advance."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import pyspark.sql.functions as f
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.arrival_order import adjust_sequence
from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.compaction import compact_trace, in_canonical_form
from airflow_pipelines.engine.evaluation import Evaluation, EvaluationAnew
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.functions.python_functions import register_functions
from airflow_pipelines.engine.held_memory import held_memory
from airflow_pipelines.engine.lateness import Waterlines
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.lookup.index import file_index
from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.engine.operators.large_contents import LargeContents
from airflow_pipelines.engine.operators.operator import Operator
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
from airflow_pipelines.engine.storage.manifest import CANONICAL_FORM
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.engine.table_deltas import table_deltas
from airflow_pipelines.engine.time.timing import TimedStep, Timing
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.engine.wiring import build_wiring
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.rows.changes import TableChanges

_DEAD_VIEWS = 200
"""The number of views of released batches that Spark may keep while there is no idle moment to drop them."""
_PASSING = 4
"""The maximum size of rows that only the current step needs and that stay in memory, as a multiple of the bytes of a held batch."""


class Circuit:
    """The dataflow that keeps every view of a program equal to its query.

    :meth:`step` (or :meth:`apply`) evaluates a step over the current snapshot and leaves the circuit as it was; :meth:`publish`
    makes the step current. One thread at a time evaluates steps; any thread may read snapshots at any time.
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
        """Create an empty circuit.

        :param program: the program
        :param sessions: sessions for small and large operators
        :param store: the store for large batches
        :param strategy: ``incremental`` uses incremental rules where there are any; so does ``auto``, unless most of the input of a
            stage has changed; ``full`` recomputes every view
        :param limits: the sizes that count as small and as large
        :param streams: the runtime of the program's stream program, or None
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
        self.wiring = build_wiring(program, strategy)
        self.stages, self.operators, self.kept = self.wiring.stages, self.wiring.operators, self.wiring.kept
        self.layouts: Mapping[str, str] = self.wiring.layouts
        """The layouts of the contents and the states of relations, by relation."""
        self.has_consumers: Callable[[str], bool] = lambda _: True
        """A predicate: True if something outside the circuit reads the deltas of a view that has no contents.

        It is called in every step.
        """
        self.awaited: Set[str] = frozenset()
        """The views whose contents are still to be evaluated after a change of the program. They cannot be read before that."""
        # The retention rules apply to the incremental stages; recomputing needs all rows.
        self.timing = Timing(program, sessions, self.wiring.readers, () if strategy == "full" else program.retention)
        self._memory = held_memory(sessions.small.sparkContext)
        self._by_cost = strategy == "auto"
        self._workers = Workers(sessions.small.sparkContext)
        self._large_contents = LargeContents()
        self._stream_states = StreamStates(streams, self.operators, store)
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
        """The number of operators of the current step that have been evaluated, and of those that are being evaluated."""
        evaluation = self._evaluation_under_way
        return (0, 0) if evaluation is None else evaluation.progress

    @property
    def bootstrap_progress(self) -> tuple[int, int] | None:
        """The number of stored rows read so far by the bootstrap or refresh in progress, and their total; None without one.

        Rows that several operators read count for each of them.
        """
        anew = self._bootstrap_under_way
        return None if anew is None else anew.progress

    @property
    def follows_clock(self) -> bool:
        """True if an operator reads the clock, so that the clock has to tick."""
        return self.timing.uses_clock

    @property
    def steps_add_up(self) -> bool:
        """True if one step over the sum of several steps' deltas has the same result as these steps."""
        if self.program.markers or self.program.late_columns:
            return False
        return not any(operator.depends_on_order or operator.has_timers for operator in self.operators)

    def next_tick(self) -> int | None:
        """Return the earliest time of the next clock tick, in microseconds since the epoch, or None if no view reads the clock.

        This is the first instant after the newest step; the clock's resolution decides when the tick really comes.
        """
        if not self.timing.ticking:
            return None
        return 0 if self._snapshot.clock is None else self._snapshot.clock + 1

    def next_timer(self) -> int | None:
        """Return the next instant at which an operator has work to do without any input, in microseconds since the epoch."""
        states = self._snapshot.states
        due = (operator.timer(states.get(operator.relation, {})) for operator in self.operators if operator.has_timers)
        return min((instant for instant in due if instant is not None), default=None)

    def step(self, changes: Iterable[TableChanges], clock: int | None = None) -> Step:
        """Normalise the changes of all tables (in arrival order) and evaluate one step over them.

        :param clock: the time to which the clock advances with this step, in microseconds since the epoch
        :raises StepError: when a view cannot be evaluated
        :raises StorageError: when rows cannot be read or written
        :raises ValueError: when a change is not allowed for its table
        """
        started = time.monotonic()
        normalised = table_deltas(changes, self.program, self.wiring, self._snapshot, self._context({}))
        timed = self.timing.begin(self._snapshot, clock, normalised.deltas)
        timed.late += normalised.late
        return self._apply(normalised.deltas, timed, started, normalised.rejected)

    def collect(self, changes: Sequence[TableChanges], pending: Pending) -> Collected:
        """Normalise the changes of tables without evaluating a step. The current snapshot does not change.

        :param changes: the changes in arrival order
        :param pending: the changes collected so far, on top of the current snapshot
        :returns: the pending changes, and the changes that were rejected
        :raises StepError: when stored rows cannot be looked up
        :raises StorageError: when rows cannot be read or written
        :raises ValueError: when a change is not allowed for its table
        """
        base = pending.on(self._snapshot)
        normalised = table_deltas(changes, self.program, self.wiring, base, self._context({}), pending.arrived)
        deltas = dict(pending.deltas)
        for name, delta in normalised.deltas.items():
            if delta.rows:
                trace = deltas.get(name, Trace(self.wiring.schemas[name])).append(self._spill_delta(name, delta))
                deltas[name] = trace.merge(self._compact_trace, self.limits) if trace.needs_merge(self.limits) else trace
        arrived = pending.arrived + sum(change.rows.num_rows for change in changes)
        return Collected(Pending(deltas, (*pending.late, *normalised.late), arrived), normalised.rejected)

    def step_over(self, pending: Pending, clock: int | None = None) -> Step:
        """Evaluate one step over all collected changes.

        :param pending: the changes collected on top of the current snapshot
        :param clock: the time to which the clock advances with this step
        :raises StepError: when a view cannot be evaluated
        :raises StorageError: when rows cannot be read or written
        """
        started = time.monotonic()
        deltas = {name: self._merge_into_one(trace.batches) for name, trace in pending.deltas.items() if trace.batches}
        timed = self.timing.begin(self._snapshot, clock, deltas)
        timed.late += pending.late
        return self._apply(deltas, timed, started)

    def apply(self, deltas: Mapping[str, Batch], clock: int | None = None, waterlines: Waterlines | None = None) -> Step:
        """Evaluate one step over deltas that are already normalised: those of tables, and of the system view.

        :param clock: the time to which the clock advances with this step
        :param waterlines: the waterlines after the step; None to derive them from the deltas
        :raises StepError: when a view cannot be evaluated
        """
        timed = self.timing.begin(self._snapshot, clock, deltas, waterlines)
        return self._apply(deltas, timed, time.monotonic())

    def publish(self, step: Step) -> None:
        """Make a step's snapshot the current one. Readers see all of it or nothing."""
        with self._lock:
            self._snapshot = step.snapshot
        if self.streams is not None:
            self.streams.mark_published()

    def open_streams(self, now: int | None = None) -> None:
        """Start the stream program, if there is one, with the state in the current snapshot.

        :param now: the time in microseconds since the epoch; None if steps follow that have a time of their own
        """
        self._stream_states.open(self._snapshot, now)
        with self._lock:
            self._snapshot = self._with_timers(self._snapshot)

    def save_streams(self) -> None:
        """Add the changes of the stream program's state since the last call to the current snapshot.

        :raises StreamStateLostError: when the newest step failed
        """
        saved = self._stream_states.save(self._snapshot)
        with self._lock:
            self._snapshot = self._stream_states.with_saved(self._snapshot, saved)

    def _with_timers(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot that has the instants at which the stream program wants to be called."""
        return self._stream_states.gaining(snapshot, self._stream_states.timers(snapshot))

    def restore(self, snapshot: Snapshot) -> None:
        """Make ``snapshot`` current, without its parts that have another layout, and with its rows in canonical form.

        Relations and states that are then missing are empty until :meth:`bootstrap` or :meth:`refresh` fills them.

        :raises ValueError: if it has a table with other columns
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
            name: adjust_sequence(name, trace, self.wiring.ordered, context)
            for name, trace in snapshot.traces.items()
            if name in known
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
        """Return deltas of tables with all values in canonical form, for rows that were stored under another form or none."""
        traces = {name: in_canonical_form(Trace(delta.schema, (delta,)), self._context({})) for name, delta in deltas.items()}
        return {name: batch for name, trace in traces.items() for batch in trace.batches}

    def refresh(self) -> frozenset[str]:
        """Evaluate what the current snapshot lacks from what it has, and make the result current.

        Readers do not notice: the contents are the same before and after, nothing is emitted, and it is not a step.

        :returns: the views of which something was evaluated
        :raises StepError: when a view cannot be evaluated
        """
        base = self._snapshot
        lacking = {operator.relation for operator in self.operators if self._lacks(operator, base)}
        if not lacking or base.is_initial:
            return frozenset()
        _, snapshot = self._evaluate_anew(lacking, base, None)
        with self._lock:
            self._snapshot = snapshot
        return frozenset(self.wiring.owners[name] for name in lacking)

    def bootstrap(self, views: Set[str], clock: int | None = None, shown: Set[str] = frozenset()) -> Step:
        """Evaluate ``views`` anew from their inputs. Other views keep their contents and emit nothing, except those in ``shown``.

        If ``views`` need a relation whose contents are not kept, these are evaluated on the way.

        :param clock: the time to which the clock advances, unless it is later already
        :param shown: the views whose contents exist already and are emitted as well
        :returns: a step whose ``view_deltas`` are the full contents of ``views``, and of those in ``shown`` whose contents are kept
        :raises StepError: when a view cannot be evaluated
        """
        started = time.monotonic()
        base = self._snapshot
        fresh = {
            operator.relation
            for operator in self.operators
            if self.wiring.owners[operator.relation] in views or self._lacks(operator, base)
        }
        evaluation, evaluated = self._evaluate_anew(fresh, base, clock)
        snapshot = self._with_timers(replace(evaluated, step=base.step + 1))
        deltas = {
            name: self._merge_into_one(evaluation.relations[name].delta)
            for name in self.program.views
            if name in views and evaluation.relations[name].delta
        }
        deltas |= {
            name: self._compact_trace(base.traces[name]) for name in shown if name in base.traces and base.traces[name].batches
        }
        stats = StepStats(snapshot.step, _milliseconds(started), 0, evaluation.stats_of(self.operators))
        return Step(snapshot.step, {}, deltas, snapshot, stats)

    def _evaluate_anew(self, fresh: Set[str], base: Snapshot, clock: int | None) -> tuple[Evaluation, Snapshot]:
        """Evaluate the ``fresh`` stages from nothing, with all their inputs as deltas.

        Return the evaluation, and ``base`` with its result.
        """
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
        snapshot = replace(
            base,
            traces=traces,
            states={**base.states, **states},
            clock=times.clock,
            waterlines=times.waterlines,
            layouts=self.layouts,
            canonical_form=CANONICAL_FORM,
        )
        return evaluation, snapshot

    def relation(self, name: str, snapshot: Snapshot | None = None) -> DataFrame:
        """Return the contents of a relation as a plain multiset.

        :param snapshot: the snapshot to read, by default the current one
        :raises KeyError: when no contents of the relation are kept
        """
        at = snapshot or self._snapshot
        small = name in self.kept and self._trace(at, name).is_small(self.limits)
        session = self.sessions.small if small else self.sessions.large
        return session.sql(self.contents(name, at, single_partition=small))

    def materialize(self, name: str) -> Batch:
        """Return the rows of a relation after the newest step, as a batch of inserts that no later step changes.

        :param name: the relation
        :raises KeyError: when no contents of the relation are kept
        """
        frame = self.relation(name).withColumn(WEIGHT, f.lit(1).cast("bigint"))
        schema = weighted(StructType(frame.schema.fields[:-1]))
        if self._trace(self._snapshot, name).is_small(self.limits):
            return Batch.in_memory(schema, collected(frame))
        return self._context({}).spill(frame, schema)

    def contents(self, name: str, snapshot: Snapshot, *, single_partition: bool = False) -> str:
        """Return a query for the contents of a relation as a plain multiset.

        The query runs in any session of the application in which VALUE_BYTES is registered.

        :param name: the relation
        :param snapshot: the snapshot to read
        :param single_partition: True to put the rows in one partition, which saves exchanges when they are few
        :raises KeyError: when no contents of the relation are kept
        """
        if name not in self.kept:
            raise KeyError(name)
        trace, table = self._trace(snapshot, name), self.program.tables.get(name)
        key = (table.primary_key if table is not None else None) or ()
        query = None if single_partition else self._large_contents.query(trace, key, self._context({}))
        return self.batch_views.with_views(query or self.batch_views.contents(trace, single_partition=single_partition))

    def plain_contents(self, name: str, snapshot: Snapshot, session: SparkSession) -> DataFrame | None:
        """Return the same contents as a DataFrame without a query.

        This works if the relation is small and its rows can be expanded without Spark.

        :param session: the session of the frame
        :returns: the DataFrame; None for any other relation
        :raises KeyError: when no contents of the relation are kept
        """
        if name not in self.kept:
            raise KeyError(name)
        return plain_contents(self._trace(snapshot, name), session)

    def maintain(self) -> bool:
        """Merge traces that have many batches, and drop rows that late rows can no longer affect. Meant for idle moments.

        :returns: True if something was merged
        """
        merged = self._merge(lambda trace: trace.needs_merge(self.limits), self._merge_trace)
        with self._lock:
            self._snapshot = self.timing.retention.apply(self._snapshot, self._context({}))
        self._make_room()
        self.batch_views.sweep()
        if merged:
            file_index(self.store).forget()
        return merged

    def compact(self) -> bool:
        """Merge all batches of every trace into one, no matter how few they are.

        :returns: True if something was merged
        """
        merged = self._merge(lambda trace: len(trace.batches) > 1, lambda trace: trace.compact(self._compact_trace))
        self.batch_views.sweep()
        if merged:
            file_index(self.store).forget()
        return merged

    def interrupt(self) -> None:
        """Interrupt the stream program: a step in progress fails. May be called from any thread."""
        if self.streams is not None:
            self.streams.close(0)

    def close(self) -> None:
        """Release all batches in Spark, and end the threads and the process of the stream program."""
        if self.streams is not None:
            self.streams.close()
        self._workers.close()
        self._large_contents.forget()
        self.batch_views.close()

    def _apply(self, deltas: Mapping[str, Batch], timed: TimedStep, started: float, rejected: tuple[Rejected, ...] = ()) -> Step:
        self._merge(lambda trace: len(trace.batches) > self.limits.merges.hard_limit, self._merge_trace)
        self._make_room()
        self.batch_views.sweep(keep=_DEAD_VIEWS)
        base = self._snapshot
        evaluation = self._evaluation(base, timed, version=base.step + 1)
        table_deltas = {name: self._prepare_delta(name, batch) for name, batch in deltas.items() if batch.rows}
        table_rows = {name: batch.rows for name, batch in table_deltas.items() if name != SYSTEM_VIEW}
        for name in self.wiring.schemas:
            added = (table_deltas[name],) if name in table_deltas else ()
            evaluation.relations[name] = RelationVersions(self._trace(base, name), added)
        evaluation.relations.update(self.timing.markers.versions(timed.before, timed.after))

        def due(operator: Operator[Any]) -> bool:
            states = evaluation.states.get(operator.relation, {})
            if operator.is_due(evaluation.find_changed_inputs(operator), timed.after.clock, states):
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
        try:
            self._workers.run(self.operators, due, evaluate)
        finally:
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
        snapshot = Snapshot(
            number,
            traces,
            evaluation.states,
            timed.after.clock,
            timed.after.waterlines,
            self.layouts,
            state_files=base.state_files,
        )
        view_deltas = {}
        for name in self.program.views:
            delta = evaluation.relations[name].delta
            if delta:
                view_deltas[name] = delta[0]
        operators = evaluation.stats_of(self.operators)
        stats = StepStats(number, _milliseconds(started), sum(table_rows.values()), operators, table_rows)
        return Step(number, table_deltas, view_deltas, snapshot, stats, rejected, tuple(timed.late), quiet)

    def _merge_into_one(self, batches: tuple[Batch, ...]) -> Batch:
        if len(batches) == 1:
            return batches[0]
        return self._compact_trace(Trace(batches[0].schema, batches))

    def _prepare_delta(self, name: str, batch: Batch) -> Batch:
        """Return the delta of a table for the duration of a step.

        Its rows are in memory already. If the table keeps none of them, they do not go to files before a query needs them.
        """
        context = self._context({})
        if name in self.kept or context.has_room(batch) or batch.memory_bytes > _PASSING * self.limits.held_bytes:
            return self._spill_delta(name, batch)
        return batch.passing(self.store)

    def _spill_delta(self, name: str, batch: Batch) -> Batch:
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
        trace = snapshot.traces.get(name)
        if trace is not None:
            return trace
        return Trace(self.wiring.schemas[name])

    def _lacks(self, operator: Operator[Any], snapshot: Snapshot) -> bool:
        return lacks(operator, self.kept, snapshot)

    def _after(self, evaluation: Evaluation, name: str, base: Snapshot, fresh: Set[str]) -> Trace:
        if name in fresh or name not in base.traces:
            return evaluation.relations[name].after
        return base.traces[name]

    def _merge(self, is_due: Callable[[Trace], bool], merge: Callable[[Trace], Trace]) -> bool:
        """Merge the traces that are due; return True if there were any."""
        with self._lock:
            base = self._snapshot
            self._snapshot = base.with_merged_traces(is_due, merge)
            return self._snapshot is not base

    def _make_room(self) -> None:
        """Move the large batches of traces to files when their memory fills up, starting with the trace that holds most."""
        chosen = self._snapshot.largest_holders(self._memory.excess, self.limits)
        if chosen:
            self._merge(chosen.__contains__, self._in_files_only)

    def _in_files_only(self, trace: Trace) -> Trace:
        return trace.in_files_only(self.store, self.limits)

    def _merge_trace(self, trace: Trace) -> Trace:
        return trace.merge(self._compact_trace, self.limits)

    def _compact_trace(self, trace: Trace) -> Batch:
        return compact_trace(trace, self._context({}))


def _milliseconds(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)
