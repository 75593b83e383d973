"""The state of one incarnation for all its threads: asked, waited for, and told to the store."""

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
"""How long the store is told how an incarnation ended. Its host does not live longer without a store."""

ERRORS_S: Final = 1.0
"""How often the store is told at most that connectors have had more errors."""


class TakenDown(Exception):
    """The incarnation was told to end at once."""


class SuspendedEarly(Exception):
    """The incarnation was told to suspend before it served; what is saved stays as it is."""


class RunState:
    """Guards a :class:`StateMachine` with the condition on which all that wait for this incarnation wait.

    ``condition`` is notified of every change; others may use it for what they want to be waited for together with these.
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

    # What is asked.

    @property
    def status(self) -> RuntimeStatus | None:
        """The status recorded last."""
        return self._machine.status

    @property
    def desired(self) -> RuntimeStatus:
        """What the incarnation is to become."""
        return self._machine.desired

    @property
    def is_running(self) -> bool:
        """Whether inputs are taken."""
        return self._machine.is_running

    @property
    def is_bootstrapping(self) -> bool:
        """Whether changed views are evaluated."""
        return self._machine.is_bootstrapping

    @property
    def awaits_approval(self) -> bool:
        """Return True if the changes of its program are to be approved."""
        return self._machine.awaits_approval

    @property
    def is_serving(self) -> bool:
        """Whether requests are answered."""
        return self._machine.is_serving

    @property
    def has_to_change(self) -> bool:
        """Whether the incarnation is to become something else than it is."""
        return self._machine.has_to_change

    @property
    def has_news(self) -> bool:
        """Whether there are errors of connectors, or copies of checkpoints, that the store is to be told of now.

        When another status is due, they are told with that: what is desired would be a change, and an event, of its own.
        """
        if self._machine.has_to_change:
            return False
        if self._has_untold_sync:
            return True
        return self._count_errors() != self._errors_told and time.monotonic() - self._errors_told_at >= ERRORS_S

    @property
    def taken_down(self) -> bool:
        """Whether it is to end at once."""
        return self._machine.taken_down

    @property
    def ended(self) -> bool:
        """Whether it is over and has let go of everything."""
        return self._machine.ended

    def check_serving(self) -> None:
        """Go on only while requests are answered.

        :raises Problem: with the reason why they are not
        """
        refusal = self._machine.refusal()
        if refusal is not None:
            raise refusal

    def check_readable(self) -> None:
        """Go on only while contents and statistics can be read.

        :raises Problem: with the reason why they cannot
        """
        refusal = self._machine.reading_refusal()
        if refusal is not None:
            raise refusal

    def terminating(self) -> Problem:
        """What requests are told when the pipeline ends."""
        return self._machine.terminating()

    def check(self) -> None:
        """Go on only while nothing ends the incarnation.

        :raises TakenDown: when it is to end at once
        :raises Exception: that of :meth:`fail`
        """
        if self.taken_down:
            raise TakenDown
        if self._failure is not None:
            raise self._failure

    def wait(self, arrived: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until something holds, which is looked at whenever the condition is notified.

        :param arrived: what to wait for
        :param timeout_s: seconds to wait at most; None for any time
        :returns: whether it holds
        """
        with self.condition:
            return self.condition.wait_for(arrived, timeout_s)

    # What is told.

    def want(self, desired: RuntimeStatus) -> None:
        """Tell the incarnation what to become."""
        with self.condition:
            self._machine.want(desired)
            self.condition.notify_all()

    def activate(self, desired: RuntimeStatus) -> None:
        """Tell an incarnation that stands by what to become.

        :param desired: running or paused
        :raises Problem: when it does not stand by
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
        """Tell it to end at once."""
        with self.condition:
            self._machine.taken_down = True
            self.condition.notify_all()

    def notify(self) -> None:
        """Let those that wait look again."""
        with self.condition:
            self.condition.notify_all()

    # What its own thread says.

    def watch_errors(self, count: Callable[[], int]) -> None:
        """Tell the store from now on how many errors connectors have had.

        :param count: gives their number
        """
        self._count_errors = count

    def synced(self, checkpoint: UUID) -> None:
        """A copy of a checkpoint was made. May be called from any thread: the pipeline's own one tells the store.

        :param checkpoint: the checkpoint
        """
        with self.condition:
            self._last_sync = {"uuid": str(checkpoint), "synced_at": stamp(datetime.now(UTC))}
            self._has_untold_sync = True
            self.condition.notify_all()

    def tell_news(self) -> None:
        """Tell the store of new errors of connectors and new copies of checkpoints. The status stays as it is."""
        if self.status is not None and self.has_news:
            self.record(self.status)

    def fail(self, failure: Exception) -> None:
        """End the incarnation with a failure of something that a request asked for."""
        self._failure = failure

    def checkpointed(self, checkpoints: list[dict[str, Any]]) -> None:
        """Tell the store of a checkpoint.

        :param checkpoints: all that there are
        """
        self._checkpoints = checkpoints
        if self.status is not None and self.desired is not RuntimeStatus.SUSPENDED:
            self.record(self.status, checkpoints=checkpoints)

    def restart(self, details: Mapping[str, Any]) -> None:
        """Have written that the incarnation opens its parts again after a failure.

        :param details: what the transition tells
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
        """Have a transition written, then make its status the current one.

        :param status: the status
        :param details: what the transition tells besides the errors of connectors
        :param error: a deployment error
        :param checkpoints: all that there are, where they have changed
        """
        if checkpoints is not None:
            self._checkpoints = checkpoints
        # Who reads the status in the store may send a request before this thread goes on.
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
        """Record how the incarnation ends, with the checkpoints that it leaves.

        :param status: stopped or suspended
        :param error: a deployment error, when it failed
        """
        self.record(status, error=error, checkpoints=self._checkpoints)

    def end(self) -> None:
        """The incarnation is over; call :meth:`tell_end` before."""
        with self.condition:
            self._machine.ended = True
            self.condition.notify_all()

    def tell_end(self) -> None:
        """Wait until the store knows how the incarnation ended. Who takes it down does not ask."""
        self._recorder.close(0.0 if self.taken_down else TELL_END_S)
