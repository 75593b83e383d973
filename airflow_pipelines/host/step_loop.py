"""The step loop: takes input, runs a step over it, and does between steps what is due."""

from __future__ import annotations

from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.checkpointer import Checkpointer
from airflow_pipelines.host.fence_watch import FenceWatch
from airflow_pipelines.host.intake import Intake
from airflow_pipelines.host.live import LivePipeline
from airflow_pipelines.host.run_state import RunState
from airflow_pipelines.host.step_input import StepInput


class StepLoop:
    """Runs an open pipeline until it is told to end. Used by the pipeline's thread only."""

    def __init__(self, live: LivePipeline, state: RunState, intake: Intake, checkpointer: Checkpointer, fence: FenceWatch) -> None:
        self._live = live
        self._state = state
        self._intake = intake
        self._checkpointer = checkpointer
        self._fence = fence

    def run(self) -> None:
        """Run steps until the pipeline is suspended.

        :raises TakenDown: when it is to end at once
        :raises Exception: when a step fails, or a later run uses the storage
        """
        self._checkpointer.begin()
        while True:
            self._state.wait(self._has_work, self._until_due())
            desired = self._state.desired
            self._state.check()
            if desired is RuntimeStatus.SUSPENDED:
                if self._checkpointer.take_last(self._live):
                    return
                continue
            if desired is not self._state.status:
                self._switch(desired)
            for task in self._intake.take_tasks():
                task()
            self._state.check()
            self._step_or_maintain()
            self._state.tell_errors()
            self._live.flush_outputs()
            self._fence.look()
            self._checkpointer.take_if_due(self._live)

    def _has_work(self) -> bool:
        if self._state.has_to_change or self._intake.has_work or self._state.has_errors_to_tell:
            return True
        return self._state.is_running and self._live.endpoints.have_work

    def _until_due(self) -> float | None:
        """Seconds until there is something to do even if nothing comes in: a tick, a full buffer, a checkpoint, a look around."""
        live = self._live
        tick = live.until_tick() if self._state.is_running else None
        waits = (tick, live.endpoints.until_flush, self._checkpointer.until_due, self._fence.until_due)
        return min((wait for wait in waits if wait is not None), default=None)

    def _switch(self, desired: RuntimeStatus) -> None:
        """Begin to take inputs, or stop taking them."""
        live, running = self._live, desired is RuntimeStatus.RUNNING
        live.endpoints.release_labels()
        live.endpoints.set_active(running)
        self._state.record(desired)
        self._intake.set_open(running)

    def _step_or_maintain(self) -> None:
        """Run a step over what has come in, or with the next tick of the clock; without input, merge traces that need it."""
        live, running = self._live, self._state.is_running
        taken = StepInput(self._intake.take(), live.endpoints.take() if running else {})
        clock = live.tick() if running else None
        if not taken.is_empty or clock is not None:
            live.step(taken, clock)
        if taken.is_empty:
            live.circuit.maintain()
        if not taken.is_empty or clock is not None:
            live.endpoints.release_labels()
            self._checkpointer.shorten_journal(live)
