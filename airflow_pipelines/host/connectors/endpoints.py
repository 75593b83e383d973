"""The inputs and outputs of one running pipeline together: opened, saved and counted at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from airflow_pipelines.connectors.base import FatalConnectorFailure
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.engine.storage.connector_state import ConnectorState, OutputState
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.connectors.declared_connectors import ConnectorServices, DeclaredConnectors
from airflow_pipelines.host.inputs.input_endpoints import InputEndpoints
from airflow_pipelines.host.outputs.deliveries import Mark
from airflow_pipelines.host.outputs.output_endpoints import OutputEndpoints
from airflow_pipelines.host.outputs.outputs import OutputServices
from airflow_pipelines.host.state.pipeline_log import PipelineLog


class Endpoints:
    """The inputs and outputs of one incarnation."""

    def __init__(
        self,
        program: Program,
        session: SparkSession,
        arrived: Callable[[int, int], None],
        log: PipelineLog,
        batches: BatchStore,
        epoch: int,
        services: ConnectorServices,
    ) -> None:
        """Create all endpoints; none is opened yet.

        :param program: the program that declares the connectors
        :param session: the session that sorts large deltas
        :param arrived: called as ``arrived(records, bytes)`` from connector threads when rows arrive
        :param log: the pipeline's log
        :param batches: the store of undelivered changes
        :param epoch: the epoch of the run
        :param services: the services of the pipeline for connectors
        :raises Problem: if a declaration compiles, but no pipeline can start with it
        """
        self._streams = services.streams
        self._declared = DeclaredConnectors(program, services, log)
        self.inputs = InputEndpoints()
        self.outputs = OutputEndpoints(program, session, epoch, lambda: self.inputs.have_ended, lambda: arrived(0, 0))
        for reader in self._declared.inputs(arrived):
            self.inputs.add(reader)
        for output in self._declared.outputs(OutputServices(session, batches, log, epoch, services.positions, self.outputs.woken)):
            self.outputs.add(output)

    def restore(self, states: Mapping[str, ConnectorState], kept: frozenset[str], relations: frozenset[str]) -> None:
        """Restore the saved state of each endpoint.

        :param states: the saved states
        :param kept: the connectors that go on; others keep their counters but start from scratch
        :param relations: the unchanged relations; the inputs of requests to other tables are dropped
        """
        for name, state in states.items():
            if isinstance(state, OutputState):
                self.outputs.restore(name, state, kept)
            else:
                self.inputs.restore(name, state, kept, relations)

    def open_outputs(self, resumed: frozenset[str], kept: frozenset[str], step: int, begun: float) -> None:
        """Open all outputs. Those that an earlier incarnation wrote go on from their state after ``step``.

        :param resumed: the names of the outputs that the base of the saved state has
        :param kept: the names of the outputs that have not changed, in the base or not
        :param step: the step after which the pipeline goes on
        :param begun: the time at which the pipeline began with its current storage
        """
        self._declared.begin(begun)
        self.outputs.open(resumed, kept, step, begun)

    def start_outputs(self) -> None:
        """Let the outputs deliver the waiting changes: if durability is promised, no crash can lose these any more."""
        if self.outputs.first_kept is not None:
            # Until all waiting changes are delivered, it is not known which input rows are delivered.
            self.inputs.complete_until(dict.fromkeys(self.inputs.all, 0))
        self.outputs.start()

    @property
    def num_errors(self) -> int:
        """The number of errors of all connectors."""
        return self.inputs.num_errors + self.outputs.num_errors

    @property
    def failure(self) -> FatalConnectorFailure | StorageError | None:
        """The error for which the pipeline cannot go on, of the first connector that has one, or None."""
        return self.inputs.failure or self.outputs.failure

    def states(self) -> dict[str, ConnectorState]:
        """Return the state of all endpoints for a checkpoint."""
        return {**self.inputs.states(), **self.outputs.states()}

    def mark(self, step: int, counters: Counters) -> Mark:
        """Return a mark of everything that has been consumed up to now.

        :param step: the newest step
        :param counters: the counters of the pipeline
        """
        return Mark(step, counters, self.inputs.count_processed())

    def count_delivered(self, records: int, steps: int) -> None:
        """Note that the results of everything consumed so far have been delivered.

        :param records: the number of input records that the pipeline has completed
        :param steps: the number of steps that it has completed
        """
        self.inputs.complete()
        self.outputs.count_processed(records, steps)

    def count_delivered_until(self, mark: Mark) -> None:
        """Note that the results of everything consumed up to a mark have been delivered."""
        self.inputs.complete_until(mark.records)
        self.outputs.count_processed(mark.counters.processed_records, mark.counters.initiated_steps)

    def close(self) -> None:
        """Stop all connectors, close the outputs and end the listeners' streams."""
        self.inputs.close()
        if self._streams is not None:
            self._streams.stop_reading()
        self.outputs.close()
