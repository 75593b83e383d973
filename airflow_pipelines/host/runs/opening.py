"""Opening and recovery: from a deployment and the state of an earlier incarnation to a pipeline that can run steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

from airflow_pipelines.common.references import ReferenceWithoutValueError
from airflow_pipelines.connectors.declarations import mirrors
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.host.checkpoints.checkpoint_sync import COPY_S, CheckpointSync
from airflow_pipelines.host.checkpoints.durability import Durability, SavedState
from airflow_pipelines.host.connectors.declared_connectors import ConnectorServices
from airflow_pipelines.host.connectors.endpoints import Endpoints
from airflow_pipelines.host.metrics.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.outputs.change_log import Place, Run
from airflow_pipelines.host.outputs.followed_note import FollowedNote
from airflow_pipelines.host.runs.earlier_state import EarlierState
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.runs.resumption import Resumption, await_listeners
from airflow_pipelines.host.state.clock import RunClock
from airflow_pipelines.host.state.front_ends import front_end_for
from airflow_pipelines.host.state.options import RuntimeOptions
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.host.streams.stream_processes import StreamProcesses
from airflow_pipelines.host.streams.stream_worker import arrow_schemas, started_worker
from airflow_pipelines.program.fingerprints import program_hash
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.sources import ProgramSource

OUTPUTS: Final = "outputs"
"""The folder in a pipeline's storage in which its outputs keep their positions."""


