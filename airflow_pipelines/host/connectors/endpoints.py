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
        """Make all endpoints, and open none.

        :param program: declares the connectors
        :param session: sorts large deltas
        :param arrived: called as ``arrived(records, bytes)`` from connector threads when something came in
        :param log: the pipeline's log
        :param batches: keeps what outputs have not delivered
        :param epoch: that of the run
        :param services: what connectors get of their pipeline
        :raises Problem: when a declaration compiles that no pipeline can start with
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
        """Give each endpoint its saved state.

        :param states: what was saved
        :param kept: the connectors that go on; others keep their counters but start from scratch
        :param relations: those that are as they were; the inputs of requests to other tables are forgotten
        """
        for name, state in states.items():
            if isinstance(state, OutputState):
                self.outputs.restore(name, state, kept)
            else:
                self.inputs.restore(name, state, kept, relations)

    def open_outputs(self, resumed: frozenset[str], kept: frozenset[str], step: int, begun: float) -> None:
        """Open all outputs; those in ``resumed``, which an earlier incarnation wrote, as they were after ``step``.

        :param resumed: the names of those that the base of what was saved knows
        :param kept: the names of those that are what they were, whether that knows them or not
        :param step: the step after which the pipeline goes on
        :param begun: when the pipeline began with the storage that it has
        """
        self._declared.begin(begun)
        self.outputs.open(resumed, kept, step, begun)

    def start_outputs(self) -> None:
        """Let the outputs deliver what waits: no crash can lose it any more, where that is promised."""
        if self.outputs.first_kept is not None:
            # Until all of that is delivered, it is not known which rows are.
            self.inputs.complete_until(dict.fromkeys(self.inputs.all, 0))
        self.outputs.start()

    @property
    def num_errors(self) -> int:
        """Errors of all connectors."""
        return self.inputs.num_errors + self.outputs.num_errors

    @property
    def failure(self) -> FatalConnectorFailure | StorageError | None:
        """Why the pipeline cannot go on: that of the first connector that says so."""
        return self.inputs.failure or self.outputs.failure

    def states(self) -> dict[str, ConnectorState]:
        """What a checkpoint keeps of all endpoints."""
        return {**self.inputs.states(), **self.outputs.states()}

    def mark(self, step: int, counters: Counters) -> Mark:
        """What has been consumed up to now.

        :param step: the newest step
        :param counters: those of the pipeline
        """
        return Mark(step, counters, self.inputs.processed())

    def count_delivered(self, records: int, steps: int) -> None:
        """All outputs of everything consumed so far have been delivered.

        :param records: input records that the pipeline has completed
        :param steps: steps that it has completed
        """
        self.inputs.complete()
        self.outputs.count_processed(records, steps)

    def count_delivered_until(self, mark: Mark) -> None:
        """The outputs of everything have been delivered that was consumed at a certain time."""
        self.inputs.complete_until(mark.records)
        self.outputs.count_processed(mark.counters.processed_records, mark.counters.initiated_steps)

    def close(self) -> None:
        """Stop all connectors, flush the outputs and end the listeners' streams."""
        self.inputs.close()
        if self._streams is not None:
            self._streams.stop_reading()
        self.outputs.close()
