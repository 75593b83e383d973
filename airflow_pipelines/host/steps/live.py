"""An open pipeline: its circuit, endpoints and durable state, and the steps that keep the three consistent.

The runner's thread calls all methods, one at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyspark.sql.functions as f

from airflow_pipelines.connectors.changes import Changes, ChangesInMemory, StreamedChanges
from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.intervals import format_intervals
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.step import Step
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.host.changes.evaluation_times import EvaluationTimes
from airflow_pipelines.host.checkpoints.durability import Durability
from airflow_pipelines.host.connectors.endpoints import Endpoints
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.inputs.push_keys import PushKeys
from airflow_pipelines.host.inputs.step_input import Consumption, StepInput, report_rejected
from airflow_pipelines.host.metrics.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.metrics.step_history import StepHistory
from airflow_pipelines.host.outputs.deliveries import Deliveries
from airflow_pipelines.host.outputs.listeners import Listener
from airflow_pipelines.host.outputs.outputs import OutputEndpoint
from airflow_pipelines.host.state.clock import RunClock
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.steps.transactions import Transaction
from airflow_pipelines.host.streams.kept_operators import running_operators
from airflow_pipelines.host.streams.stream_changes import SavedOperator
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.program.streams import STREAM_PROGRAM


@dataclass(slots=True)
class LivePipeline:
    """The parts of one incarnation.

    :param identity: the program that runs
    :param stream_runtime: returns the runtime for the stream program of a program, or None if it has none
    """

    program: Program
    identity: ProgramIdentity
    sessions: SparkSessions
    circuit: Circuit
    endpoints: Endpoints
    durability: Durability
    metrics: PipelineMetrics
    log: PipelineLog
    clock: RunClock
    stream_runtime: Callable[[Program, ProgramSource], StreamRuntime | None] = lambda *_: None
    deliveries: Deliveries = field(default_factory=Deliveries)
    history: StepHistory = field(default_factory=StepHistory)
    push_keys: PushKeys = field(default_factory=PushKeys)

    def step(self, taken: StepInput, clock: int | None = None) -> None:
        """Run one step over the taken input: evaluate, commit, publish, deliver, count.

        :param taken: the input of the step
        :param clock: the time of the tick that the step includes, in microseconds since the epoch
        :raises StepError: if a view cannot be evaluated; nothing of the step is kept
        """
        started = time.monotonic()
        consumption = taken.consumption()
        changes = taken.changes
        if clock is None and changes and self.circuit.streams is not None:
            # Functions of stream programs read the time.
            clock = self.clock.now()
        if changes or clock is not None:
            step = self.circuit.step(changes, clock)
            # Before the commit, which saves the counters of the inputs.
            report_rejected(self.log, step.rejected, taken)
            self._show(step, consumption)
        else:
            # There are only malformed rows, or only the end of an input: no step, but the position in the source advances.
            self._count(consumption, steps=0)
        self._finish(started)
        for push in taken.pushes:
            push.complete(self.circuit.snapshot.step)

    def collect(self, taken: StepInput, transaction: Transaction) -> None:
        """Add the taken input to a transaction; nothing is evaluated or shown.

        :param taken: the input to add
        :param transaction: the open transaction
        :raises StepError: if stored rows cannot be looked up
        """
        started = time.monotonic()
        collected = self.circuit.collect(taken.changes, transaction.pending)
        report_rejected(self.log, collected.rejected, taken)
        transaction.pending = collected.pending
        consumption = taken.consumption()
        transaction.consumption = transaction.consumption.plus(consumption)
        for endpoint, part in consumption.parts.items():
            endpoint.collect(part)
        self.metrics.set_collected(transaction.consumption.records, transaction.consumption.size_bytes)
        self.metrics.busy(time.monotonic() - started)
        for push in taken.pushes:
            push.complete(self.circuit.snapshot.step + 1)

    def commit(self, transaction: Transaction, clock: int | None = None) -> None:
        """Run one step over everything that a transaction has collected.

        :param transaction: the transaction
        :param clock: the time of the tick that the step includes, in microseconds since the epoch
        :raises StepError: if a view cannot be evaluated; nothing of the transaction is kept
        """
        started = time.monotonic()
        consumption = replace(transaction.consumption, transactions=1)
        if transaction.pending.is_empty and clock is None and not consumption.push_keys:
            self._count(consumption, steps=0)
        else:
            self._show(self.circuit.step_over(transaction.pending, clock), consumption)
        for endpoint in consumption.parts:
            endpoint.forget_collected()
        self.metrics.set_collected(0, 0)
        self._finish(started)
        took = (time.monotonic() - started) * 1000
        self.log.info("transaction %d: %d records, committed in %.0f ms", transaction.number, consumption.records, took)

    def start_empty(self) -> None:
        """Evaluate relations that have rows before any input has come, such as a count of nothing.

        The clock ticks for the first time.
        """
        self.circuit.open_streams(self.clock.now())
        if self.circuit.follows_clock:
            self.move_clock(self.clock.now())
        elif (step := first_step(self.circuit)) is not None:
            self.endpoints.outputs.deliver(step.number, step.view_deltas)

    def tick(self) -> int | None:
        """Return the time of a tick that is due, in microseconds since the epoch, or None."""
        tick = self.clock.tick(self.circuit.next_tick())
        return self.clock.check_timer(self.circuit.next_timer()) if tick is None else tick

    def until_tick(self) -> float | None:
        """Return the seconds until a tick is due, or None if no tick would change anything."""
        waits = (self.clock.until_tick(self.circuit.next_tick()), self.clock.until(self.circuit.next_timer()))
        return min((wait for wait in waits if wait is not None), default=None)

    def move_clock(self, clock: int) -> None:
        """Set the clock to the time of a request. The time is kept even if it changes nothing."""
        step = self.circuit.step([], clock)
        self._commit(step, Consumption(), always=True)
        self.circuit.publish(step)
        self._count(Consumption(), steps=0 if step.quiet else 1)
        if not step.quiet:
            self.history.add(step.stats)
            self.endpoints.outputs.deliver(step.number, step.view_deltas)
        self.complete()

    def flush_outputs(self) -> None:
        """Write the output buffers that are due, and count the deliveries."""
        news, before = self.endpoints.outputs.look(), self.endpoints.outputs.first_kept
        self.endpoints.outputs.flush_due()
        if news or before is not None:
            self.complete()

    def complete(self) -> None:
        """Count as delivered everything processed so far, except for changes that outputs still keep.

        Outputs that have failed do not hold up the others; the changes that they do not deliver are noted as lost.
        """
        for output in self.endpoints.outputs.declared:
            lost = output.find_lost()
            if lost is not None and output.name not in self.deliveries.losses:
                self.deliveries.lose(output.name, lost, self.endpoints.inputs.count_completed())
        first_kept = self.endpoints.outputs.first_kept
        if first_kept is not None:
            mark = self.deliveries.add_mark(self.endpoints.mark(self.circuit.snapshot.step, self.metrics.counters()), first_kept)
            if mark is not None:
                self.metrics.complete_until(mark.counters)
                self.endpoints.count_delivered_until(mark)
            return
        self.deliveries.forget()
        self.metrics.complete()
        counters = self.metrics.counters()
        self.endpoints.count_delivered(counters.completed_records, counters.completed_steps)

    def failed_outputs(self, endpoint: InputEndpoint, records: int) -> list[OutputEndpoint]:
        """Return the failed outputs whose targets miss some results of the first records of an input.

        :param endpoint: the input
        :param records: the number of its records
        """
        return [
            output
            for output in self.endpoints.outputs.declared
            if (lost := self.deliveries.losses.get(output.name)) is not None
            and records > lost.get(endpoint, 0)
            # The system view may have rows of any table.
            and not self.program.relations_behind(output.view).isdisjoint({endpoint.table, SYSTEM_VIEW})
        ]

    def relation_contents(self, relation: str) -> Changes:
        """Return the rows of a relation as the inserts that lead to them."""
        frame = self.circuit.relation(relation).withColumn(WEIGHT, f.lit(1).cast("bigint"))
        trace = self.circuit.snapshot.traces.get(relation)
        if trace is not None and not trace.is_small(self.circuit.limits):
            return StreamedChanges(frame, trace.rows)
        return ChangesInMemory(format_intervals(collected(frame), frame.schema))

    def begin_stream(self, listener: Listener, *, send_snapshot: bool) -> None:
        """Give an attached listener the rows of its relation, or the changes from before any client could listen.

        They come before the changes of any further step. If they cannot be read, the listener's stream ends: without them, it would
        take the later changes for the whole.

        :param listener: a listener that was attached between two steps
        :param send_snapshot: True if it waits for a snapshot
        """
        outputs = self.endpoints.outputs
        try:
            if send_snapshot:
                outputs.tell(self.relation_contents(listener.view), [listener], snapshot=True)
            else:
                outputs.tell_first(listener)
        except Exception as error:  # noqa: BLE001  the request has been answered; the pipeline goes on
            self.log.failure("egress of %s: its contents cannot be sent", listener.view, cause=error)
            outputs.listeners.remove(listener)

    def kept_operators(self) -> tuple[SavedOperator, ...]:
        """Return the operators of the stream program, and the state that they kept at the newest checkpoint."""
        states, runtime = self.circuit.snapshot.states.get(STREAM_PROGRAM), self.circuit.streams
        metrics = {} if runtime is None else runtime.statistics.metrics
        with_keys = {uid for (uid, _), task in metrics.items() if task.has_keys}
        return running_operators({} if states is None else states, self.program.streams, with_keys)

    @property
    def evaluation_times(self) -> EvaluationTimes:
        """The measured times of earlier evaluations of changed views."""
        return EvaluationTimes(self.durability.folder if self.durability.options.storage else None)

    @property
    def streams_have_end_to_show(self) -> bool:
        """True if all inputs of the stream program have ended, but its sinks have not yet made all their writes visible."""
        return self.circuit.streams is not None and self.circuit.streams.has_end_to_show

    def _show(self, step: Step, consumption: Consumption) -> None:
        """Make a step durable, then current, and deliver it."""
        # Rows that change nothing now might change something if they came again later, so their keys are kept, too.
        if not step.quiet or consumption.push_keys:
            self._commit(step, consumption)
        self.circuit.publish(step)
        self._count(consumption, steps=0 if step.quiet else 1)
        if not step.quiet:
            self.history.add(step.stats)
            self.endpoints.outputs.deliver(step.number, step.deltas)

    def _finish(self, started: float) -> None:
        """Complete the deliveries of the work that began at ``started``, and count its time."""
        for warning in () if self.circuit.streams is None else self.circuit.streams.latest.warnings:
            self.log.warning("stream program: %s", warning)
        self.complete()
        if self.durability.journals:
            self.endpoints.inputs.count_durable()
        self.metrics.busy(time.monotonic() - started)

    def _commit(self, step: Step, consumption: Consumption, *, always: bool = False) -> None:
        ticked = step.snapshot.clock != self.circuit.snapshot.clock
        changed = any(delta.rows for delta in step.table_deltas.values())
        if not always and not ticked and not changed and not consumption.push_keys:
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
        keys = consumption.push_keys
        self.durability.commit(step.number, step.table_deltas, states, counters, identity, start, snapshot, keys)
        if self.durability.journals:
            for endpoint, part in consumption.parts.items():
                if part.position is not None:
                    endpoint.keep(part.position)

    def _count(self, consumption: Consumption, *, steps: int) -> None:
        for endpoint, part in consumption.parts.items():
            endpoint.consume(part)
        self.push_keys.commit(consumption.push_keys)
        self.metrics.add(
            processed_records=consumption.records,
            processed_bytes=consumption.size_bytes,
            initiated_steps=steps,
            transactions=consumption.transactions,
        )


def first_step(circuit: Circuit) -> Step | None:
    """Take the first step of a circuit that has rows before any input has come; return None for any other circuit."""
    if not any(stage.node.starts_with_rows for stage in circuit.stages):
        return None
    step = circuit.apply({})
    circuit.publish(step)
    return step
