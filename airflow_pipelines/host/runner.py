"""One incarnation of a pipeline: a thread that brings it up, runs its steps and takes it down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.engine.changes import TableChanges
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.failures import failure_text
from airflow_pipelines.engine.spark.jobs import begin_jobs, cancel_jobs
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.fence import OvertakenError
from airflow_pipelines.host.bootstrap import BootstrapPlan, plan_bootstrap
from airflow_pipelines.host.checkpointing import COPY_S, CheckpointRequests, CheckpointSync
from airflow_pipelines.host.clock import Clock, described
from airflow_pipelines.host.durability import Durability, SavedState
from airflow_pipelines.host.endpoints import Endpoints
from airflow_pipelines.host.failures import as_problem
from airflow_pipelines.host.fence_watch import FenceWatch
from airflow_pipelines.host.front_ends import front_end_for
from airflow_pipelines.host.inputs import InputEndpoint
from airflow_pipelines.host.intake import Intake, Push
from airflow_pipelines.host.listeners import Listener
from airflow_pipelines.host.live import LivePipeline, Taken
from airflow_pipelines.host.options import FaultTolerance, RuntimeOptions
from airflow_pipelines.host.pipeline_log import PipelineLog
from airflow_pipelines.host.programs import ProgramChange, ProgramVersion, unexpected_program
from airflow_pipelines.host.queries import Queries
from airflow_pipelines.host.recorder import StatusRecorder
from airflow_pipelines.host.spark_health import spark_problem
from airflow_pipelines.host.statistics import PipelineFigures
from airflow_pipelines.host.storage_problems import STORAGE_CODES
from airflow_pipelines.host.tokens import CompletionToken
from airflow_pipelines.program.fingerprints import program_hash
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.references import References, ReferenceWithoutValueError

_WAITING = {
    RuntimeStatus.INITIALIZING: (ErrorCode.INITIALIZING, "is still initializing"),
    RuntimeStatus.AWAITING_APPROVAL: (ErrorCode.AWAITING_APPROVAL, "awaits the approval of its program changes"),
    RuntimeStatus.REPLAYING: (ErrorCode.RESTORE_IN_PROGRESS, "is replaying its journal"),
    RuntimeStatus.BOOTSTRAPPING: (ErrorCode.BOOTSTRAP_IN_PROGRESS, "is bootstrapping its changed views"),
    RuntimeStatus.SUSPENDED: (ErrorCode.SUSPENDED, "is suspended"),
}


TELL_END_S = 90.0
"""How long the store is told how an incarnation ended. Its host does not live longer without a store."""


class TakenDown(Exception):
    """The incarnation was told to end at once."""


class SuspendedEarly(Exception):
    """The incarnation was told to suspend before it served; what is saved stays as it is."""


class PipelineRunner:
    """Runs one deployment. The public methods may be called from any thread; everything that changes state happens in its own."""

    def __init__(
        self,
        deployment: Deployment,
        sessions: SparkSessions,
        registry: Registry,
        queries: Queries,
        references: References,
    ) -> None:
        self.deployment = deployment
        self._references = references
        self.queries = queries
        self.log = PipelineLog(deployment.log_path, deployment.pipeline_name)
        self.figures = PipelineFigures(deployment.deployment_id, Path(deployment.storage))
        self.requests = CheckpointRequests(deployment.deployment_id)
        self._sessions = sessions
        # One condition for everything the runner's thread waits for.
        self._condition = threading.Condition()
        self._intake = Intake(self._condition, self._received)
        self._recorder = StatusRecorder(deployment.deployment_id, registry, self._condition, self.log)
        self._desired = RuntimeStatus.PAUSED if deployment.initial == "paused" else RuntimeStatus.RUNNING
        self._silent = deployment.silent_bootstrap
        # What was desired before a graceful stop, and why such a stop did not come off.
        self._before_stop = self._desired
        self._stop_error: dict[str, Any] | None = None
        # The checkpoint that waits for durable rows have asked for.
        self._durable_request: int | None = None
        self._approved = False
        self._waiting: ProgramChange | None = None
        self._stopping = False
        self._ended = False
        self._live: LivePipeline | None = None
        self._endpoints: Endpoints | None = None
        self._durability: Durability | None = None
        self._fence = FenceWatch(self.log)
        self._sync: CheckpointSync | None = None
        self._options = RuntimeOptions()
        self._failed: Exception | None = None
        self._listed: list[dict[str, Any]] | None = None
        self._last_checkpoint = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"pipeline {deployment.pipeline_name}", daemon=True)

    # --- control -------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring the pipeline up; returns at once."""
        self._thread.start()

    def take_down(self, timeout_s: float = 20.0) -> bool:
        """End the incarnation without a checkpoint. Returns whether it has ended within ``timeout_s`` seconds."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        self.queries.close(self._terminating())
        deadline = time.monotonic() + timeout_s
        while self._thread.is_alive() and time.monotonic() < deadline:
            if self._endpoints is not None:
                # A listener that does not read must not hold the pipeline up.
                self._endpoints.listeners.close()
            self._cancel_step()
            self._thread.join(0.5)
        return not self._thread.is_alive()

    def _cancel_step(self) -> None:
        """Cancel the Spark jobs of the step in progress, and those that it would start next."""
        cancel_jobs(self._sessions.small.sparkContext, self._job_group)

    def pause(self) -> None:
        """Stop taking inputs after the step in progress."""
        self._want(RuntimeStatus.PAUSED)

    def resume(self) -> None:
        """Take inputs again."""
        self._want(RuntimeStatus.RUNNING)

    def suspend(self) -> None:
        """End the incarnation with a checkpoint."""
        self._want(RuntimeStatus.SUSPENDED)

    def approve(self, *, silent: bool, expected: ProgramChange | None = None, timeout_s: float = 60.0) -> None:
        """Let a pipeline that awaits approval go on; returns when it has left that state. Else does nothing.

        :param silent: whether outputs get nothing of the bootstrap
        :param expected: the programs that the approval is for, None for whatever waits
        :param timeout_s: seconds to wait at most
        :raises Problem: 412 when the programs are other ones; nothing is approved then
        """
        with self._condition:
            if expected is not None:
                self._expect(expected)
            if self.status is not RuntimeStatus.AWAITING_APPROVAL:
                return
            self._silent = silent
            self._approved = True
            self._condition.notify_all()
            self._condition.wait_for(lambda: self.status is not RuntimeStatus.AWAITING_APPROVAL, timeout_s)

    def _expect(self, expected: ProgramChange) -> None:
        if not self._program.is_expected(expected.new):
            raise unexpected_program("The program", self._program, expected.new)
        if self._waiting is not None and not self._waiting.saved.is_expected(expected.saved):
            raise unexpected_program("The program of the saved state", self._waiting.saved, expected.saved)

    @property
    def _program(self) -> ProgramVersion:
        deployment = self.deployment
        return ProgramVersion.of(deployment.source, deployment.program_version)

    @property
    def status(self) -> RuntimeStatus | None:
        """The status recorded last."""
        return self._recorder.status

    @property
    def ended(self) -> bool:
        """Whether the incarnation is over and has let go of everything."""
        return self._ended

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the end of the incarnation."""
        self._thread.join(timeout_s)

    # --- what requests use ---------------------------------------------------------------------------------------------------

    def serving(self) -> LivePipeline:
        """The running pipeline. Raises Problem when it is in another phase."""
        status = self.status
        ended = self._ended and status is not RuntimeStatus.SUSPENDED
        if ended or self._stopping or status is RuntimeStatus.STOPPED:
            raise self._terminating()
        if status in (RuntimeStatus.RUNNING, RuntimeStatus.PAUSED) and self._live is not None:
            return self._live
        code, text = _WAITING.get(status or RuntimeStatus.INITIALIZING, _WAITING[RuntimeStatus.INITIALIZING])
        raise Problem(code, f"The pipeline {self.deployment.pipeline_name} {text}; try again when it is running.")

    def push(
        self, changes: list[TableChanges], records: int, size_bytes: int, *, force: bool, endpoint: InputEndpoint | None = None
    ) -> Push:
        """Hand rows to the next step. While the pipeline is paused they wait, unless ``force``."""
        self.serving()
        push = Push(endpoint, changes, records, size_bytes)
        self._intake.push(push, force=force)
        return push

    def token(self, endpoint: InputEndpoint) -> str:
        """A completion token for everything that ``endpoint`` has received so far."""
        return CompletionToken(self.deployment.deployment_id, endpoint.name, endpoint.figures.total_records).encode()

    def completion(self, text: str, *, checkpoint: bool = False) -> dict[str, Any]:
        """The answer of ``GET completion_status``.

        :param text: the token
        :param checkpoint: whether it is complete only when no kill can lose what it stands for; takes a checkpoint where needed
        :returns: status, step, and whether what it stands for is durable
        :raises Problem: 400 or 410 for the token, 400 without storage, 500 when the checkpoint failed
        """
        token = CompletionToken.decode(text)
        if token.incarnation != self.deployment.deployment_id:
            raise Problem(ErrorCode.PIPELINE_RESTARTED, "The token was made by an earlier run of the pipeline; make a new one.")
        live = self.serving()
        endpoint = live.endpoints.inputs.get(token.endpoint)
        if endpoint is None:
            raise Problem(ErrorCode.UNKNOWN_ENDPOINT_IN_COMPLETION_TOKEN, f"There is no connector {token.endpoint} (any more).")
        done = endpoint.figures.completed_records >= token.records
        durable = done and endpoint.figures.durable_records >= token.records
        if done and checkpoint and not durable:
            self._make_durable()
            done = False
        step = live.circuit.snapshot.step if done else None
        return {"status": "complete" if done else "inprogress", "step": step, "durable": durable}

    def _make_durable(self) -> None:
        """Ask for a checkpoint, unless one that was asked for is on its way. Raises Problem when that one failed."""
        with self._condition:
            asked = self._durable_request
            if asked is not None and self.requests.is_pending(asked):
                return
            error = None if asked is None else self.requests.error_of(asked)
            self._durable_request = self.request_checkpoint() if error is None else None
        if error is not None:
            raise Problem(
                ErrorCode.CHECKPOINT_FAILED,
                "The rows are processed, but the checkpoint that was to make them durable could not be written: "
                f"{error} Put that right and wait again; the rows are lost only if the pipeline is killed before.",
            )

    def request_checkpoint(self) -> int:
        """Ask for a checkpoint between two steps; return the request's number. Raises Problem when storage is off."""
        live = self.serving()
        self._require_storage()
        number = self.requests.request()
        self._intake.submit(lambda: self._requested_checkpoint(live, number))
        return number

    def checkpoints(self) -> list[dict[str, Any]]:
        """The listed checkpoints, newest first."""
        return [] if self._durability is None else [info.to_wire() for info in self._durability.checkpoints.listed()]

    def sync(self) -> CheckpointSync:
        """The copies of checkpoints. Raises Problem when the pipeline is not there yet."""
        self.serving()
        if self._sync is None:
            raise self._terminating()
        return self._sync

    def advance_clock(self, delta_ms: int | None) -> dict[str, Any]:
        """Move a clock that is driven by requests; answers when a step has the new time. Raises Problem 400 or 503."""
        live = self._driven()
        if delta_ms is not None and delta_ms < 0:
            raise Problem(ErrorCode.INVALID_PARAM, f"The clock cannot go back: delta_ms is {delta_ms}.")
        return self._set_clock(live, lambda: live.clock.advanced(None if delta_ms is None else delta_ms * 1000))

    def set_clock(self, at_us: int) -> dict[str, Any]:
        """Move a clock that is driven by requests to a time, unless it is further already. Raises Problem 400 or 503."""
        live = self._driven()
        return self._set_clock(live, lambda: live.clock.moved_to(at_us))

    def _driven(self) -> LivePipeline:
        live = self.serving()
        if not live.clock.options.http_driven:
            raise Problem(
                ErrorCode.INVALID_PARAM,
                f"The clock of the pipeline {self.deployment.pipeline_name} goes by itself; requests move it only with "
                "dev_tweaks.now_http_driven in the runtime configuration.",
            )
        return live

    def _set_clock(self, live: LivePipeline, move: Callable[[], int]) -> dict[str, Any]:
        reached: list[int] = []

        def task() -> None:
            self.serving()
            reached.append(move())
            try:
                live.move_clock(reached[0])
            except Exception as failure:
                # A step that fails ends the incarnation, whoever asked for it.
                self._failed = failure
                raise as_problem(failure) from failure

        self._intake.submit(task).result()
        return described(reached[0])

    def listen(self, listener: Listener, *, send_snapshot: bool) -> None:
        """Attach a listener between two steps, with the relation's contents first when asked for."""
        live = self.serving()
        if not send_snapshot:
            # Deltas of the steps from now on need no consistent cut.
            live.endpoints.listeners.add(listener)
            return

        def attach() -> None:
            self.serving()
            live.endpoints.tell(live.relation_contents(listener.view), [listener], snapshot=True)
            live.endpoints.listeners.add(listener)

        self._intake.submit(attach).result()

    def recent_steps(self) -> list[dict[str, Any]]:
        """Figures of the newest steps, oldest first."""
        return [figures.to_wire() for figures in list(self.serving().recent)]

    def stats(self, *, errors: bool = False) -> dict[str, Any]:
        """The answer of ``GET stats``."""
        endpoints = self.serving().endpoints
        counters = self.figures.counters()
        complete = endpoints.all_ended and counters.completed_records == counters.input_records
        state = "Running" if self.status is RuntimeStatus.RUNNING else "Paused"
        suspend_error = None if self._options.storage else {"Permanent": ["StorageRequired"]}
        return {
            "global_metrics": self.figures.to_wire(state=state, bootstrapping=False, pipeline_complete=complete),
            "inputs": [endpoint.to_wire(errors=errors) for endpoint in list(endpoints.inputs.values())],
            "outputs": [endpoint.to_wire(errors=errors) for endpoint in list(endpoints.outputs.values())],
            "suspend_error": suspend_error,
            "checkpoint_activity": self.requests.activity(),
            "permanent_checkpoint_errors": None if suspend_error is None else suspend_error["Permanent"],
        }

    # --- the thread ----------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        final: RuntimeStatus | None = None
        problem: Problem | None = None
        try:
            # So that a step in progress can be cancelled when the pipeline is taken down.
            begin_jobs(self._sessions.small.sparkContext, self._job_group, f"pipeline {self.deployment.pipeline_name}")
            self.log.info("starting incarnation %s", self.deployment.deployment_id)
            self._record(RuntimeStatus.INITIALIZING)
            self._serve(self._open())
            final = RuntimeStatus.SUSPENDED
        except SuspendedEarly:
            final = RuntimeStatus.SUSPENDED
        except TakenDown:
            self.log.info("stopped without a checkpoint")
        except Exception as failure:  # noqa: BLE001  whatever ends an incarnation becomes its deployment error
            if (lost := spark_problem(self._sessions.small)) is not None:
                # Not this incarnation failed: its host ends, which the service notices and says.
                self.log.failure("the host cannot go on: %s", lost)
            elif not self._stopping:
                problem = as_problem(failure, self.deployment.pipeline_name)
                final = RuntimeStatus.STOPPED
                unexpected = problem is not failure and problem.code is ErrorCode.WORKER_PANIC
                # What a step fails on is in the message; its stack would only push that out of a log's last lines.
                known = isinstance(failure, StepError) or not unexpected
                if isinstance(failure, StepError) and failure.trace is not None:
                    self.log.failure("what %s failed with:\n%s", failure.view, failure.trace)
                self.log.failure("%s: %s", problem.code, problem.message, cause=None if known else failure)
                if isinstance(failure, StepError):
                    self._keep_last_step()
        try:
            self._close(problem)
            if final is not None:
                self._record(final, error=None if problem is None else problem.body(), checkpoints=self._listed)
        finally:
            # Who takes it down does not ask how it ended.
            self._recorder.close(0.0 if self._stopping else TELL_END_S)
            self.log.close()
            with self._condition:
                self._ended = True
                self._condition.notify_all()

    def _open(self) -> LivePipeline:
        deployment = self.deployment
        self._options = _options_of(deployment, self._references)
        self.log.redact = self._options.references.redact
        durability = self._durability = Durability(Path(deployment.storage), self._options)
        self._fence.begin(durability.check)
        self._sync = CheckpointSync(self._options.sync, durability, f"pipeline-{deployment.pipeline_id}", self.log)
        program = front_end_for(deployment.source, self._sessions).compile(deployment.source)
        saved = self._saved_state(durability)
        live = self._build(program, durability)
        if saved is None:
            self.log.info("nothing saved: starting from scratch")
            live.endpoints.open_outputs(frozenset(), 0)
            live.start_empty()
        else:
            self._resume(live, saved, self._plan_bootstrap(saved, live))
        self._check()
        live.endpoints.start_inputs()
        return live

    def _saved_state(self, durability: Durability) -> SavedState | None:
        chosen = self.deployment.from_checkpoint
        if chosen is None:
            return durability.saved_state(self.deployment.newest_checkpoint)
        self._require_storage()
        saved, aside = durability.go_back(chosen)
        self.log.info(
            "going back to checkpoint %s as asked; what was newer is in %s", chosen, aside or "nothing: it was the newest"
        )
        self._listed = self.checkpoints()
        self._record(RuntimeStatus.INITIALIZING, checkpoints=self._listed)
        return saved

    def _plan_bootstrap(self, saved: SavedState, live: LivePipeline) -> BootstrapPlan:
        return plan_bootstrap(saved, live.circuit, live.program, front_end_for(saved.program.source, self._sessions))

    def _build(self, program: Program, durability: Durability) -> LivePipeline:
        storage = Path(self.deployment.storage) if self._options.storage else None
        self._endpoints = Endpoints(
            program, self._sessions.large, self._arrived, self.log, self._options.references, storage, durability.fence
        )
        circuit = Circuit(program, self._sessions, durability.batches, limits=self._options.limits)
        circuit.has_consumers = self._endpoints.has_consumers
        fingerprints = program.fingerprints
        self._live = LivePipeline(
            program=program,
            identity=ProgramIdentity(
                self.deployment.source,
                fingerprints,
                program_hash(fingerprints),
                self.deployment.program_version,
            ),
            sessions=self._sessions,
            circuit=circuit,
            endpoints=self._endpoints,
            durability=durability,
            figures=self.figures,
            log=self.log,
            clock=Clock(self._options.clock),
        )
        return self._live

    def _resume(self, live: LivePipeline, saved: SavedState, plan: BootstrapPlan) -> None:
        base = "the recovery point" if saved.base is None or not saved.base.listed else f"checkpoint {saved.base.uuid}"
        self.log.info("going on from %s: step %d, %d processed records", base, saved.step, saved.counters.processed_records)
        for view, reason in plan.outdated.items():
            self.log.info("view %s is evaluated anew from the tables, which changes nothing for its readers: %s", view, reason)
        if not plan.diff.is_empty:
            self.log.info("the program has changed: %s", plan.diff.describe())
            self._decide(plan, saved.program)
        self.figures.restore(saved.counters, saved.initial_start_time)
        live.endpoints.restore(saved.connectors, plan.kept_connectors)
        live.endpoints.open_outputs(plan.kept_connectors & saved.connectors.keys(), saved.base_step)
        if saved.records and self._options.fault_tolerance is FaultTolerance.EXACTLY_ONCE:
            self._record(RuntimeStatus.REPLAYING)
        live.restore(saved, plan)
        self._check()
        if not plan.diff.is_empty:
            self._record(RuntimeStatus.BOOTSTRAPPING)
            live.bootstrap(plan, silent=self._silent)
        if live.durability.journals and (saved.records or not plan.diff.is_empty):
            live.save_recovery_point()

    def _decide(self, plan: BootstrapPlan, saved: ProgramIdentity) -> None:
        policy = self.deployment.bootstrap_policy
        if policy == "reject":
            raise Problem(
                ErrorCode.BOOTSTRAP_REJECTED,
                f"The program differs from the one of the checkpoint, and the bootstrap policy is 'reject': {plan.diff.describe()}"
                ". Undo the changes, or start with another policy.",
                plan.diff.to_wire(),
            )
        if policy != "await_approval":
            return
        self._waiting = ProgramChange(saved=ProgramVersion.of(saved.source, saved.version), new=self._program)
        self._record(
            RuntimeStatus.AWAITING_APPROVAL,
            details={
                "approval_diff": plan.diff.to_wire(),
                "programs": self._waiting.to_wire(),
                "views_evaluated_anew": dict(plan.outdated),
                **self._details(),
            },
        )
        while not self._decided():
            self._fence.look()
        self._check()
        if not self._approved:
            self.log.info("suspended before the changes were approved")
            raise SuspendedEarly
        self.log.info("the changes were approved")

    def _decided(self) -> bool:
        """Whether it is known how to go on; waits for that until it is time to look at the fence."""
        with self._condition:
            return self._condition.wait_for(
                lambda: self._approved or self._stopping or self._desired is RuntimeStatus.SUSPENDED, self._fence.until_due
            )

    def _serve(self, live: LivePipeline) -> None:
        """Run until told to suspend. Raises TakenDown when told to end at once."""
        self._last_checkpoint = time.monotonic()
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._has_work(live), self._until_next(live))
                desired = self._desired
            self._check()
            if desired is RuntimeStatus.SUSPENDED:
                if self._suspended(live):
                    return
                continue
            if desired is not self.status:
                self._switch(live, desired)
            for task in self._intake.take_tasks():
                task()
            if self._failed is not None:
                raise self._failed
            running = self.status is RuntimeStatus.RUNNING
            taken = Taken(self._intake.take(), live.endpoints.take() if running else {})
            clock = live.tick() if running else None
            idle = not taken.pushes and not taken.chunks
            if not idle or clock is not None:
                live.step(taken, clock)
            if idle:
                # Nothing else to do: a good moment to merge traces, as long as they need it.
                live.circuit.maintain()
            if not idle or clock is not None:
                live.endpoints.release_labels()
                if live.durability.needs_recovery_point and not self._options.checkpoint_interval_s:
                    live.save_recovery_point()
            self._periodic(live)

    def _has_work(self, live: LivePipeline) -> bool:
        if self._stopping or self._desired is not self.status or self._intake.has_work:
            return True
        return self.status is RuntimeStatus.RUNNING and live.endpoints.have_work

    def _switch(self, live: LivePipeline, desired: RuntimeStatus) -> None:
        running = desired is RuntimeStatus.RUNNING
        live.endpoints.release_labels()
        live.endpoints.set_active(running)
        self._record(desired, details=self._details())
        self._intake.set_open(running)

    def _suspended(self, live: LivePipeline) -> bool:
        """Take the last checkpoint. Returns False, with everything as it was, when it cannot be written."""
        live.endpoints.set_active(False)
        self._require_storage()
        if not self._options.checkpoint_during_suspend:
            return True
        try:
            self._checkpoint(live)
        except OvertakenError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, ending now would throw away acknowledged rows
            self._check()
            self._stay_up(live, error)
            return False
        return True

    def _stay_up(self, live: LivePipeline, failure: Exception) -> None:
        cause = as_problem(failure, self.deployment.pipeline_name)
        problem = Problem(
            ErrorCode.SUSPEND_ERROR,
            f"The pipeline {self.deployment.pipeline_name} was not stopped, because its last checkpoint could not be written, and "
            f"stays up with all its rows: {cause.message} Put that right and stop it again. Stopping it with force=true loses what "
            "came after the newest checkpoint.",
            {"cause": cause.body()},
        )
        self.log.failure("%s: %s", problem.code, problem.message, cause=None if cause.code in STORAGE_CODES else failure)
        self._stop_error = problem.body()
        with self._condition:
            self._desired = self._before_stop
        live.endpoints.set_active(self.status is RuntimeStatus.RUNNING)
        if self.status is not None:
            self._record(self.status, details=self._details(), error=self._stop_error)

    def _requested_checkpoint(self, live: LivePipeline, number: int) -> None:
        self.requests.started()
        try:
            self._checkpoint(live)
        except Exception as error:  # noqa: BLE001  a checkpoint that fails is reported; the pipeline lives on
            self.log.failure("checkpoint %d failed: %s", number, failure_text(error), cause=error)
            self.requests.failed(number, failure_text(error))
            if isinstance(error, OvertakenError):
                self._failed = error
            return
        self.requests.succeeded(number)

    def _checkpoint(self, live: LivePipeline) -> None:
        live.save_checkpoint()
        self._last_checkpoint = time.monotonic()
        if self._sync is not None and not self._sync.busy:
            live.durability.collect_garbage()
        self._listed = self.checkpoints()
        self._stop_error = None
        if self.status is not None and self._desired is not RuntimeStatus.SUSPENDED:
            self._record(self.status, details=self._details(), checkpoints=self._listed)

    def _until_next(self, live: LivePipeline) -> float | None:
        """Seconds until there is something to do even if nothing comes in: a tick of the clock, a checkpoint, a look around."""
        tick = live.until_tick() if self.status is RuntimeStatus.RUNNING else None
        checkpoint = self._until_next_checkpoint()
        return min((wait for wait in (tick, checkpoint, self._fence.until_due) if wait is not None), default=None)

    def _until_next_checkpoint(self) -> float | None:
        waits = []
        if self._options.checkpoint_interval_s is not None and self._options.storage:
            waits.append(self._last_checkpoint + self._options.checkpoint_interval_s - time.monotonic())
        if self._options.sync is not None and self._options.sync.push_interval_s is not None:
            waits.append(self._options.sync.push_interval_s)
        return max(min(waits), 0.05) if waits else None

    def _periodic(self, live: LivePipeline) -> None:
        self._fence.look()
        interval = self._options.checkpoint_interval_s
        if interval is not None and self._options.storage and time.monotonic() - self._last_checkpoint >= interval:
            newest = live.durability.checkpoints.latest_listed()
            if newest is None or newest.steps != live.circuit.snapshot.step:
                self._requested_checkpoint(live, self.requests.request())
            self._last_checkpoint = time.monotonic()
        if self._sync is not None:
            self._sync.push_if_due()

    def _keep_last_step(self) -> None:
        """Save the steps before a failed one, so that a corrected program or row goes on from there, not from a checkpoint."""
        live = self._live
        if live is None or self.status not in (RuntimeStatus.RUNNING, RuntimeStatus.PAUSED):
            return
        if not self._options.storage or live.durability.journals:
            return
        try:
            live.save_recovery_point()
        except Exception as error:  # noqa: BLE001  the failed step is what ends the incarnation; this must not hide it
            self.log.failure("the steps since the last checkpoint could not be saved: %s", error, cause=error)

    def _close(self, problem: Problem | None) -> None:
        """Let go of everything: connectors, waiting requests, the storage folder."""
        self._intake.close(problem or self._terminating())
        self.queries.close(problem or self._terminating())
        if self._endpoints is not None:
            self._endpoints.close()
        if self._sync is not None and not self._stopping:
            self._sync.wait(COPY_S)
        if self._live is not None:
            self._live.circuit.close()
        if self._durability is not None:
            self._durability.close()

    # --- helpers -------------------------------------------------------------------------------------------------------------

    def _want(self, desired: RuntimeStatus) -> None:
        with self._condition:
            if self._desired is not RuntimeStatus.SUSPENDED:
                self._before_stop = self._desired
                self._desired = desired
            self._condition.notify_all()

    def _check(self) -> None:
        if self._stopping:
            raise TakenDown

    def wake(self) -> None:
        """Look at the inputs again: a connector was started or paused."""
        self._arrived(0, 0)

    def _received(self, records: int, size_bytes: int) -> None:
        self.figures.add(input_records=records, input_bytes=size_bytes)

    def _arrived(self, records: int, size_bytes: int) -> None:
        self._received(records, size_bytes)
        with self._condition:
            self._condition.notify_all()

    def _details(self) -> dict[str, Any]:
        """What a transition tells besides the status: errors of connectors, and why a stop did not come off."""
        stats = {"connector_stats": {"num_errors": 0 if self._endpoints is None else self._endpoints.num_errors}}
        return stats if self._stop_error is None else {**stats, "stop_error": self._stop_error}

    def _record(
        self,
        status: RuntimeStatus,
        *,
        details: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
        checkpoints: list[dict[str, Any]] | None = None,
    ) -> None:
        self._recorder.record(status, self._desired, details=details, error=error, checkpoints=checkpoints)

    def _require_storage(self) -> None:
        if not self._options.storage:
            raise Problem(
                ErrorCode.STORAGE_REQUIRED,
                "Checkpoints and a graceful stop need storage, which is switched off for this pipeline ('storage': false). "
                "Stop it with force, or switch storage on.",
            )

    @property
    def _job_group(self) -> str:
        return str(self.deployment.deployment_id)

    def _terminating(self) -> Problem:
        return Problem(ErrorCode.TERMINATING, f"The pipeline {self.deployment.pipeline_name} is being stopped.")


def _options_of(deployment: Deployment, references: References) -> RuntimeOptions:
    config = deployment.config()
    try:
        return RuntimeOptions.of(config, references)
    except ReferenceWithoutValueError as error:
        raise deployment.invalid_config(error) from error