class Opening:
    """The opening of the parts of one incarnation, in order, and the closing of those that were opened.

    ``options`` are the defaults until the deployment's configuration was read; ``durability``, ``endpoints``, ``sync`` and ``live``
    are None until they exist. The pipeline's thread calls all methods; any thread may read the attributes.
    """

    def __init__(
        self, incarnation: Incarnation, metrics: PipelineMetrics, arrived: Callable[[int, int], None], attempt: int = 1
    ) -> None:
        """Remember the services; nothing is opened yet.

        :param incarnation: the incarnation
        :param metrics: the counters of the attempt
        :param arrived: called with records and bytes when a connector has read rows
        :param attempt: the number of the attempt to run the incarnation, from 1
        """
        self.options = RuntimeOptions()
        self.durability: Durability | None = None
        self.endpoints: Endpoints | None = None
        self.sync: CheckpointSync | None = None
        self.live: LivePipeline | None = None
        self._incarnation = incarnation
        self._deployment = incarnation.deployment
        self._sessions = incarnation.sessions
        self._state = incarnation.state
        self._metrics = metrics
        self._log = incarnation.log
        self._arrived = arrived
        self._attempt = attempt
        self._stream_processes: dict[str, StreamProcesses] = {}

    def open(self) -> LivePipeline:
        """Open the pipeline in the state after the last committed step that is saved.

        :returns: the pipeline, whose connectors wait to be activated
        :raises SuspendedEarly: if it was suspended instead of approved
        :raises TakenDown: if it is to end at once
        :raises Exception: if the pipeline cannot start
        """
        deployment = self._deployment
        self.options = self._read_options()
        self._log.redact = self.options.references.redact
        durability = self.durability = Durability(self._incarnation.storage, self.options)
        self._incarnation.fence.begin(durability.check)
        self.sync = CheckpointSync(
            self.options.sync, self.options.retention, durability, self._incarnation.owner, self._log, self._state.note_sync
        )
        program = front_end_for(deployment.source, self._sessions).compile(deployment.source)
        durability.journals_always = program.streams is not None or any(map(mirrors, program.connectors))
        if program.streams is not None:
            self.options = self.options.completed(program.streams.run)
        saved = EarlierState(self._incarnation, self.options, durability).find(self._attempt)
        live = self._assemble(program, durability)
        if saved is None:
            self._log.info("nothing saved: starting from scratch")
            live.endpoints.open_outputs(frozenset(), frozenset(), 0, self._metrics.initial_start_time)
            await_listeners(self._incarnation, live)
            live.start_empty()
        else:
            Resumption(self._incarnation, live, saved).run()
        followed = FollowedNote(self._outputs_folder)
        live.endpoints.outputs.change_logs.begin(self._run(live, saved), live.circuit.snapshot.step, followed)
        self._state.check()
        live.endpoints.start_outputs()
        live.endpoints.inputs.start()
        live.endpoints.outputs.let_listen()
        live.deliveries.is_serving = True
        return live

    def close_parts(self) -> None:
        """Close connectors, copies of checkpoints, the circuit and its processes."""
        if self.endpoints is not None:
            self.endpoints.close()
        if self.sync is not None and not self._state.taken_down:
            self.sync.wait(COPY_S)
        if self.live is not None:
            self.live.circuit.close()
        for processes in self._stream_processes.values():
            processes.close()

    def close_storage(self) -> None:
        """Release the storage folder, after everything else."""
        if self.durability is not None:
            self.durability.close()

    def _read_options(self) -> RuntimeOptions:
        config = self._deployment.config()
        try:
            return RuntimeOptions.of(config, self._incarnation.references)
        except ReferenceWithoutValueError as error:
            raise self._deployment.invalid_config(error) from error

    @property
    def _outputs_folder(self) -> Path | None:
        """The folder for the positions of outputs and followers, or None without storage."""
        return self._incarnation.storage / OUTPUTS if self.options.storage else None

    def _assemble(self, program: Program, durability: Durability) -> LivePipeline:
        deployment, options = self._deployment, self.options
        clock = RunClock(options.clock)
        services = ConnectorServices(
            pipeline=PipelineReference(str(deployment.pipeline_id), deployment.pipeline_name),
            references=options.references,
            now=clock.now,
            workers=options.workers,
            positions=self._outputs_folder,
            fence=durability.fence if options.storage else None,
            streams=self._processes_of(program, deployment.source),
            spark=self._sessions.large,
        )
        endpoints = self.endpoints = Endpoints(
            program, self._sessions.large, self._arrived, self._log, durability.batches, durability.fence.epoch, services
        )
        self._state.watch_errors(lambda: endpoints.num_errors)
        runtime = self._stream_runtime(program, deployment.source)
        circuit = Circuit(program, self._sessions, durability.batches, limits=options.limits, streams=runtime)
        circuit.has_consumers = endpoints.outputs.has_consumers
        fingerprints = program.fingerprints
        live = self.live = LivePipeline(
            program=program,
            identity=ProgramIdentity(deployment.source, fingerprints, program_hash(fingerprints), deployment.program_version),
            sessions=self._sessions,
            circuit=circuit,
            endpoints=endpoints,
            durability=durability,
            metrics=self._metrics,
            log=self._log,
            clock=clock,
            stream_runtime=self._stream_runtime,
        )
        return live

    def _stream_runtime(self, program: Program, source: ProgramSource) -> StreamRuntime | None:
        """Return the runtime for the stream program of a program, or None if it has none."""
        processes = self._processes_of(program, source)
        if processes is None:
            return None
        schemas = arrow_schemas(program)
        return StreamRuntime(lambda: started_worker(processes, schemas, self._attempt - 1))

    def _processes_of(self, program: Program, source: ProgramSource) -> StreamProcesses | None:
        """Return the processes for the stream program of a program, or None if it has none.

        The same source gets the same processes.
        """
        if program.streams is None:
            return None
        name = source.digest[:16]
        if name not in self._stream_processes:
            self._stream_processes[name] = StreamProcesses(
                program.streams,
                source.stream_files,
                name,
                self._incarnation.storage,
                self.options.variables,
                self.options.references,
                self._log,
            )
        return self._stream_processes[name]

    def _run(self, live: LivePipeline, saved: SavedState | None) -> Run:
        """Return the identity of this run, and the place from which it goes on."""
        durability = live.durability
        if not self.options.storage:
            return Run(uuid4().hex)
        # After the storage was cleared, epochs begin anew, but with another start time.
        history = f"{self._deployment.pipeline_id.hex}:{int(self._metrics.initial_start_time * 1000):x}"
        run = f"{history}:{durability.fence.epoch}"
        if saved is None or live.identity.fingerprints != saved.program.fingerprints:
            # After a program change, tables may be empty, and views evaluated anew.
            return Run(run)
        return Run(run, Place(f"{history}:{saved.reached_in}", saved.step))
