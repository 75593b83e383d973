"""All inputs and outputs of one running pipeline: made from the program, restored from saved state, drained and fed by steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_pipelines.connectors.base import FatalConnectorFailure, InputChunk
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.declarations import connector_options, delivery_of, is_seekable
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.formats.defaults import Now
from airflow_pipelines.connectors.http import encode_egress
from airflow_pipelines.connectors.indexes import key_columns
from airflow_pipelines.connectors.opening import open_input, open_output, open_stream_source
from airflow_pipelines.connectors.start_check import check_usable
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.engine.storage.connector_state import ConnectorState, OutputState
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.host.connector_input import ConnectorInput
from airflow_pipelines.host.connector_metrics import OutputMetrics
from airflow_pipelines.host.deliveries import Mark
from airflow_pipelines.host.inputs import InputEndpoint
from airflow_pipelines.host.listeners import Listener, Listeners
from airflow_pipelines.host.outputs import OutputEndpoint, OutputServices
from airflow_pipelines.host.pipeline_log import PipelineLog
from airflow_pipelines.host.snapshots import check_snapshot
from airflow_pipelines.host.start_after import check_start_after
from airflow_pipelines.host.step_changes import StepChanges
from airflow_pipelines.host.stream_processes import StreamProcesses
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.streams import STREAM_SOURCE
from airflow_pipelines.references import References

OUTPUTS = "outputs"
"""The folder of a pipeline's storage in which its outputs keep how far they are."""

Wanted = Callable[[InputEndpoint], bool]
"""Which inputs are meant."""


def _all(_: InputEndpoint) -> bool:
    return True


