"""The taking of checkpoints: requested ones, periodic ones, and the last one before a graceful stop."""

from __future__ import annotations

import threading
import time

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.spark.failures import failure_text
from airflow_pipelines.engine.storage.fence import OvertakenError
from airflow_pipelines.engine.storage.problems import STORAGE_CODES
from airflow_pipelines.engine.streams.runtime import StreamProgramFailure
from airflow_pipelines.host.inputs.intake import Intake
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.runs.opening import Opening
from airflow_pipelines.host.state.failures import as_problem
from airflow_pipelines.host.steps.checkpointing import save_checkpoint, save_recovery_point, show_end_of_streams
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.host.steps.transactions import IncarnationTransactions

SHORTEST_WAIT_S = 0.05
DELIVER_S = 10.0
"""The seconds that a graceful stop waits for outputs to deliver their changes."""
TRANSACTION_IN_PROGRESS = "TransactionInProgress"
"""The reason why a checkpoint has to wait, in wire form."""


class Checkpointer:
    """The schedule of checkpoints, and their results; ``requests`` has them by number."""

    def __init__(self, incarnation: Incarnation, opening: Opening, intake: Intake, transactions: IncarnationTransactions) -> None:
        self.requests = incarnation.checkpoints
        self._pipeline = incarnation.deployment.pipeline_name
        self._state = incarnation.state
        self._opening = opening
        self._intake = intake
        self._log = incarnation.log
        self._transactions = transactions
        self._delayed: list[int] = []
        self._lock = threading.Lock()
        self._durable_request: int | None = None
        """The request for a checkpoint that makes rows durable, or None."""
        self._last = time.monotonic()

    # Called by requests.

    def request(self, live: LivePipeline) -> int:
        """Request a checkpoint between two steps.

        :param live: the pipeline
        :returns: the number of the request
        :raises Problem: if storage is switched off, or no checkpoint could go on from the position of an input
        """
        self._opening.options.require_storage()
        _require_positions(live)
        number = self.requests.request()
        if self._transactions.current is not None:
            # The client sees at once that the checkpoint waits.
            self.requests.note_delay([TRANSACTION_IN_PROGRESS])
        self._intake.submit(lambda: self._take_or_delay(live, number))
        return number

    def make_durable(self, live: LivePipeline) -> None:
        """Request a checkpoint, unless an earlier call has requested one that is still pending.

        :param live: the pipeline
        :raises Problem: if that one failed, or storage is switched off
        """
        with self._lock:
            asked = self._durable_request
            if asked is not None and self.requests.is_pending(asked):
                return
            error = None if asked is None else self.requests.error_of(asked)
            self._durable_request = self.request(live) if error is None else None
        if error is not None:
            raise Problem(
                ErrorCode.CHECKPOINT_FAILED,
                "The rows are processed, but the checkpoint that was to make them durable could not be written: "
                f"{error} Put that right and wait again; the rows are lost only if the pipeline is killed before.",
            )

    # Called by the pipeline's thread.

    def begin(self) -> None:
        """Start to count the time to the first periodic checkpoint, because the pipeline serves from now on."""
        self._last = time.monotonic()

    @property
    def until_due(self) -> float | None:
        """The seconds until a periodic checkpoint or copy may be due, or None if there are none."""
        options = self._opening.options
        waits = []
        if options.checkpoint_interval_s is not None and options.storage:
            waits.append(self._last + options.checkpoint_interval_s - time.monotonic())
        if options.sync is not None and options.sync.push_interval_s is not None:
            waits.append(options.sync.push_interval_s)
        return max(min(waits), SHORTEST_WAIT_S) if waits else None

    def take_if_due(self, live: LivePipeline) -> None:
        """Take a periodic checkpoint if one is due and there is something new, and start a copy if one is due."""
        options = self._opening.options
        interval = options.checkpoint_interval_s
        if interval is not None and options.storage and time.monotonic() - self._last >= interval:
            newest = live.durability.checkpoints.latest_listed()
            has_steps = newest is None or newest.steps != live.circuit.snapshot.step
            is_new = has_steps or live.endpoints.inputs.have_moved or live.push_keys.has_unsaved
            if is_new and not live.endpoints.inputs.without_position:
                self._take_or_delay(live, self.requests.request())
            self._last = time.monotonic()
        if self._opening.sync is not None:
            self._opening.sync.push_if_due()

    def take_delayed(self, live: LivePipeline) -> None:
        """Take the checkpoint that was requested during a transaction, which has committed."""
        numbers, self._delayed = self._delayed, []
        if numbers:
            # One checkpoint is enough for all delayed requests.
            self._take_requested(live, numbers[-1])

    def shorten_journal(self, live: LivePipeline) -> None:
        """Replace a journal that has grown long by a recovery point, unless periodic checkpoints do this."""
        if live.durability.needs_recovery_point and not self._opening.options.checkpoint_interval_s:
            save_recovery_point(live)

    def take_last(self, live: LivePipeline) -> None:
        """Take the checkpoint of a graceful stop.

        :raises Problem: if it cannot be written, storage is switched off, or no checkpoint could go on from the position of an
            input
        :raises OvertakenError: if a later run uses the storage
        :raises StreamProgramFailure: if the stream program fails at it
        """
        live.endpoints.inputs.set_active(False)
        self._opening.options.require_storage()
        _require_positions(live)
        self._wait_for_outputs(live)
        if not self._opening.options.checkpoint_during_suspend:
            return
        try:
            self._take(live)
        except (OvertakenError, StreamProgramFailure):
            raise
        except Exception as error:
            # For any other error, the stop goes on without the checkpoint.
            self._state.check()
            raise self._stopped_without(live, error) from error

    def _wait_for_outputs(self, live: LivePipeline) -> None:
        """Let working outputs deliver their changes, for a while. The checkpoint keeps the rest."""
        endpoints, until = live.endpoints, time.monotonic() + DELIVER_S
        # No more rows will fill the buffers, and after the stop of the outputs it would be too late to write them.
        endpoints.outputs.flush(live.program)
        live.flush_outputs()
        while endpoints.outputs.delivers and (left := until - time.monotonic()) > 0 and not self._state.taken_down:
            self._state.wait(lambda: endpoints.outputs.has_delivered or self._state.taken_down, left)
            live.flush_outputs()
        self._state.check()
        endpoints.outputs.stop()
        if (failure := endpoints.failure) is not None:
            raise failure
        for output in endpoints.outputs.declared:
            steps, records = output.waiting
            if steps:
                why = output.health.trouble or f"its target did not take it within {DELIVER_S:g} s"
                self._log.warning(
                    "output %s: %d changes of %d steps are not delivered (%s); the checkpoint keeps them for the next start",
                    output.name,
                    records,
                    steps,
                    why,
                )

    def show_end_of_streams(self, live: LivePipeline) -> None:
        """Let sinks make their writes visible once all inputs of the stream program have ended.

        Nothing more would cause a checkpoint then.

        :param live: the pipeline
        """
        if live.streams_have_end_to_show and self._transactions.current is None:
            show_end_of_streams(live)

    def give_up(self, reason: Problem) -> None:
        """Fail the checkpoint requests that wait for the end of a transaction.

        :param reason: the problem that has ended the transaction
        """
        numbers, self._delayed = self._delayed, []
        for number in numbers:
            self.requests.note_failure(number, reason.message)

    def keep_last_step(self) -> None:
        """Save the steps before one that failed, so that a corrected program or row goes on from there, not from a checkpoint."""
        live = self._opening.live
        if live is None or not self._state.is_serving or not self._opening.options.storage or live.durability.journals:
            return
        try:
            save_recovery_point(live)
        except Exception as error:  # noqa: BLE001  the failed step is what ends the incarnation; this must not hide it
            self._log.failure("the steps since the last checkpoint could not be saved: %s", error, cause=error)

    def _take_or_delay(self, live: LivePipeline, number: int) -> None:
        if self._transactions.current is None:
            self._take_requested(live, number)
            return
        self._delayed.append(number)
        self.requests.note_delay([TRANSACTION_IN_PROGRESS])

    def _take_requested(self, live: LivePipeline, number: int) -> None:
        self.requests.note_start()
        try:
            self._take(live)
        except Exception as error:  # noqa: BLE001  a checkpoint that fails is reported; the pipeline lives on
            self._log.failure("checkpoint %d failed: %s", number, failure_text(error), cause=error)
            self.requests.note_failure(number, failure_text(error))
            # These failures mean that the run is replaced, or that the stream program has ended: the pipeline cannot go on.
            if isinstance(error, OvertakenError | StreamProgramFailure):
                self._state.fail(error)
            return
        self.requests.note_success(number)

    def _take(self, live: LivePipeline) -> None:
        save_checkpoint(live)
        self._last = time.monotonic()
        if self._opening.sync is not None and not self._opening.sync.busy:
            live.durability.collect_garbage()
        self._state.record_checkpoints(live.durability.list_checkpoints())

    def _stopped_without(self, live: LivePipeline, failure: Exception) -> Problem:
        """Return the deployment error of a graceful stop whose checkpoint could not be written."""
        cause = as_problem(failure, self._pipeline)
        if cause.code not in STORAGE_CODES:
            self._log.failure("the last checkpoint failed", cause=failure)
        kept = (
            "Nothing is lost: all steps are in the journal, with which the next start goes on."
            if live.durability.journals
            else "What came after the newest checkpoint is lost. To be sure that there is one, ask for it before a stop."
        )
        return Problem(
            ErrorCode.SUSPEND_ERROR,
            f"The pipeline {self._pipeline} was stopped as by force, because its last checkpoint could not be written: "
            f"{cause.message} {kept}",
            {"cause": cause.body()},
        )


def _require_positions(live: LivePipeline) -> None:
    """Refuse a checkpoint from which inputs could not go on.

    :raises Problem: if there are such inputs; names them
    """
    names = live.endpoints.inputs.without_position
    if names:
        listed = ", ".join(names)
        raise Problem(
            ErrorCode.SUSPEND_ERROR,
            f"No checkpoint can be taken while these inputs are read, whose sources have no position to go on from: {listed}. Wait "
            "until they have come to their end, or stop the pipeline with force; what they have brought since the newest "
            "checkpoint is then read again.",
            {"reasons": [{"UnsupportedInputEndpoint": name} for name in names]},
        )
