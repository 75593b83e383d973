"""All outputs and listeners of one running pipeline; each step's deltas are put in order and given to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache

from pyspark.sql import SparkSession

from airflow_pipelines.connectors.base import FatalConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.http import encode_egress
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.storage.connector_state import OutputState
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.metrics.connector_metrics import OutputMetrics
from airflow_pipelines.host.outputs.change_log import ChangeLogs
from airflow_pipelines.host.outputs.listeners import Listener, Listeners
from airflow_pipelines.host.outputs.outputs import OutputEndpoint
from airflow_pipelines.host.outputs.step_changes import StepChanges


class OutputEndpoints:
    """The declared outputs of one incarnation by name, its listeners, and the logs of its followed relations."""

    def __init__(
        self,
        program: Program,
        session: SparkSession,
        epoch: int,
        inputs_have_ended: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        """Start without outputs.

        :param program: the program whose steps are delivered
        :param session: the session that sorts large deltas
        :param epoch: the epoch of the run
        :param inputs_have_ended: returns True if no declared input has any more rows, so that no more rows would fill a buffer
        :param wake: lets the pipeline's thread look again
        """
        self._program = program
        self._session = session
        self._epoch = epoch
        self._inputs_have_ended = inputs_have_ended
        self._wake = wake
        self._by_name: dict[str, OutputEndpoint] = {}
        self._has_delivered = False
        self._processed = (0, 0)
        self._awaits_listeners = False
        self._first: list[tuple[int, Mapping[str, Batch]]] = []
        self.listeners = Listeners()
        self.change_logs = ChangeLogs()

    def add(self, output: OutputEndpoint) -> None:
        """Add an output.

        :param output: an output that the program declares
        """
        self._by_name[output.name] = output

    @property
    def declared(self) -> list[OutputEndpoint]:
        """The declared outputs."""
        return list(self._by_name.values())

    @property
    def all(self) -> list[OutputEndpoint | Listener]:
        """The declared outputs and the current listeners."""
        return [*self._by_name.values(), *self.listeners.all()]

    def restore(self, name: str, state: OutputState, kept: frozenset[str]) -> None:
        """Restore the saved state of an output.

        :param name: the output
        :param state: its saved state
        :param kept: the connectors that go on; others keep their counters but start from scratch
        """
        if name in self._by_name:
            self._by_name[name].restore(state, same=name in kept)

    def open(self, resumed: frozenset[str], kept: frozenset[str], step: int, begun: float) -> None:
        """Open all outputs. Those that an earlier incarnation wrote go on from their state after ``step``.

        :param resumed: the names of the outputs that the base of the saved state has
        :param kept: the names of the outputs that have not changed, in the base or not
        :param step: the step after which the pipeline goes on
        :param begun: the time at which the pipeline began with its current storage
        """
        for name, output in self._by_name.items():
            output.open(step if name in (kept if output.is_queue else resumed) else None, begun)

    def start(self) -> None:
        """Let the outputs deliver the waiting changes: if durability is promised, no crash can lose these any more."""
        for output in self._by_name.values():
            output.start()

    def stop(self) -> None:
        """Stop all deliveries, so that a checkpoint keeps exactly the undelivered changes."""
        for output in self._by_name.values():
            output.stop()

    def has_consumers(self, relation: str) -> bool:
        """Return True if an output or a listener takes the deltas of a relation."""
        if self._awaits_listeners:
            return True
        return any(output.view == relation for output in self._by_name.values()) or bool(self.listeners.of(relation))

    def deliver(self, step: int, deltas: Mapping[str, Batch]) -> None:
        """Give the deltas of one step to the outputs, listeners and followers of their relations."""
        if self._awaits_listeners:
            self._first.append((step, deltas))
        else:
            self._first.clear()
        self.change_logs.add(step, deltas)
        for relation, delta in deltas.items():
            if delta.rows == 0:
                continue
            outputs = [output for output in self._by_name.values() if output.view == relation]
            listeners = self.listeners.of(relation)
            if not outputs and not listeners:
                continue
            part = self._part(relation, step, self._epoch, delta, self._program)
            direct = [output for output in outputs if not output.keep(step, delta)]
            for output in direct:
                self._flush(output, self._program)
            self._give(part, direct, listeners)
        self.flush_due()

    def begin_with(self, output: OutputEndpoint, step: int, contents: Batch) -> None:
        """Give an output the contents of its view.

        :param output: an output that begins with the contents
        :param step: the newest step
        :param contents: the rows, as the inserts that lead to them
        """
        part = self._part(output.view, step, self._epoch, contents, self._program)
        output.write(part, self._in_order(part, output.key))

    def deliver_again(self, step: int, epoch: int, deltas: Mapping[str, Batch], program: Program, outputs: Set[str]) -> None:
        """Deliver a step again that an earlier run committed, and may not have delivered, to outputs that existed then.

        :param step: the step's number
        :param epoch: the epoch of the run that committed it
        :param deltas: its deltas, by relation
        :param program: the program that made the step
        :param outputs: the names of the outputs
        """
        for output in self._by_name.values():
            delta = deltas.get(output.view)
            if output.name not in outputs or delta is None or delta.rows == 0:
                continue
            # Not through the buffer. The earlier run may have written part of the batch that the buffer would make now, and a
            # target commits only the number of its last step, which implies all steps before it.
            part = self._part(output.view, step, epoch, delta, program)
            output.write(part, self._in_order(part, output.key))

    def await_listeners(self) -> None:
        """Keep the delivered changes for listeners until :meth:`let_listen`: no client can listen yet."""
        self._awaits_listeners = True

    def let_listen(self) -> None:
        """Allow listeners. Those that come before another step, or :meth:`forget_first`, are to get the kept changes."""
        self._awaits_listeners = False

    def forget_first(self) -> None:
        """Drop the kept changes: a listener that comes from now on gets only later changes."""
        self._first.clear()

    def has_first(self, relation: str) -> bool:
        """Return True if there are changes that a listener to a relation is to get first, see :meth:`tell_first`."""
        return any(relation in deltas for _, deltas in self._first)

    def attach(self, listener: Listener) -> None:
        """Give a listener the deltas of all steps from now on."""
        self._tell_processed(listener.metrics)
        self.listeners.add(listener)

    def tell_first(self, listener: Listener) -> None:
        """Give a listener the changes of its relation from before any client could listen, if no step came since.

        :param listener: a listener that was attached between two steps
        """
        for step, deltas in self._first:
            delta = deltas.get(listener.view)
            if delta is not None and delta.rows:
                part = self._part(listener.view, step, self._epoch, delta, self._program)
                self.tell(self._in_order(part, listener.key)(), [listener], snapshot=False)

    def tell(self, changes: Changes, listeners: list[Listener], *, snapshot: bool) -> None:
        """Give changes of a relation to its listeners, chunk by chunk.

        :param changes: the changes of one relation
        :param listeners: the listeners; each gets the changes in its own format
        :param snapshot: True if the changes are the relation's contents for a new listener
        """
        for encoding in {listener.encoding: None for listener in listeners}:
            takers = [listener for listener in listeners if listener.encoding == encoding]
            left_out = LeftOutRows(takers[0].key)
            for chunk in encode_egress(changes, takers[0].format, takers[0].json, left_out):
                for listener in takers:
                    listener.put(chunk, snapshot=snapshot)
                if all(listener.closed for listener in takers):
                    # No listener is left that needs the rest.
                    break
            errors, count = left_out.take()
            for listener in takers:
                listener.metrics.encode_errors.extend(errors, count)

    def flush_due(self) -> None:
        """Write the buffers that have reached a bound, or all of them if no declared input has any more rows."""
        if not any(output.has_buffered for output in self._by_name.values()):
            return
        ended = self._inputs_have_ended()
        for output in self._by_name.values():
            if ended or output.has_to_flush:
                self._flush(output, self._program)

    def flush(self, program: Program) -> None:
        """Write the buffers of all outputs, or queue their contents.

        :param program: the program whose changes they have
        """
        for output in self._by_name.values():
            self._flush(output, program)

    @property
    def until_flush(self) -> float | None:
        """The seconds until the buffer of an output has to be written, or None if no buffer has such a time."""
        waits = (output.until_flush for output in self._by_name.values())
        return min((wait for wait in waits if wait is not None), default=None)

    @property
    def first_kept(self) -> int | None:
        """The oldest step whose changes an output has not delivered completely, or None if there is none."""
        return min((output.first_kept for output in self._by_name.values() if output.first_kept is not None), default=None)

    def woken(self) -> None:
        """Note that an output has delivered something or failed. The output's thread calls it."""
        self._has_delivered = True
        self._wake()

    @property
    def has_delivered(self) -> bool:
        """True if an output has delivered something or failed since the last call of :meth:`look`."""
        return self._has_delivered

    def look(self) -> bool:
        """Return True if an output has delivered something or failed since the last call."""
        news, self._has_delivered = self._has_delivered, False
        return news

    @property
    def delivers(self) -> bool:
        """True if a working output has something to deliver."""
        return any(output.delivers for output in self._by_name.values())

    @property
    def is_held_up(self) -> bool:
        """True if the queue of an output is full, so that no steps should be made."""
        return any(output.is_full for output in self._by_name.values())

    @property
    def stalled_s(self) -> float:
        """The seconds that steps have been waiting for an output or a listener."""
        return max([self.listeners.stalled_s, *(output.stalled_s for output in self._by_name.values())])

    @property
    def num_errors(self) -> int:
        """The number of errors of all declared outputs."""
        return sum(output.metrics.encode_errors.count + output.metrics.transport_errors.count for output in self._by_name.values())

    @property
    def failure(self) -> FatalConnectorFailure | StorageError | None:
        """The error for which the pipeline cannot go on, of the first output that has one, or None."""
        return next((output.failure for output in self._by_name.values() if output.failure is not None), None)

    def states(self) -> dict[str, OutputState]:
        """Return the state of all outputs for a checkpoint."""
        return {name: output.to_state() for name, output in self._by_name.items()}

    def count_processed(self, records: int, steps: int) -> None:
        """Note that all outputs and listeners have the results of the completed records and steps.

        :param records: the number of input records that the pipeline has completed
        :param steps: the number of steps that it has completed
        """
        self._processed = (records, steps)
        for output in self.all:
            self._tell_processed(output.metrics)

    def close(self) -> None:
        """Close the outputs and end the listeners' streams."""
        for output in self._by_name.values():
            output.close()
        self.listeners.close()
        self.change_logs.close()

    def _give(self, part: StepChanges, outputs: Sequence[OutputEndpoint], listeners: Sequence[Listener]) -> None:
        """Give changes to outputs and listeners. Those with the same key share the sorted changes."""
        for key in {key: None for key in [*(output.key for output in outputs), *(listener.key for listener in listeners)]}:
            changes = self._in_order(part, key)
            for output in outputs:
                if output.key == key:
                    output.write(part, changes)
            takers = [listener for listener in listeners if listener.key == key]
            if takers:
                self.tell(changes(), takers, snapshot=False)

    def _flush(self, output: OutputEndpoint, program: Program) -> None:
        output.flush(lambda step, delta: self._part(output.view, step, self._epoch, delta, program))

    @staticmethod
    def _part(relation: str, step: int, epoch: int, delta: Batch, program: Program) -> StepChanges:
        return StepChanges(step, epoch, delta, tuple(program.schemas[relation].column_names))

    def _in_order(self, part: StepChanges, key: Sequence[str]) -> Callable[[], Changes]:
        """Return a function that returns the changes in order, and sorts them at most once."""
        return cache(lambda: part.in_order(self._session, key))

    def _tell_processed(self, metrics: OutputMetrics) -> None:
        metrics.total_processed_input_records, metrics.total_processed_steps = self._processed
