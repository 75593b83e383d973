"""The requests to a running pipeline: rows in, tokens, checkpoints, the clock, listeners, statistics.

Any thread may call all methods. Work that has to be done between two steps is handed to the pipeline's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.dataflow import dataflow
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.wiring import build_wiring
from airflow_pipelines.host.changes.bootstrap import SavedProgram, plan_bootstrap
from airflow_pipelines.host.changes.change_planning import NewProgram, PlannedChange, planned_change
from airflow_pipelines.host.checkpoints.checkpoint_sync import CheckpointSync
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.inputs.intake import Intake, Push
from airflow_pipelines.host.inputs.tokens import CompletionToken
from airflow_pipelines.host.metrics.activity import Activity
from airflow_pipelines.host.metrics.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.metrics.profile import circuit_profile
from airflow_pipelines.host.metrics.stream_statistics import statistics_to_wire
from airflow_pipelines.host.metrics.time_series import TimeSeries
from airflow_pipelines.host.outputs.listeners import Listener
from airflow_pipelines.host.runs.checkpointer import TRANSACTION_IN_PROGRESS, Checkpointer
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.runs.opening import Opening
from airflow_pipelines.host.runs.sampled_metrics import counters, figures
from airflow_pipelines.host.state.clock import describe_time
from airflow_pipelines.host.state.failures import as_problem
from airflow_pipelines.host.state.front_ends import front_end_for
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.host.steps.transactions import IncarnationTransactions
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.rows.changes import TableChanges


class PipelineRequests:
    """The interface of one incarnation to requests. Each method raises Problem if the pipeline is not (or no longer) serving.

    ``series`` has the samples of the last minute, ``activity`` those of the last minutes.
    """

    def __init__(
        self,
        incarnation: Incarnation,
        opening: Opening,
        intake: Intake,
        transactions: IncarnationTransactions,
        checkpointer: Checkpointer,
        metrics: PipelineMetrics,
    ) -> None:
        """Answer for one attempt to run the incarnation."""
        self._deployment = incarnation.deployment
        self._state = incarnation.state
        self._opening = opening
        self._intake = intake
        self._transactions = transactions
        self._checkpointer = checkpointer
        self._metrics = metrics
        self._failed_attempts = incarnation.failed
        self.series = TimeSeries()
        self.activity = Activity()

    def serving(self) -> LivePipeline:
        """Return the running pipeline.

        :raises Problem: if it is in another phase
        """
        self._state.check_serving()
        return self._live()

    def readable(self) -> LivePipeline:
        """Return the pipeline if it runs, or while its changed views are evaluated.

        :raises Problem: if it is in another phase
        """
        self._state.check_readable()
        return self._live()

    def _live(self) -> LivePipeline:
        if self._opening.live is None:
            raise self._state.terminating()
        return self._opening.live

    # Rows.

    def push(
        self,
        changes: list[TableChanges],
        records: int,
        size_bytes: int,
        *,
        force: bool,
        endpoint: InputEndpoint | None = None,
        key: str | None = None,
    ) -> Push:
        """Hand rows to the next step. While the pipeline is paused, they wait.

        :param changes: the rows
        :param records: the number of rows
        :param size_bytes: the size of the request in bytes
        :param force: True to take them also while the pipeline is paused
        :param endpoint: the input that counts them, or None for rows of ad-hoc statements
        :param key: the key that identifies them if they come again, or None for rows that are added each time
        :returns: the push to wait for; it records if the rows are there already
        :raises Problem: if a stream has ended that would read them
        """
        live = self.serving()
        push = Push(endpoint, changes, records, size_bytes, key)
        if key is not None:
            live.push_keys.claim(key, push)
            if push.repeats:
                if force:
                    self._intake.force(key)
                return push
        try:
            live.endpoints.inputs.check_open({change.table for change in changes})
        except Problem:
            # A repetition of the push must not wait for this one.
            push.accepted.cancel()
            raise
        self._intake.push(push, force=force)
        return push

    def token(self, endpoint: InputEndpoint) -> str:
        """Return a completion token for everything that an input has received so far."""
        return CompletionToken(self._metrics.incarnation, endpoint.name, endpoint.metrics.total_records).encode()

    def completion(self, text: str, *, checkpoint: bool) -> dict[str, Any]:
        """Return the answer of ``GET completion_status``.

        :param text: the token
        :param checkpoint: True if it counts as complete only once no kill can lose its rows; takes a checkpoint if needed
        :returns: the status, the step, and True if the token's rows are durable
        :raises Problem: if the token cannot be used, there is no storage, the checkpoint failed, or an output has failed before it
            had delivered the results of the token's rows
        """
        token = CompletionToken.decode(text)
        if (reason := self._failed_attempts.get(token.incarnation)) is not None:
            raise Problem(
                ErrorCode.PIPELINE_RESTARTED,
                "The stream program failed after the token was made, and was restarted. The step that failed was not kept, nor what"
                f" was to follow it, unless it is read again from a source: {reason}",
            )
        if token.incarnation != self._metrics.incarnation:
            raise Problem(ErrorCode.PIPELINE_RESTARTED, "The token was made by an earlier run of the pipeline; make a new one.")
        live = self.serving()
        endpoint = live.endpoints.inputs.get(token.endpoint)
        if endpoint is None:
            raise Problem(ErrorCode.UNKNOWN_ENDPOINT_IN_COMPLETION_TOKEN, f"There is no connector {token.endpoint} (any more).")
        done = endpoint.metrics.completed_records >= token.records
        if done and (failed := live.failed_outputs(endpoint, token.records)):
            raise Problem(
                ErrorCode.OUTPUT_FAILED,
                "What the token stands for is in the pipeline, and is not delivered in this run: "
                + " ".join(output.loss for output in failed),
                {"outputs": {output.name: output.health.fatal for output in failed}},
            )
        durable = done and endpoint.metrics.durable_records >= token.records
        if done and checkpoint and not durable:
            self._checkpointer.make_durable(live)
            done = False
        step = live.circuit.snapshot.step if done else None
        return {"status": "complete" if done else "inprogress", "step": step, "durable": durable}

    def listen(self, listener: Listener, *, send_snapshot: bool) -> None:
        """Attach a listener. Return once it is attached, so that its client can read while its queue is filled.

        :param listener: the listener that gets the changes
        :param send_snapshot: True if the relation's contents come first
        """
        live = self.serving()
        attached: Future[None] = Future()

        def attach() -> None:
            live.endpoints.outputs.attach(listener)
            # Contents that are larger than the queue wait for the client, which reads only after this request is answered.
            attached.set_result(None)
            live.begin_stream(listener, send_snapshot=send_snapshot)

        def attach_between_steps() -> None:
            self.serving()
            attach()

        def fail(done: Future[None]) -> None:
            error = done.exception()
            if error is not None and not attached.done():
                attached.set_exception(error)

        live.endpoints.outputs.listeners.hold(listener)
        if self._transactions.after_commit(attach):
            # A listener that comes during a transaction is attached after it.
            return
        if not send_snapshot and not live.endpoints.outputs.has_first(listener.view):
            # Deltas of the steps from now on need no consistent cut.
            attach()
            return
        self._intake.submit(attach_between_steps).add_done_callback(fail)
        attached.result()

    def wake(self) -> None:
        """Make the pipeline's thread look at the inputs again: a connector was started or paused, or has had errors."""
        self._state.notify()

    # Changes of the program.

    def plan(self, source: ProgramSource, compiled: Program) -> PlannedChange:
        """Return the consequences of going on with another program. Nothing is stopped for it.

        :param source: the other program's source
        :param compiled: the compiled program
        """
        live = self.serving()
        running = SavedProgram(
            live.identity,
            live.circuit.snapshot.holdings,
            front_end_for(live.identity.source, live.sessions),
            running=live.circuit.wiring,
            operators=live.kept_operators,
        )
        new = NewProgram(source, None, compiled, build_wiring(compiled, "auto"), front_end_for(source, live.sessions))
        return planned_change(plan_bootstrap(running, compiled, new.wiring), running, new, live.evaluation_times.factors())

    # Checkpoints.

    def request_checkpoint(self) -> int:
        """Request a checkpoint between two steps.

        :returns: the request's number
        :raises Problem: if storage is switched off
        """
        return self._checkpointer.request(self.serving())

    def checkpoints(self) -> list[dict[str, Any]]:
        """Return the listed checkpoints, newest first."""
        return [] if self._opening.durability is None else self._opening.durability.list_checkpoints()

    def sync(self) -> CheckpointSync:
        """Return the copies of checkpoints."""
        self.serving()
        if self._opening.sync is None:
            raise self._state.terminating()
        return self._opening.sync

    # Transactions.

    def start_transaction(self) -> int:
        """Open a transaction.

        :returns: its number
        :raises Problem: if one is in progress
        """
        self.serving()
        return self._transactions.start()

    def commit_transaction(self) -> None:
        """Commit the transaction that was started; the pipeline's thread runs its step.

        :raises Problem: if none is in progress
        """
        self.serving()
        self._transactions.commit()

    # The clock.

    def advance_clock(self, delta_ms: int | None) -> dict[str, Any]:
        """Move a clock that is driven by requests. Return once a step has the new time.

        :param delta_ms: the milliseconds to add, or None for one tick
        :returns: the new time in wire form
        :raises Problem: if the clock goes by itself, or should go back
        """
        live = self._require_driven()
        if delta_ms is not None and delta_ms < 0:
            raise Problem(ErrorCode.INVALID_PARAM, f"The clock cannot go back: delta_ms is {delta_ms}.")
        return self._set_clock(live, lambda: live.clock.advance(None if delta_ms is None else delta_ms * 1000))

    def set_clock(self, at_us: int) -> dict[str, Any]:
        """Move a clock that is driven by requests to a time, unless it is further already.

        :param at_us: the time in microseconds since the epoch
        :returns: the new time in wire form
        :raises Problem: if the clock goes by itself
        """
        live = self._require_driven()
        return self._set_clock(live, lambda: live.clock.moved_to(at_us))

    def _require_driven(self) -> LivePipeline:
        live = self.serving()
        if not live.clock.options.http_driven:
            raise Problem(
                ErrorCode.INVALID_PARAM,
                f"The clock of the pipeline {self._deployment.pipeline_name} goes by itself; requests move it only with "
                "dev_tweaks.now_http_driven in the runtime configuration.",
            )
        return live

    def _set_clock(self, live: LivePipeline, move: Callable[[], int]) -> dict[str, Any]:
        reached: list[int] = []

        def task() -> None:
            self.serving()
            reached.append(move())
            transaction = self._transactions.current
            if transaction is not None:
                # The views follow with the commit.
                transaction.clock = reached[0]
                return
            try:
                live.move_clock(reached[0])
            except Exception as failure:
                # A failed step ends the incarnation, even if a request caused it.
                self._state.fail(failure)
                raise as_problem(failure) from failure

        self._intake.submit(task).result()
        return describe_time(reached[0])

    # Maintenance.

    def start_compaction(self) -> None:
        """Merge the batches of all traces between two steps, as soon as the step in progress is over."""
        live = self.serving()

        def compact() -> None:
            started = time.monotonic()
            try:
                merged = live.circuit.compact()
            except Exception as failure:
                # As in automatic merging, the pipeline cannot go on without its traces.
                self._state.fail(failure)
                raise
            live.log.info("compaction: %s, %.0f ms", "done" if merged else "nothing to merge", (time.monotonic() - started) * 1000)

        self._intake.submit(compact)

    # Statistics.

    def begin_activity(self, live: LivePipeline) -> None:
        """Take the first sample of the activity before any rows come in; later samples are compared with it.

        :param live: the pipeline
        """
        self.activity.sample(lambda: counters(live, self._metrics))

    def sample(self) -> None:
        """Add to the time series and to the activity, while requests are answered."""
        live = self._opening.live
        if self._state.is_serving and live is not None:
            self.series.add(self._metrics.sample())
            self.activity.sample(lambda: counters(live, self._metrics))

    def figures(self) -> dict[str, Any]:
        """Return the figures of this pipeline for a list of all pipelines."""
        transaction = {"transaction": self._transactions.current is not None}
        return figures(self.readable(), self._metrics, self.activity, self.series) | transaction

    @property
    def is_serving(self) -> bool:
        """True if requests are answered."""
        return self._state.is_serving

    def profile(self) -> dict[str, Any]:
        """Return the costs of the newest steps, and the physical plans of their queries."""
        live = self.serving()
        return circuit_profile(live.circuit, live.history.recent)

    def dataflow(self) -> dict[str, Any]:
        """Return the dataflow graph of the program that runs."""
        return dataflow(self.serving().program, self._deployment.source.sql)

    @property
    def memory_limit(self) -> int | None:
        """The bytes of memory that the configuration allows, or None if it sets no limit."""
        return self._opening.options.memory_limit

    def recent_steps(self) -> list[dict[str, Any]]:
        """Return statistics of the newest steps, oldest first."""
        return [stats.to_wire() for stats in self.serving().history.recent]

    def stats(self, *, errors: bool = False) -> dict[str, Any]:
        """Return the answer of ``GET stats``.

        :param errors: True if the errors of connectors are listed
        """
        live = self.readable()
        endpoints = live.endpoints
        counters = self._metrics.counters()
        bootstrapping = self._state.is_bootstrapping
        ended = endpoints.inputs.all_ended and counters.completed_records == counters.input_records
        complete = ended and not bootstrapping and not live.streams_have_end_to_show and not live.deliveries.losses
        state = "Running" if self._state.is_running else "Paused"
        transaction = self._transactions.to_wire() | {"commit_progress": self._commit_progress()}
        suspend_error = self._suspend_error()
        return {
            "global_metrics": self._metrics.to_wire(
                state=state,
                bootstrapping=bootstrapping,
                pipeline_complete=complete,
                stalled_s=endpoints.outputs.stalled_s,
                transaction=transaction,
            ),
            "inputs": [endpoint.to_wire(errors=errors) for endpoint in endpoints.inputs.shown],
            "outputs": [output.to_wire(errors=errors) for output in endpoints.outputs.all],
            "suspend_error": suspend_error,
            "checkpoint_activity": self._checkpointer.requests.activity(),
            "permanent_checkpoint_errors": None if suspend_error is None else suspend_error.get("Permanent"),
            **_describe_streams(live),
            **_describe_bootstrap(live),
        }

    def _commit_progress(self) -> dict[str, int] | None:
        """Return the progress of a transaction's commit, in operators. Spark does not report the progress of a single one."""
        transaction, live = self._transactions.current, self._opening.live
        if transaction is None or live is None or not transaction.has_all:
            return None
        completed, in_progress = live.circuit.progress
        return {
            "completed": completed,
            "in_progress": in_progress,
            "remaining": len(live.circuit.operators) - completed - in_progress,
            "in_progress_processed_records": 0,
            "in_progress_total_records": transaction.consumption.records if in_progress else 0,
        }

    def _suspend_error(self) -> dict[str, list[Any]] | None:
        """Return the reason why no checkpoint can be taken now, or None."""
        if not self._opening.options.storage:
            return {"Permanent": ["StorageRequired"]}
        live = self._opening.live
        if live is not None and (names := live.endpoints.inputs.without_position):
            return {"Permanent": [{"UnsupportedInputEndpoint": name} for name in names]}
        if self._state.is_bootstrapping:
            return {"Temporary": ["Bootstrapping"]}
        return None if self._transactions.current is None else {"Temporary": [TRANSACTION_IN_PROGRESS]}


def _describe_bootstrap(live: LivePipeline) -> dict[str, Any]:
    """Return the progress of the evaluation of changed views; empty at other times."""
    progress = live.circuit.bootstrap_progress
    return {} if progress is None else {"bootstrap_progress": {"rows_read": progress[0], "rows": progress[1]}}


def _describe_streams(live: LivePipeline) -> dict[str, Any]:
    """Return the statistics of the pipeline's stream program; empty if it has none."""
    streams, runtime = live.program.streams, live.circuit.streams
    return {} if streams is None or runtime is None else statistics_to_wire(streams, runtime.statistics)
