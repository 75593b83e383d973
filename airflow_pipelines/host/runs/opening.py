"""Opening and recovery: from a deployment and the state of an earlier incarnation to a pipeline that can run steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from airflow_pipelines.common.references import References, ReferenceWithoutValueError
from airflow_pipelines.connectors.declarations import mirrors
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import CrashGuarantee, RuntimeStatus
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.checkpoint_sources import CheckpointSources
from airflow_pipelines.engine.storage.sync import Owner
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.host.changes.approval import Approval
from airflow_pipelines.host.changes.bootstrap import BootstrapMode, BootstrapPlan, SavedProgram, plan_bootstrap
from airflow_pipelines.host.changes.change_planning import NewProgram, PlannedChange, planned_change
from airflow_pipelines.host.checkpoints.checkpoint_sync import COPY_S, CheckpointSync
from airflow_pipelines.host.checkpoints.durability import Durability, SavedState
from airflow_pipelines.host.checkpoints.standby import Standby, was_activated
from airflow_pipelines.host.connectors.declared_connectors import ConnectorServices
from airflow_pipelines.host.connectors.endpoints import Endpoints
from airflow_pipelines.host.metrics.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.outputs.change_log import Place, Run
from airflow_pipelines.host.outputs.followed_note import FollowedNote
from airflow_pipelines.host.state.clock import RunClock
from airflow_pipelines.host.state.fence_watch import FenceWatch
from airflow_pipelines.host.state.front_ends import front_end_for
from airflow_pipelines.host.state.options import RuntimeOptions
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.run_state import RunState
from airflow_pipelines.host.steps.checkpointing import save_recovery_point
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.host.steps.recovery import Recovery
from airflow_pipelines.host.streams.kept_operators import saved_operators
from airflow_pipelines.host.streams.stream_changes import SavedOperator
from airflow_pipelines.host.streams.stream_processes import StreamProcesses
from airflow_pipelines.host.streams.stream_worker import arrow_schemas, started_worker
from airflow_pipelines.program.diff import ProgramDiff
from airflow_pipelines.program.fingerprints import program_hash
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.sources import ProgramSource

OUTPUTS: Final = "outputs"
"""The folder in a pipeline's storage in which its outputs keep their positions."""
STANDBY: Final = "standby"
"""The initial status of a pipeline that is to stand by first."""


