"""A pipeline that has been opened: its circuit, endpoints and durable state, and the operations that keep the three in step.

All methods are called by the runner's thread, one at a time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

import pyspark.sql.functions as f

from airflow_pipelines.connectors.base import ConnectorError
from airflow_pipelines.connectors.changes import Changes, ChangesInMemory, StreamedChanges
from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.layout import CANONICAL_FORM
from airflow_pipelines.engine.normalise import Rejected
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.step import Step
from airflow_pipelines.engine.step_stats import StepStats
from airflow_pipelines.engine.storage.checkpoint import CheckpointContents, CheckpointInfo
from airflow_pipelines.engine.storage.connector_state import ConnectorState, OutputState
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.engine.values.intervals import shown
from airflow_pipelines.host.bootstrap import BootstrapPlan
from airflow_pipelines.host.clock import Clock
from airflow_pipelines.host.deliveries import Deliveries
from airflow_pipelines.host.durability import Durability, SavedState
from airflow_pipelines.host.endpoints import Endpoints
from airflow_pipelines.host.front_ends import front_end_for
from airflow_pipelines.host.kept_operators import kept_operators
from airflow_pipelines.host.listeners import Listener
from airflow_pipelines.host.merged_steps import RecordedStep, merged_steps
from airflow_pipelines.host.pipeline_log import PipelineLog
from airflow_pipelines.host.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.step_input import Consumption, StepInput
from airflow_pipelines.host.stream_changes import KeptOperator
from airflow_pipelines.host.transactions import Transaction
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.program.streams import STREAM_PROGRAM

KEPT_STATS = 100


@dataclass(slots=True)
class LivePipeline:
    """The parts of one incarnation.

    :param identity: the program that runs
    :param stream_runtime: gives what runs the stream program of a program, None for one without
    """

    program: Program
    identity: ProgramIdentity
    sessions: SparkSessions
    circuit: Circuit
    endpoints: Endpoints
    durability: Durability
    metrics: PipelineMetrics
    log: PipelineLog
    clock: Clock
    stream_runtime: Callable[[Program, ProgramSource], StreamRuntime | None] = lambda *_: None
    deliveries: Deliveries = field(default_factory=Deliveries)
    recent: deque[StepStats] = field(default_factory=lambda: deque(maxlen=KEPT_STATS))

    def step(self, taken: StepInput, clock: int | None = None) -> None:
        """Run one step over what was taken: evaluate, commit, publish, deliver, count.

        :param taken: what it is made of
        :param clock: the time of the tick that the step takes along, in microseconds since the epoch
        :raises StepError: when a view cannot be evaluated; nothing of the step is kept
        """
        started = time.monotonic()
        consumption = taken.consumption()
        changes = taken.changes
        if clock is None and changes and self.circuit.streams is not None:
            # Functions ask what time it is.
            clock = self.clock.now()
        if changes or clock is not None:
            step = self.circuit.step(changes, clock)
            # Before the commit, which keeps what the inputs have counted.
            self._report_rejected(step.rejected, taken)
            self._show(step, consumption)
        else:
            # Only malformed rows, or nothing but the end of an input: no step, but the place in the source moves on.
            self._count(consumption, steps=0)
        self._finish(started)
        for push in taken.pushes:
            push.done(self.circuit.snapshot.step)

    def collect(self, taken: StepInput, transaction: Transaction) -> None:
        """Add what was taken to a transaction; nothing is evaluated or shown.

        :param taken: what is added
        :param transaction: the open transaction
        :raises StepError: when stored rows cannot be looked up
        """
        started = time.monotonic()
        collected = self.circuit.collect(taken.changes, transaction.pending)
        self._report_rejected(collected.rejected, taken)
        transaction.pending = collected.pending
        consumption = taken.consumption()
        transaction.consumption = transaction.consumption.plus(consumption)
        for endpoint, part in consumption.parts.items():
            endpoint.collect(part)
        self.metrics.collected(transaction.consumption.records, transaction.consumption.size_bytes)
        self.metrics.busy(time.monotonic() - started)
        for push in taken.pushes:
            push.done(self.circuit.snapshot.step + 1)

    def commit(self, transaction: Transaction, clock: int | None = None) -> None:
        """Run one step over all that a transaction has collected.

        :param transaction: the transaction
        :param clock: the time of the tick that the step takes along, in microseconds since the epoch
        :raises StepError: when a view cannot be evaluated; nothing of the transaction is kept
        """
        started = time.monotonic()
        consumption = replace(transaction.consumption, transactions=1)
        if transaction.pending.is_empty and clock is None:
            self._count(consumption, steps=0)
        else:
            self._show(self.circuit.step_over(transaction.pending, clock), consumption)
        for endpoint in consumption.parts:
            endpoint.forget_collected()
        self.metrics.collected(0, 0)
        self._finish(started)
        took = (time.monotonic() - started) * 1000
        self.log.info("transaction %d: %d records, committed in %.0f ms", transaction.number, consumption.records, took)

    def start_empty(self) -> None:
        """Evaluate what has rows before any input has come, such as a count of nothing; the clock ticks for the first time."""
        self.circuit.open_streams(self.clock.now())
        if self.circuit.follows_clock:
            self.move_clock(self.clock.now())
        elif (step := _start_empty(self.circuit)) is not None:
            self.endpoints.deliver(step.number, step.view_deltas)

    def tick(self) -> int | None:
        """The time of a tick that is due, in microseconds since the epoch; else None."""
        tick = self.clock.tick(self.circuit.next_tick())
        return self.clock.reached(self.circuit.next_timer()) if tick is None else tick

    def until_tick(self) -> float | None:
        """Seconds until a tick is due; None when no tick would change anything."""
        waits = (self.clock.until_tick(self.circuit.next_tick()), self.clock.until(self.circuit.next_timer()))
        return min((wait for wait in waits if wait is not None), default=None)

    def move_clock(self, clock: int) -> None:
        """Take a time that a request has set. It is kept even when it changes nothing."""
        step = self.circuit.step([], clock)
        self._commit(step, Consumption(), always=True)
        self.circuit.publish(step)
        self._count(Consumption(), steps=0 if step.quiet else 1)
        if not step.quiet:
            self.recent.append(step.stats)
            self.endpoints.deliver(step.number, step.view_deltas)
        self._complete()

    def restore(self, saved: SavedState, plan: BootstrapPlan) -> None:
        """Bring the circuit to the last committed step of ``saved``, keeping what ``plan`` keeps."""
        base = saved.base
        batches, limits = self.durability.batches, self.circuit.limits
        snapshot = None if base is None else Snapshot.from_manifest(base.contents.snapshot, batches, limits)
        if plan.diff.is_empty:
            self._replay(self.circuit, snapshot, saved, plan.kept_connectors)
            self.clock.resume(self.circuit.snapshot.clock)
            self._complete()
            return
        if snapshot is None or saved.records:
            # The journal was written by the old program: its steps have to go through the old views, and to their outputs.
            old = front_end_for(saved.program.source, self.sessions).compile(saved.program.source)
            circuit = Circuit(old, self.sessions, batches, limits=limits, streams=self.stream_runtime(old, saved.program.source))
            try:
                self._replay(circuit, snapshot, saved, plan.kept_connectors)
                circuit.save_streams()
                snapshot = circuit.snapshot
            finally:
                circuit.close()
        self.circuit.awaited = plan.evaluated | plan.outdated.keys()
        self.circuit.restore(snapshot.renamed(plan.renamed_relations, self.circuit.layouts).keep(plan.kept))
        self.clock.resume(snapshot.clock)
        if self.circuit.streams is not None:
            self.circuit.streams.dropped = plan.streams.dropped
            self.circuit.streams.fresh_inputs = plan.streams.fresh_inputs
        self.circuit.open_streams(self.clock.now())

    def bootstrap(self, plan: BootstrapPlan, *, silent: bool) -> None:
        """Evaluate the new and changed views and, unless ``silent``, emit their full contents."""
        if not plan.evaluated and not plan.renamed:
            self.circuit.refresh()
            self.circuit.awaited = frozenset()
            self._complete()
            return
        step = self.circuit.bootstrap(plan.evaluated, self.clock.now(), shown=plan.renamed.keys())
        self.circuit.publish(step)
        self.circuit.awaited = frozenset()
        self.recent.append(step.stats)
        self.metrics.add(initiated_steps=1)
        if not silent:
            self.endpoints.deliver(step.number, step.view_deltas)
        self._complete()
        # The last of a view's operators gives the view itself.
        given = {stats.view: stats.rows_out for stats in step.stats.operators if stats.view in plan.evaluated}
        for view, old in plan.renamed.items():
            self.log.info("view %s took over the contents of %s, which has the same query", view, old)
        if plan.evaluated:
            self.log.info("bootstrapped %s: %d rows", ", ".join(sorted(plan.evaluated)), sum(given.values()))

    def send_snapshots(self, resumed: Set[str], shown: Set[str]) -> None:
        """Give the contents of their views to outputs that begin with them and have come new to a pipeline with state.

        :param resumed: outputs that go on from an earlier incarnation, and had theirs
        :param shown: views whose contents all outputs have just got
        """
        for name, output in self.endpoints.outputs.items():
            if output.sends_snapshot and name not in resumed and output.view not in shown:
                self.endpoints.begin_with(output, self.circuit.snapshot.step, self.circuit.materialized(output.view))
                self.log.info("output %s: begins with the contents of %s", name, output.view)

    def flush_outputs(self) -> None:
        """Write what outputs keep in their buffers, where they have kept it for long enough, and count what was delivered."""
        news, before = self.endpoints.look(), self.endpoints.first_kept
        self.endpoints.flush_due()
        if news or before is not None:
            self._complete()

    def relation_contents(self, relation: str) -> Changes:
        """The rows of a relation as the inserts that lead to them."""
        frame = self.circuit.relation(relation).withColumn(WEIGHT, f.lit(1).cast("bigint"))
        trace = self.circuit.snapshot.traces.get(relation)
        if trace is not None and not trace.is_small(self.circuit.limits):
            return StreamedChanges(frame, trace.rows)
        return ChangesInMemory(shown(collected(frame), frame.schema))

    def send_contents(self, listener: Listener) -> None:
        """Give an attached listener the rows of its relation, before the changes of any further step.

        When these cannot be evaluated, its stream ends: a listener without them would take the changes for the whole.

        :param listener: one that waits for a snapshot
        """
        try:
            self.endpoints.tell(self.relation_contents(listener.view), [listener], snapshot=True)
        except Exception as error:  # noqa: BLE001  the request has been answered; the pipeline goes on
            self.log.failure("egress of %s: its contents cannot be sent", listener.view, cause=error)
            self.endpoints.listeners.remove(listener)

    def contents(self) -> CheckpointContents:
        """Everything as it stands after the last step, with all batches on disk and all outputs written."""
        # What is in the checkpoint is not evaluated again, and would never be written. What waits in queues is kept with it.
        self.endpoints.flush(self.program)
        self._complete()
        self.circuit.save_streams()
        snapshot = self.circuit.snapshot.flush(self.durability.batches)
        self.circuit.restore(snapshot)
        connectors = self.endpoints.states()
        return CheckpointContents(
            program=self.identity,
            step=snapshot.step,
            snapshot=snapshot.to_manifest(),
            files=tuple(sorted({*snapshot.files(), *_files_of(connectors)})),
            connectors=connectors,
            counters=self.metrics.counters(),
            initial_start_time=self.metrics.initial_start_time,
        )

    def save_checkpoint(self) -> CheckpointInfo:
        """Write a listed checkpoint."""
        started = time.monotonic()
        info = self.durability.save_checkpoint(self.contents())
        self._saved()
        took = (time.monotonic() - started) * 1000
        self.log.info("checkpoint %s: step %d, %d bytes, %.0f ms", info.uuid, info.steps, info.size, took)
        return info

    def kept_operators(self) -> tuple[KeptOperator, ...]:
        """The operators of the stream program, and what they kept at the newest checkpoint."""
        states = self.circuit.snapshot.states.get(STREAM_PROGRAM)
        return () if states is None else kept_operators(states)

    def save_recovery_point(self) -> None:
        """Replace the journal by a recovery point."""
        self.durability.save_recovery_point(self.contents())
        self._saved()
        self.durability.collect_garbage()

    @property
    def streams_have_end_to_show(self) -> bool:
        """Whether all inputs of the stream program have ended, and its sinks have not made visible all that they have written."""
        return self.circuit.streams is not None and self.circuit.streams.has_end_to_show

    def show_end_of_streams(self) -> None:
        """Let sinks make visible what they have written, as soon as no kill can lose it where there is storage."""
        if self.durability.options.storage:
            self.save_recovery_point()
        else:
            self.circuit.save_streams()
            self._saved()

    def _saved(self) -> None:
        """All that has been done so far is durable."""
        if self.circuit.streams is not None:
            self.circuit.streams.committed()
        self.endpoints.keep_positions()
        self.endpoints.count_durable()

    def _show(self, step: Step, consumption: Consumption) -> None:
        """Make a step durable, then current, and deliver it."""
        if not step.quiet:
            self._commit(step, consumption)
        self.circuit.publish(step)
        self._count(consumption, steps=0 if step.quiet else 1)
        if not step.quiet:
            self.recent.append(step.stats)
            self.endpoints.deliver(step.number, step.deltas)

    def _complete(self) -> None:
        """Everything processed so far has been delivered, but for what outputs keep in their buffers."""
        first_kept = self.endpoints.first_kept
        if first_kept is not None:
            mark = self.deliveries.reached(self.endpoints.mark(self.circuit.snapshot.step, self.metrics.counters()), first_kept)
            if mark is not None:
                self.metrics.complete_until(mark.counters)
                self.endpoints.count_delivered_until(mark)
            return
        self.deliveries.forget()
        self.metrics.complete()
        counters = self.metrics.counters()
        self.endpoints.count_delivered(counters.completed_records, counters.completed_steps)

    def _finish(self, started: float) -> None:
        """All that was consumed is delivered; the work on it began at ``started``."""
        for warning in () if self.circuit.streams is None else self.circuit.streams.latest.warnings:
            self.log.warning("stream program: %s", warning)
        self._complete()
        if self.durability.journals:
            self.endpoints.count_durable()
        self.metrics.busy(time.monotonic() - started)

    def _commit(self, step: Step, consumption: Consumption, *, always: bool = False) -> None:
        ticked = step.snapshot.clock != self.circuit.snapshot.clock
        if not always and not ticked and not any(delta.rows for delta in step.table_deltas.values()):
            return
        now = self.metrics.counters()
        counters = replace(
            now,
            processed_records=now.processed_records + consumption.records,
            processed_bytes=now.processed_bytes + consumption.size_bytes,
            initiated_steps=now.initiated_steps + (0 if step.quiet else 1),
            transactions=now.transactions + consumption.transactions,
        )
        states = {endpoint.name: endpoint.to_state(part) for endpoint, part in consumption.parts.items()}
        identity, metrics = self.identity, self.metrics
        start, snapshot = metrics.initial_start_time, step.snapshot
        self.durability.commit(step.number, step.table_deltas, states, counters, identity, start, snapshot)
        if self.durability.journals:
            for endpoint, part in consumption.parts.items():
                if part.position is not None:
                    endpoint.keep(part.position)

    def _count(self, consumption: Consumption, *, steps: int) -> None:
        for endpoint, part in consumption.parts.items():
            endpoint.consume(part)
        self.metrics.add(
            processed_records=consumption.records,
            processed_bytes=consumption.size_bytes,
            initiated_steps=steps,
            transactions=consumption.transactions,
        )

    def _report_rejected(self, found: Iterable[Rejected], taken: StepInput) -> None:
        """Count what the engine left out with the input that it came from, and say which row was the first."""
        for rejected in found:
            sources = taken.origins(rejected.table)
            for part in rejected.parts:
                source, before = sources[part.change]
                text = f"{part.count} changes of table {rejected.table} were left out: {rejected.reason}, for example {part.first}"
                if source is None:
                    self.log.limited(f"rejected {rejected.table}", "an ad-hoc statement: %s", text)
                    continue
                row = source.metrics.processed_records + source.metrics.collected_records + before + part.first_row
                self.log.limited(f"rejected {source.name}", "connector %s: row %d: %s", source.name, row, text)
                source.metrics.parse_errors.extend([ConnectorError("rejected", f"row {row}: {text}", row)], part.count)

    def _replay(self, circuit: Circuit, base: Snapshot | None, saved: SavedState, outputs: Set[str]) -> None:
        """Apply the journal to its base. Its steps go again to those ``outputs`` of its program that go on: they were taken back to
        the base's step, and the last of the steps may not have been delivered at all.
        """
        if base is None:
            # With a clock, the start is the journal's first record.
            first = None if circuit.follows_clock else _start_empty(circuit)
            if first is not None:
                self.endpoints.deliver_again(first.number, saved.epoch, first.view_deltas, circuit.program, outputs)
        else:
            circuit.restore(base)
        circuit.open_streams(None if saved.records else self.clock.now())
        if base is not None:
            # Before the records: what they change must be there.
            circuit.refresh()
        recorded: Iterable[RecordedStep] = (
            (record, self.durability.deltas_of(record, circuit.wiring.schemas)) for record in saved.records
        )
        if saved.canonical_form != CANONICAL_FORM:
            recorded = ((record, circuit.in_canonical_form(deltas)) for record, deltas in recorded)
        # Outputs get step by step what they would have got; without any, the sum of the steps is as good and far quicker, unless an
        # operator depends on time or on the order of rows.
        for record, deltas in (
            recorded if self.endpoints.outputs or not circuit.steps_add_up else merged_steps(recorded, circuit.limits)
        ):
            step = circuit.apply(deltas, record.clock, record.waterlines)
            circuit.publish(step)
            self.endpoints.deliver_again(step.number, saved.epoch, step.view_deltas, circuit.program, outputs)
        # The counters say that the outputs have all of this.
        self.endpoints.flush(circuit.program, saved.epoch)
        if saved.records:
            self.log.info("replayed %d committed steps from the journal", len(saved.records))


def _files_of(connectors: Mapping[str, ConnectorState]) -> Iterator[str]:
    """The batch files with what outputs have not delivered."""
    for state in connectors.values():
        for kept in state.undelivered if isinstance(state, OutputState) else ():
            yield from kept.files


def _start_empty(circuit: Circuit) -> Step | None:
    """The first step of a circuit in which something has rows before any input has come; None for any other."""
    if not any(stage.node.starts_with_rows for stage in circuit.stages):
        return None
    step = circuit.apply({})
    circuit.publish(step)
    return step
