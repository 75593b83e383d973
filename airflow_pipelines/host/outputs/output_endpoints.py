"""All outputs of one running pipeline, and who listens to it: each step's deltas are put in order and given to them."""

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
    """The declared outputs of one incarnation, by name, its listeners, and what others follow of it."""

    def __init__(
        self,
        program: Program,
        session: SparkSession,
        epoch: int,
        inputs_have_ended: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        """Have none yet.

        :param program: the one whose steps are delivered
        :param session: sorts large deltas
        :param epoch: that of the run
        :param inputs_have_ended: whether no declared input has any more rows, so that nothing else would make a buffer full
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
        """Have one more.

        :param output: declared by the program
        """
        self._by_name[output.name] = output

    @property
    def declared(self) -> list[OutputEndpoint]:
        """The declared outputs."""
        return list(self._by_name.values())

    @property
    def all(self) -> list[OutputEndpoint | Listener]:
        """The declared outputs, and those who listen at the moment."""
        return [*self._by_name.values(), *self.listeners.all()]

    def restore(self, name: str, state: OutputState, kept: frozenset[str]) -> None:
        """Give an output its saved state.

        :param name: the output
        :param state: what was saved
        :param kept: the connectors that go on; others keep their counters but start from scratch
        """
        if name in self._by_name:
            self._by_name[name].restore(state, same=name in kept)

    def open(self, resumed: frozenset[str], kept: frozenset[str], step: int, begun: float) -> None:
        """Open all outputs; those in ``resumed``, which an earlier incarnation wrote, as they were after ``step``.

        :param resumed: the names of those that the base of what was saved knows
        :param kept: the names of those that are what they were, whether that knows them or not
        :param step: the step after which the pipeline goes on
        :param begun: when the pipeline began with the storage that it has
        """
        for name, output in self._by_name.items():
            output.open(step if name in (kept if output.is_queue else resumed) else None, begun)

    def start(self) -> None:
        """Let the outputs deliver what waits: no crash can lose it any more, where that is promised."""
        for output in self._by_name.values():
            output.start()

    def stop(self) -> None:
        """Let the outputs deliver nothing more, so that a checkpoint keeps exactly what they have not delivered."""
        for output in self._by_name.values():
            output.stop()

    def has_consumers(self, relation: str) -> bool:
        """Whether an output or a listener takes the deltas of a relation."""
        if self._awaits_listeners:
            return True
        return any(output.view == relation for output in self._by_name.values()) or bool(self.listeners.of(relation))

    def deliver(self, step: int, deltas: Mapping[str, Batch]) -> None:
        """Give one step's deltas to the outputs, listeners and followers of their relations."""
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
        for output in self._by_name.values():
            delta = deltas.get(output.view)
            if output.name not in outputs or delta is None or delta.rows == 0:
                continue
            # Not by its buffer: the earlier run may have written part of what would be together now, and a target that has a step
            # tells only by its number that it has those before it.
            part = self._part(output.view, step, epoch, delta, program)
            output.write(part, self._in_order(part, output.key))

    def await_listeners(self) -> None:
        """Keep what is delivered for listeners, until :meth:`let_listen`: nobody can be one yet."""
        self._awaits_listeners = True

    def let_listen(self) -> None:
        """Listeners may come. Those that do before another step, or :meth:`forget_first`, are to get what was kept."""
        self._awaits_listeners = False

    def forget_first(self) -> None:
        """Who listens from now on gets what comes from now on."""
        self._first.clear()

    def has_first(self, relation: str) -> bool:
        """Return True if there are changes that a listener of a relation is to get first, see :meth:`tell_first`."""
        return any(relation in deltas for _, deltas in self._first)

    def attach(self, listener: Listener) -> None:
        """Give a listener the deltas of all steps from now on."""
        self._tell_processed(listener.metrics)
        self.listeners.add(listener)

    def tell_first(self, listener: Listener) -> None:
        """Give a listener the changes of its relation that were made before anybody could listen, if no step came since.

        :param listener: one that was attached between two steps
        """
        for step, deltas in self._first:
            delta = deltas.get(listener.view)
            if delta is not None and delta.rows:
                part = self._part(listener.view, step, self._epoch, delta, self._program)
                self.tell(self._in_order(part, listener.key)(), [listener], snapshot=False)

    def tell(self, changes: Changes, listeners: list[Listener], *, snapshot: bool) -> None:
        """Give changes of a relation to listeners of it, chunk by chunk.

        :param changes: of one relation
        :param listeners: who gets them, each in its own format
        :param snapshot: whether the changes are the relation's contents for a new listener
        """
        for encoding in {listener.encoding: None for listener in listeners}:
            takers = [listener for listener in listeners if listener.encoding == encoding]
            left_out = LeftOutRows(takers[0].key)
            for chunk in encode_egress(changes, takers[0].format, takers[0].json, left_out):
                for listener in takers:
                    listener.put(chunk, snapshot=snapshot)
                if all(listener.closed for listener in takers):
                    # Those who have gone need not be made the rest for.
                    break
            errors, count = left_out.take()
            for listener in takers:
                listener.metrics.encode_errors.extend(errors, count)

    def flush_due(self) -> None:
        """Write the buffers that have reached a bound; all of them when no declared input has any more rows."""
        if not any(output.has_buffered for output in self._by_name.values()):
            return
        ended = self._inputs_have_ended()
        for output in self._by_name.values():
            if ended or output.has_to_flush:
                self._flush(output, self._program)

    def flush(self, program: Program) -> None:
        """Write the buffers of all outputs, or have their contents wait for their turn.

        :param program: the one whose changes they keep
        """
        for output in self._by_name.values():
            self._flush(output, program)

    @property
    def until_flush(self) -> float | None:
        """Seconds until the buffer of an output has to be written; None when nothing says so."""
        waits = (output.until_flush for output in self._by_name.values())
        return min((wait for wait in waits if wait is not None), default=None)

    @property
    def first_kept(self) -> int | None:
        """The oldest step of which an output has not delivered all changes; None when there is none."""
        return min((output.first_kept for output in self._by_name.values() if output.first_kept is not None), default=None)

    def woken(self) -> None:
        """An output has delivered something, or failed; called by its thread."""
        self._has_delivered = True
        self._wake()

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
        return any(output.delivers for output in self._by_name.values())

    @property
    def is_held_up(self) -> bool:
        """Whether so much waits for an output that no steps are to be made."""
        return any(output.is_full for output in self._by_name.values())

    @property
    def stalled_s(self) -> float:
        """For how many seconds steps have been waiting for an output or a listener."""
        return max([self.listeners.stalled_s, *(output.stalled_s for output in self._by_name.values())])

    @property
    def num_errors(self) -> int:
        """Errors of all declared outputs."""
        return sum(output.metrics.encode_errors.count + output.metrics.transport_errors.count for output in self._by_name.values())

    @property
    def failure(self) -> FatalConnectorFailure | StorageError | None:
        """Why the pipeline cannot go on: that of the first output that says so."""
        return next((output.failure for output in self._by_name.values() if output.failure is not None), None)

    def states(self) -> dict[str, OutputState]:
        """What a checkpoint keeps of all outputs."""
        return {name: output.to_state() for name, output in self._by_name.items()}

    def count_processed(self, records: int, steps: int) -> None:
        """All outputs and listeners have what so many records and steps led to.

        :param records: input records that the pipeline has completed
        :param steps: steps that it has completed
        """
        self._processed = (records, steps)
        for output in self.all:
            self._tell_processed(output.metrics)

    def close(self) -> None:
        """Flush the outputs and end the listeners' streams."""
        for output in self._by_name.values():
            output.close()
        self.listeners.close()
        self.change_logs.close()

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

    def _flush(self, output: OutputEndpoint, program: Program) -> None:
        output.flush(lambda step, delta: self._part(output.view, step, self._epoch, delta, program))

    @staticmethod
    def _part(relation: str, step: int, epoch: int, delta: Batch, program: Program) -> StepChanges:
        return StepChanges(step, epoch, delta, tuple(program.schemas[relation].column_names))

    def _in_order(self, part: StepChanges, key: Sequence[str]) -> Callable[[], Changes]:
        """Gives changes in order, which is found at most once."""
        return cache(lambda: part.in_order(self._session, key))

    def _tell_processed(self, metrics: OutputMetrics) -> None:
        metrics.total_processed_input_records, metrics.total_processed_steps = self._processed