class Opening:
    """The opening of the parts of one incarnation, in order, and the closing of those that were opened.

    ``options`` are the defaults until the deployment's configuration was read; ``durability``, ``endpoints``, ``sync`` and ``live``
    are None until they exist. The pipeline's thread calls all methods; any thread may read the attributes.
    """

    def __init__(
        self,
        deployment: Deployment,
        sessions: SparkSessions,
        references: References,
        state: RunState,
        approval: Approval,
        fence: FenceWatch,
        metrics: PipelineMetrics,
        log: PipelineLog,
        arrived: Callable[[int, int], None],
        attempt: int = 1,
    ) -> None:
        """Remember the services; nothing is opened yet.

        :param arrived: called with records and bytes when a connector has read rows
        :param attempt: the number of the attempt to run the incarnation, from 1
        """
        self.options = RuntimeOptions()
        self.durability: Durability | None = None
        self.endpoints: Endpoints | None = None
        self.sync: CheckpointSync | None = None
        self.live: LivePipeline | None = None
        self._deployment = deployment
        self._sessions = sessions
        self._references = references
        self._state = state
        self._approval = approval
        self._fence = fence
        self._metrics = metrics
        self._log = log
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
        durability = self.durability = Durability(Path(deployment.storage), self.options)
        self._fence.begin(durability.check)
        self.sync = CheckpointSync(
            self.options.sync, self.options.retention, durability, self._owner, self._log, self._state.note_sync
        )
        program = front_end_for(deployment.source, self._sessions).compile(deployment.source)
        durability.journals_always = program.streams is not None or any(map(mirrors, program.connectors))
        if program.streams is not None:
            self.options = self.options.completed(program.streams.run)
        saved = self._saved_state(durability)
        live = self._assemble(program, durability)
        if saved is None:
            self._log.info("nothing saved: starting from scratch")
            live.endpoints.open_outputs(frozenset(), frozenset(), 0, self._metrics.initial_start_time)
            self._await_listeners(live)
            live.start_empty()
        else:
            self._resume(live, saved)
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

    def require_storage(self) -> None:
        """Refuse operations that need storage if there is none.

        :raises Problem: if storage is switched off
        """
        if not self.options.storage:
            raise Problem(
                ErrorCode.STORAGE_REQUIRED,
                "Checkpoints and a graceful stop need storage, which is switched off for this pipeline ('storage': false). "
                "Stop it with force, or switch storage on.",
            )

    def _read_options(self) -> RuntimeOptions:
        config = self._deployment.config()
        try:
            return RuntimeOptions.of(config, self._references)
        except ReferenceWithoutValueError as error:
            raise self._deployment.invalid_config(error) from error

    def _saved_state(self, durability: Durability) -> SavedState | None:
        if self._attempt > 1:
            return self._state_of_last_attempt(durability)
        if self._deployment.initial == STANDBY:
            return self._state_after_standby(durability)
        chosen = self._deployment.from_checkpoint
        if chosen is None:
            return durability.saved_state(self._deployment.newest_checkpoint, self._sources(durability))
        self.require_storage()
        saved, aside = durability.go_back(chosen)
        self._log.info(
            "going back to checkpoint %s as asked; what was newer is in %s", chosen, aside or "nothing: it was the newest"
        )
        self._state.record(RuntimeStatus.INITIALIZING, checkpoints=durability.list_checkpoints())
        return saved

    def _state_of_last_attempt(self, durability: Durability) -> SavedState | None:
        """Return the state that the previous attempt has left, regardless of the deployment's choice of a state to begin with."""
        expected = self._deployment.newest_checkpoint if self.options.sync is None else None
        return durability.saved_state(self._deployment.from_checkpoint or expected)

    def _state_after_standby(self, durability: Durability) -> SavedState | None:
        self.require_storage()
        sources = self._sources(durability)
        if sources is None or self.options.sync is None:
            raise Problem(
                ErrorCode.INITIAL_STANDBY_NOT_ALLOWED,
                "A pipeline stands by for checkpoints in an object store, and none is configured: set "
                "storage.backend.config.sync in the runtime configuration.",
            )
        expected = self._deployment.newest_checkpoint
        if was_activated(durability.folder):
            self._log.info("this pipeline was activated here before: it goes on from its own storage")
            self._state.skip_standby()
            return durability.saved_state(expected, sources)
        interval_s = self.options.sync.pull_interval_s
        standby = Standby(sources, interval_s, durability, self._state, self._fence, self._log)
        standby.wait()
        return standby.activate(expected)

    def _sources(self, durability: Durability) -> CheckpointSources | None:
        if self.options.sync is None or not self.options.storage:
            return None
        return CheckpointSources(
            self.options.sync, self._owner, durability.checkpoints, durability.batches, self._log.warning, self._state.check
        )

    @property
    def _owner(self) -> Owner:
        """The pipeline as an object store identifies it."""
        return Owner(f"pipeline-{self._deployment.pipeline_id}", self._deployment.pipeline_name)

    @property
    def _outputs_folder(self) -> Path | None:
        """The folder for the positions of outputs and followers, or None without storage."""
        return Path(self._deployment.storage) / OUTPUTS if self.options.storage else None

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
                Path(self._deployment.storage),
                self.options.variables,
                self.options.references,
                self._log,
            )
        return self._stream_processes[name]

    def _resume(self, live: LivePipeline, saved: SavedState) -> None:
        """Go on from saved state: decide about changes, restore, replay the journal, evaluate new and changed views."""
        front_end = front_end_for(saved.program.source, self._sessions)
        operators = partial(self._kept_operators, saved)
        before = SavedProgram(saved.program, saved.holdings, front_end, saved.layouts, operators=operators)
        plan = plan_bootstrap(before, live.program, live.circuit.wiring)
        # The approval may still choose another mode.
        plan.check(self._approval.mode if self._approval.is_given else BootstrapMode.PLAIN)
        base = "the recovery point" if saved.base is None or not saved.base.listed else f"checkpoint {saved.base.uuid}"
        self._log.info("going on from %s: step %d, %d processed records", base, saved.step, saved.counters.processed_records)
        planned: PlannedChange | None = None
        for view, reason in plan.outdated.items():
            self._log.info("view %s is evaluated anew from the tables, which changes nothing for its readers: %s", view, reason)
        if not plan.diff.is_empty:
            self._log.info("the program has changed: %s", plan.diff.describe())
            new = NewProgram(
                live.identity.source,
                live.identity.version,
                live.program,
                live.circuit.wiring,
                front_end_for(live.identity.source, self._sessions),
            )
            planned = planned_change(plan, before, new, live.evaluation_times.factors())
            self._approval.ask(planned)
        self._metrics.restore(saved.counters, saved.initial_start_time)
        live.endpoints.restore(saved.connectors, plan.kept_connectors, plan.kept)
        changes = plan.diff.program_diff or ProgramDiff()
        live.push_keys.restore(saved.push_keys, (*changes.fresh_tables, *changes.removed_tables))
        resumed = plan.kept_connectors & saved.connectors.keys()
        live.endpoints.open_outputs(resumed, plan.kept_connectors, saved.base_step, saved.initial_start_time)
        if saved.records and self.options.fault_tolerance is CrashGuarantee.EXACTLY_ONCE:
            self._state.record(RuntimeStatus.REPLAYING)
        recovery = Recovery(live)
        recovery.restore(saved, plan)
        self._state.check()
        if planned is not None:
            self._await_listeners(live)
            started = time.monotonic()
            self._bootstrap(recovery, plan)
            self._note_evaluation(live, planned, time.monotonic() - started)
        if live.durability.journals and (saved.records or not plan.diff.is_empty):
            save_recovery_point(live)

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

    def _kept_operators(self, saved: SavedState) -> tuple[SavedOperator, ...]:
        """Return the operators of a saved stream program.

        Without a checkpoint there is only a journal, and they have no saved state.
        """
        if saved.base is not None and self.durability is not None:
            return saved_operators(saved.base.contents.snapshot, self.durability.batches)
        program = front_end_for(saved.program.source, self._sessions).compile(saved.program.source)
        return () if program.streams is None else tuple(map(SavedOperator, program.streams.operators))

    def _await_listeners(self, live: LivePipeline) -> None:
        """Keep outgoing changes for those who listen before a pipeline that starts paused is resumed."""
        if self._state.desired is RuntimeStatus.PAUSED:
            live.endpoints.outputs.await_listeners()

    def _note_evaluation(self, live: LivePipeline, planned: PlannedChange, taken_s: float) -> None:
        """Record the time of this evaluation for later estimates."""
        if not planned.plan.evaluated:
            return
        expected = f"{planned.plan.seconds:g} to {planned.plan.seconds_at_most:g} s were expected"
        self._log.info("changed views were evaluated in %.1f s; %s", taken_s, expected)
        try:
            live.evaluation_times.add(planned.computed_s, taken_s)
        except OSError as error:
            self._log.warning("later estimates will not know what this evaluation has taken: %s", error)

    def _bootstrap(self, recovery: Recovery, plan: BootstrapPlan) -> None:
        """Evaluate new and changed views, and give outputs the contents that they are to get."""
        mode = self._approval.mode
        silent, concurrent = mode is BootstrapMode.SILENT, mode is BootstrapMode.CONCURRENT
        self._state.record(RuntimeStatus.CONCURRENT_BOOTSTRAPPING if concurrent else RuntimeStatus.BOOTSTRAPPING)
        recovery.bootstrap(plan, silent=silent)
        if concurrent:
            self._state.record(RuntimeStatus.SYNCHRONIZING)
        # Outputs that go on had the contents before, or got all steps from the journal.
        recovery.send_snapshots(plan.kept_connectors, frozenset() if silent else {*plan.evaluated, *plan.renamed})
