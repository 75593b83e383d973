"""The state of one incarnation for all its threads: they query it, wait for it, and change it; the store is told of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.state.error_list import stamp
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.recorder import StatusRecorder
from airflow_pipelines.host.state.state_machine import StateMachine

TELL_END_S: Final = 90.0
"""The seconds for which the recorder tries to record the end of an incarnation. Its host does not live longer without a store."""

ERRORS_S: Final = 1.0
"""The shortest time in seconds between two reports of new connector errors to the store."""


class TakenDown(Exception):
    """The signal that the incarnation has to end at once."""


class SuspendedEarly(Exception):
    """The signal that the incarnation has to suspend before it served; the saved state stays as it is."""


class RunState:
    """A :class:`StateMachine` guarded by the condition on which everything that waits for this incarnation waits.

    ``condition`` is notified of every change. Others may use it for conditions that are to be waited for together with these.
    """

    def __init__(self, deployment: Deployment, registry: Registry, log: PipelineLog) -> None:
        self.condition = threading.Condition()
        self._machine = StateMachine(deployment.pipeline_name, RuntimeStatus(deployment.initial.capitalize()))
        self._recorder = StatusRecorder(deployment.deployment_id, registry, log)
        self._log = log
        self._failure: Exception | None = None
        self._checkpoints: list[dict[str, Any]] | None = None
        self._count_errors: Callable[[], int] = lambda: 0
        self._errors_told = 0
        self._errors_told_at = 0.0
        self._last_sync: dict[str, Any] | None = None
        self._has_untold_sync = False

    # Queries.

    @property
    def status(self) -> RuntimeStatus | None:
        """The status recorded last, or None before the first one."""
        return self._machine.status

    @property
    def desired(self) -> RuntimeStatus:
        """The desired status of the incarnation."""
        return self._machine.desired

    @property
    def is_running(self) -> bool:
        """True if inputs are taken."""
        return self._machine.is_running

    @property
    def is_bootstrapping(self) -> bool:
        """True if changed views are being evaluated."""
        return self._machine.is_bootstrapping

    @property
    def awaits_approval(self) -> bool:
        """True if the changes of its program await approval."""
        return self._machine.awaits_approval

    @property
    def is_serving(self) -> bool:
        """True if requests are answered."""
        return self._machine.is_serving

    @property
    def has_to_change(self) -> bool:
        """True if the desired status differs from the current one, or the incarnation is to end at once."""
        return self._machine.has_to_change

    @property
    def has_news(self) -> bool:
        """True if new connector errors or copies of checkpoints should be recorded in the store now.

        If another status is due, they are recorded with that: the desired status would be a change, and an event, of its own.
        """
        if self._machine.has_to_change:
            return False
        if self._has_untold_sync:
            return True
        return self._count_errors() != self._errors_told and time.monotonic() - self._errors_told_at >= ERRORS_S

    @property
    def taken_down(self) -> bool:
        """True if it is to end at once."""
        return self._machine.taken_down

    @property
    def ended(self) -> bool:
        """True if it is over and has released everything."""
        return self._machine.ended

    def check_serving(self) -> None:
        """Return only if requests are answered.

        :raises Problem: if they are not, with the reason
        """
        refusal = self._machine.refusal()
        if refusal is not None:
            raise refusal

    def check_readable(self) -> None:
        """Return only if contents and statistics can be read.

        :raises Problem: if they cannot, with the reason
        """
        refusal = self._machine.reading_refusal()
        if refusal is not None:
            raise refusal

    def terminating(self) -> Problem:
        """Return the problem for requests that the pipeline gets while it ends."""
        return self._machine.terminating()

    def check(self) -> None:
        """Return only if nothing ends the incarnation.

        :raises TakenDown: if it is to end at once
        :raises Exception: if :meth:`fail` was called: that failure
        """
        if self.taken_down:
            raise TakenDown
        if self._failure is not None:
            raise self._failure

    def wait(self, arrived: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait for a predicate, which is evaluated whenever the condition is notified.

        :param arrived: the predicate
        :param timeout_s: the seconds to wait at most, or None for no limit
        :returns: True if the predicate holds
        """
        with self.condition:
            return self.condition.wait_for(arrived, timeout_s)

    # Commands of other threads.

    def want(self, desired: RuntimeStatus) -> None:
        """Set the desired status of the incarnation."""
        with self.condition:
            self._machine.want(desired)
            self.condition.notify_all()

    def activate(self, desired: RuntimeStatus) -> None:
        """Set the desired status of an incarnation that stands by.

        :param desired: running or paused
        :raises Problem: if it does not stand by
        """
        with self.condition:
            self._machine.activate(desired)
            self.condition.notify_all()

    def skip_standby(self) -> None:
        """Go on to run, although it was started to stand by first."""
        with self.condition:
            self._machine.skip_standby()
            self.condition.notify_all()

    def take_down(self) -> None:
        """Make the incarnation end at once."""
        with self.condition:
            self._machine.taken_down = True
            self.condition.notify_all()

    def notify(self) -> None:
        """Let all waiting threads look again."""
        with self.condition:
            self.condition.notify_all()

    # Called by its own thread, unless stated otherwise.

    def watch_errors(self, count: Callable[[], int]) -> None:
        """Report the number of connector errors to the store from now on.

        :param count: returns their number
        """
        self._count_errors = count

    def note_sync(self, checkpoint: UUID) -> None:
        """Note that a copy of a checkpoint was made. Any thread may call it; the pipeline's own thread informs the store.

        :param checkpoint: the checkpoint
        """
        with self.condition:
            self._last_sync = {"uuid": str(checkpoint), "synced_at": stamp(datetime.now(UTC))}
            self._has_untold_sync = True
            self.condition.notify_all()

    def tell_news(self) -> None:
        """Record new errors of connectors and new copies of checkpoints in the store. The status stays as it is."""
        if self.status is not None and self.has_news:
            self.record(self.status)

    def fail(self, failure: Exception) -> None:
        """Set the failure of a requested operation, which ends the incarnation."""
        self._failure = failure

    def record_checkpoints(self, checkpoints: list[dict[str, Any]]) -> None:
        """Record a checkpoint in the store.

        :param checkpoints: all current checkpoints
        """
        self._checkpoints = checkpoints
        if self.status is not None and self.desired is not RuntimeStatus.SUSPENDED:
            self.record(self.status, checkpoints=checkpoints)

    def restart(self, details: Mapping[str, Any]) -> None:
        """Record that the incarnation opens its parts again after a failure.

        :param details: the details of the transition
        """
        self._failure = None
        self.record(RuntimeStatus.INITIALIZING, details=details)

    def record(
        self,
        status: RuntimeStatus,
        *,
        details: Mapping[str, Any] | None = None,
        error: dict[str, Any] | None = None,
        checkpoints: list[dict[str, Any]] | None = None,
    ) -> None:
        """Record a transition, then make its status the current one.

        :param status: the status
        :param details: the details of the transition besides the errors of connectors
        :param error: a deployment error
        :param checkpoints: all current checkpoints, if they have changed
        """
        if checkpoints is not None:
            self._checkpoints = checkpoints
        # A client that reads the status in the store may send a request before this thread goes on.
        self._machine.announce(status)
        told = {**(details or {}), **self._usual_details()}
        with self.condition:
            self._has_untold_sync, last_sync = False, self._last_sync
        self._recorder.record(status, self.desired, details=told, error=error, checkpoints=checkpoints, last_sync=last_sync)
        with self.condition:
            changed = self._machine.enter(status)
            self.condition.notify_all()
        if changed:
            self._log.info("now %s", status.value)

    def _usual_details(self) -> dict[str, Any]:
        self._errors_told, self._errors_told_at = self._count_errors(), time.monotonic()
        return {"connector_stats": {"num_errors": self._errors_told}}

    def record_end(self, status: RuntimeStatus, error: dict[str, Any] | None) -> None:
        """Record the end of the incarnation, with the checkpoints that it leaves.

        :param status: stopped or suspended
        :param error: a deployment error, if it failed
        """
        self.record(status, error=error, checkpoints=self._checkpoints)

    def end(self) -> None:
        """Mark the incarnation as over; call :meth:`tell_end` before."""
        with self.condition:
            self._machine.ended = True
            self.condition.notify_all()

    def tell_end(self) -> None:
        """Wait until the store has the end of the incarnation; do not wait if it was taken down, because nobody asks then."""
        self._recorder.close(0.0 if self.taken_down else TELL_END_S)