class Endpoints:
    """The inputs and outputs of one incarnation.

    :param program: declares the connectors
    :param session: sorts large deltas
    :param arrived: called as ``arrived(records, bytes)`` from connector threads when something came in
    :param log: the pipeline's log
    :param pipeline: the pipeline
    :param references: what references in connectors stand for
    :param batches: keeps what outputs have not delivered
    :param storage: the pipeline's storage folder, None where it has none
    :param fence: the run's epoch in the storage folder
    :param workers: those of the pipeline, which some limits are for each of
    :param now: the pipeline's clock
    :param streams: starts the processes of the program's stream program; None without one
    """

    def __init__(
        self,
        program: Program,
        session: SparkSession,
        arrived: Callable[[int, int], None],
        log: PipelineLog,
        pipeline: PipelineReference,
        references: References,
        batches: BatchStore,
        storage: Path | None,
        fence: Fence,
        *,
        workers: int,
        now: Now,
        streams: StreamProcesses | None = None,
    ) -> None:
        """Make all endpoints, and open none.

        :raises Problem: when a declaration compiles that no pipeline can start with
        """
        self._program = program
        self._session = session
        self._log = log
        self._pipeline = pipeline
        self._references = references
        self._now = now
        self._streams = streams
        self._positions = storage / OUTPUTS if storage is not None else None
        self._fence = fence if storage is not None else None
        self._epoch = fence.epoch
        self._begun = 0.0
        self._has_delivered = False
        self._arrived = arrived
        self.listeners = Listeners()
        self._delivered = (0, 0)
        self.inputs: dict[str, InputEndpoint] = {}
        self.outputs: dict[str, OutputEndpoint] = {}
        self._readers: dict[str, ConnectorInput] = {}
        declared = program.connectors
        for connector in declared:
            if connector.transport != STREAM_SOURCE:
                check_usable(connector, program.schemas[connector.relation], program.indexes)
        options = {connector.endpoint: connector_options(connector) for connector in declared}
        sources = [connector for connector in declared if connector.direction is ConnectorDirection.INPUT]
        check_start_after({connector.endpoint: options[connector.endpoint] for connector in sources})
        for connector in declared:
            idle = options[connector.endpoint].without_effect(connector.direction)
            if idle:
                one = "an input" if connector.direction is ConnectorDirection.INPUT else "an output"
                log.info("connector %s: no effect on %s: %s", connector.endpoint, one, ", ".join(idle))
        for connector in sources:
            endpoint = InputEndpoint(connector.endpoint, connector.relation, connector)
            endpoint.paused = options[endpoint.name].paused
            self.inputs[endpoint.name] = endpoint
            table = program.tables[connector.relation]
            opener = self._input_opener(connector)
            self._readers[endpoint.name] = ConnectorInput(
                endpoint,
                options[endpoint.name],
                opener,
                arrived,
                log,
                table=table,
                workers=workers,
                seekable=is_seekable(connector.transport),
            )
        services = OutputServices(session, batches, log, self._epoch, self._positions, self._wake)
        for connector in declared:
            if connector.direction is ConnectorDirection.OUTPUT:
                chosen = options[connector.endpoint]
                key = key_columns(chosen.index, connector.relation, program.indexes)
                output_opener, delivery = self._output_opener(connector, key), delivery_of(connector)
                output = OutputEndpoint(connector, chosen, output_opener, delivery, services, key)
                self.outputs[output.name] = output
                if output.sends_snapshot:
                    check_snapshot(output.name, program.views.get(output.view))

    def restore(self, states: Mapping[str, ConnectorState], kept: frozenset[str], relations: frozenset[str]) -> None:
        """Give each endpoint its saved state.

        :param states: what was saved
        :param kept: the connectors that go on; others keep their counters but start from scratch
        :param relations: those that are as they were; the inputs of requests to other tables are forgotten
        """
        for name, state in states.items():
            if isinstance(state, OutputState):
                if name in self.outputs:
                    self.outputs[name].restore(state, same=name in kept)
            elif name in self.inputs:
                self.inputs[name].restore(state, same=name in kept)
                self._readers[name].restored(was_started=not state.waiting and name in kept)
            elif not state.declared and state.table in relations:
                self.pushed(name, state.table).restore(state, same=True)

    def pushed(self, name: str, table: str) -> InputEndpoint:
        """The endpoint of rows pushed into ``table`` under ``name``, made on first use."""
        return self.inputs.setdefault(name, InputEndpoint(name, table))

    def open_outputs(self, resumed: frozenset[str], kept: frozenset[str], step: int, begun: float) -> None:
        """Open all outputs; those in ``resumed``, which an earlier incarnation wrote, as they were after ``step``.

        :param resumed: the names of those that the base of what was saved knows
        :param kept: the names of those that are what they were, whether that knows them or not
        :param step: the step after which the pipeline goes on
        :param begun: when the pipeline began with the storage that it has
        """
        self._begun = begun
        for name, output in self.outputs.items():
            output.open(step if name in (kept if output.is_queue else resumed) else None, begun)

    def start_outputs(self) -> None:
        """Let the outputs deliver what waits: no crash can lose it any more, where that is promised."""
        if self.first_kept is not None:
            for endpoint in self.inputs.values():
                # Until all of that is delivered, it is not known which rows are.
                endpoint.complete_until(0)
        for output in self.outputs.values():
            output.start()

    def stop_outputs(self) -> None:
        """Let the outputs deliver nothing more, so that a checkpoint keeps exactly what they have not delivered."""
        for output in self.outputs.values():
            output.stop()

    def start_inputs(self) -> None:
        """Start the connectors' threads; they read once the pipeline is active."""
        for reader in self._readers.values():
            reader.start()

    def set_active(self, active: bool) -> None:
        """Let the connectors read, or not."""
        for reader in self._readers.values():
            reader.set_active(active)

    def set_paused(self, endpoint: str, paused: bool) -> None:
        """Pause or start one connector."""
        self._readers[endpoint].set_paused(paused)

    def have_work(self, wanted: Wanted = _all) -> bool:
        """Whether a connector has something for a step.

        :param wanted: which connectors are asked
        """
        return any(reader.has_work for reader in self._readers.values() if wanted(reader.endpoint))

    def take(self, wanted: Wanted = _all) -> dict[InputEndpoint, list[InputChunk]]:
        """What each connector has for the next step.

        :param wanted: which connectors are asked
        """
        return self._taken(wanted, ConnectorInput.take)

    def take_all(self, wanted: Wanted) -> dict[InputEndpoint, list[InputChunk]]:
        """All that each connector has read.

        :param wanted: which connectors are asked
        """
        return self._taken(wanted, ConnectorInput.take_all)

    def _taken(self, wanted: Wanted, take: Callable[[ConnectorInput], list[InputChunk]]) -> dict[InputEndpoint, list[InputChunk]]:
        taken = {reader.endpoint: take(reader) for reader in self._readers.values() if wanted(reader.endpoint)}
        return {endpoint: chunks for endpoint, chunks in taken.items() if chunks}

    def release_labels(self) -> None:
        """Start the connectors whose ``start_after`` labels have all been processed."""
        unfinished = {
            label
            for reader in self._readers.values()
            if not (reader.endpoint.metrics.end_of_input and reader.drained)
            for label in reader.labels
        }
        for reader in self._readers.values():
            if reader.waiting_for_labels and not reader.start_after & unfinished:
                reader.labels_done()

    @property
    def all_ended(self) -> bool:
        """Whether every declared input has reached its end and has been consumed."""
        return all(reader.endpoint.metrics.end_of_input and reader.drained for reader in self._readers.values())

    @property
    def without_position(self) -> tuple[str, ...]:
        """The inputs that are in the middle of a source that can be read from its beginning only."""
        return tuple(name for name, reader in self._readers.items() if reader.is_without_position)

    @property
    def num_errors(self) -> int:
        """Errors of all connectors."""
        inputs = sum(e.metrics.parse_errors.count + e.metrics.transport_errors.count for e in list(self.inputs.values()))
        return inputs + sum(e.metrics.encode_errors.count + e.metrics.transport_errors.count for e in self.outputs.values())

    @property
    def all_outputs(self) -> list[OutputEndpoint | Listener]:
        """The declared outputs, and those who listen at the moment."""
        return [*self.outputs.values(), *self.listeners.all()]

    def states(self) -> dict[str, ConnectorState]:
        """What a checkpoint keeps of all endpoints."""
        inputs = {name: endpoint.to_state() for name, endpoint in list(self.inputs.items())}
        for name, reader in self._readers.items():
            inputs[name] = replace(inputs[name], waiting=reader.waiting_for_labels)
        return {**inputs, **{name: output.to_state() for name, output in self.outputs.items()}}

    def has_consumers(self, relation: str) -> bool:
        """Whether an output or a listener takes the deltas of a relation."""
        return any(output.view == relation for output in self.outputs.values()) or bool(self.listeners.of(relation))

    def deliver(self, step: int, deltas: Mapping[str, Batch]) -> None:
        """Give one step's deltas to the outputs and listeners of their relations."""
        for relation, delta in deltas.items():
            if delta.rows == 0:
                continue
            outputs = [output for output in self.outputs.values() if output.view == relation]
            listeners = self.listeners.of(relation)
            if not outputs and not listeners:
                continue
            part = self._part(relation, step, self._epoch, delta, self._program)
            direct = [output for output in outputs if not output.keep(step, delta)]
            for output in direct:
                self._flush(output, self._program)
            self._give(part, direct, listeners)
        self.flush_due()

    def _give(self, part: StepChanges, outputs: Sequence[OutputEndpoint], listeners: Sequence[Listener]) -> None:
        """Give changes to outputs and listeners; those that tell rows by the same key share the order."""
        for key in {key: None for key in [*(output.key for output in outputs), *(listener.key for listener in listeners)]}:
            changes = self._in_order(part, key)
            for output in outputs:
                if output.key == key:
                    output.write(part, changes)
            takers = [listener for listener in listeners if listener.key == key]
            if takers:
                self.tell(changes(), takers, snapshot=False)

    def begin_with(self, output: OutputEndpoint, step: int, contents: Batch) -> None:
        """Give an output the contents of its view.

        :param output: one that begins with them
        :param step: the newest step
        :param contents: the rows, as the inserts that lead to them
        """
        part = self._part(output.view, step, self._epoch, contents, self._program)
        output.write(part, self._in_order(part, output.key))

    def deliver_again(self, step: int, epoch: int, deltas: Mapping[str, Batch], program: Program, outputs: Set[str]) -> None:
        """Give a step that an earlier run committed, and may not have delivered, to outputs that were there then.

        :param step: its number
        :param epoch: that of the run that committed it
        :param deltas: by relation
        :param program: the one whose step it was
        :param outputs: the names of the outputs
        """
        for output in self.outputs.values():
            delta = deltas.get(output.view)
            if output.name not in outputs or delta is None or delta.rows == 0:
                continue
            if not output.keep(step, delta):
                self._flush(output, program, epoch)
                part = self._part(output.view, step, epoch, delta, program)
                output.write(part, self._in_order(part, output.key))
            elif output.has_to_flush:
                self._flush(output, program, epoch)

    @property
    def first_kept(self) -> int | None:
        """The oldest step of which an output has not delivered all changes; None when there is none."""
        return min((output.first_kept for output in self.outputs.values() if output.first_kept is not None), default=None)

    @property
    def until_flush(self) -> float | None:
        """Seconds until the buffer of an output has to be written; None when nothing says so."""
        waits = (output.until_flush for output in self.outputs.values())
        return min((wait for wait in waits if wait is not None), default=None)

    def flush_due(self) -> None:
        """Write the buffers that have reached a bound; all of them when no declared input has any more rows."""
        if not any(output.has_buffered for output in self.outputs.values()):
            return
        ended = bool(self._readers) and self.all_ended
        for output in self.outputs.values():
            if ended or output.has_to_flush:
                self._flush(output, self._program)

    def flush(self, program: Program, epoch: int | None = None) -> None:
        """Write the buffers of all outputs, or have their contents wait for their turn.

        :param program: the one whose changes they keep
        :param epoch: that of the run that committed them; None for this run
        """
        for output in self.outputs.values():
            self._flush(output, program, epoch)

    def _flush(self, output: OutputEndpoint, program: Program, epoch: int | None = None) -> None:
        of_run = self._epoch if epoch is None else epoch
        output.flush(lambda step, delta: self._part(output.view, step, of_run, delta, program))

    @staticmethod
    def _part(relation: str, step: int, epoch: int, delta: Batch, program: Program) -> StepChanges:
        return StepChanges(step, epoch, delta, tuple(program.schemas[relation].column_names))

    def _in_order(self, part: StepChanges, key: Sequence[str]) -> Callable[[], Changes]:
        """Gives changes in order, which is found at most once."""
        return cache(lambda: part.in_order(self._session, key))

    @property
    def has_delivered(self) -> bool:
        """Whether an output has delivered something, or failed, since :meth:`look` was called."""
        return self._has_delivered

    def look(self) -> bool:
        """Whether an output has delivered something, or failed, since this was called before."""
        news, self._has_delivered = self._has_delivered, False
        return news

    @property
    def delivers(self) -> bool:
        """Whether an output that works has something to deliver."""
        return any(output.delivers for output in self.outputs.values())

    @property
    def is_held_up(self) -> bool:
        """Whether so much waits for an output that no steps are to be made."""
        return any(output.is_full for output in self.outputs.values())

    @property
    def stalled_s(self) -> float:
        """For how many seconds steps have been waiting for an output or a listener."""
        return max([self.listeners.stalled_s, *(output.stalled_s for output in self.outputs.values())])

    def _wake(self) -> None:
        self._has_delivered = True
        self._arrived(0, 0)

    def tell(self, changes: Changes, listeners: list[Listener], *, snapshot: bool) -> None:
        """Give changes of a relation to listeners of it, chunk by chunk.

        :param changes: of one relation
        :param listeners: who gets them, each in its own format
        :param snapshot: whether the changes are the relation's contents for a new listener
        """
        for encoding in {listener.encoding: None for listener in listeners}:
            takers = [listener for listener in listeners if listener.encoding == encoding]
            for chunk in encode_egress(changes, takers[0].format, takers[0].json):
                for listener in takers:
                    listener.put(chunk, snapshot=snapshot)
                if all(listener.closed for listener in takers):
                    # Those who have gone need not be made the rest for.
                    break

    def attach(self, listener: Listener) -> None:
        """Give a listener the deltas of all steps from now on."""
        self._count_processed(listener.metrics)
        self.listeners.add(listener)

    def count_delivered(self, records: int, steps: int) -> None:
        """All outputs of everything consumed so far have been delivered.

        :param records: input records that the pipeline has completed
        :param steps: steps that it has completed
        """
        self._delivered = (records, steps)
        for endpoint in list(self.inputs.values()):
            endpoint.complete()
        for output in self.all_outputs:
            self._count_processed(output.metrics)

    def count_delivered_until(self, mark: Mark) -> None:
        """The outputs of everything have been delivered that was consumed at a certain time."""
        self._delivered = (mark.counters.processed_records, mark.counters.initiated_steps)
        for endpoint, records in mark.records.items():
            endpoint.complete_until(records)
        for output in self.all_outputs:
            self._count_processed(output.metrics)

    def mark(self, step: int, counters: Counters) -> Mark:
        """What has been consumed up to now.

        :param step: the newest step
        :param counters: those of the pipeline
        """
        records = {endpoint: endpoint.metrics.processed_records for endpoint in list(self.inputs.values())}
        return Mark(step, counters, records)

    def _count_processed(self, metrics: OutputMetrics) -> None:
        metrics.total_processed_input_records, metrics.total_processed_steps = self._delivered

    @property
    def have_moved(self) -> bool:
        """Whether a source stands elsewhere than the newest checkpoint and the journal say."""
        return any(endpoint.has_moved for endpoint in list(self.inputs.values()))

    def keep_positions(self) -> None:
        """A checkpoint has the places of all sources."""
        for endpoint in list(self.inputs.values()):
            endpoint.keep(endpoint.position)

    def count_durable(self) -> None:
        """The effect of everything consumed so far is on disk."""
        for endpoint in list(self.inputs.values()):
            endpoint.secure()
        for reader in self._readers.values():
            reader.commit()

    @property
    def failure(self) -> FatalConnectorFailure | StorageError | None:
        """Why the pipeline cannot go on: that of the first connector that says so."""
        failures = [reader.failure for reader in self._readers.values()] + [output.failure for output in self.outputs.values()]
        return next((failure for failure in failures if failure is not None), None)

    def close(self) -> None:
        """Stop all connectors, flush the outputs and end the listeners' streams."""
        for reader in self._readers.values():
            reader.close()
        if self._streams is not None:
            self._streams.stop_reading()
        for output in self.outputs.values():
            output.close()
        self.listeners.close()

    def _input_opener(self, connector: Connector) -> Callable[[], Any]:
        schema = self._program.schemas[connector.relation]
        if connector.transport == STREAM_SOURCE:
            if self._streams is None:
                raise RuntimeError(f"{connector.endpoint} reads a stream program, whose processes nobody starts")
            reading = self._streams.reading
            return lambda: open_stream_source(connector, schema, reading)
        return lambda: open_input(connector, schema, self._references, self._pipeline, self._now)

    def _output_opener(self, connector: Connector, key: tuple[str, ...]) -> Callable[[], Any]:
        schema = self._program.schemas[connector.relation]
        return lambda: open_output(
            connector,
            schema,
            self._references,
            replace(self._pipeline, begun=self._begun),
            key,
            self._positions,
            self._fence,
        )
