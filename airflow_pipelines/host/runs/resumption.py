"""The way from saved state to a pipeline that can run steps."""

from __future__ import annotations

import time

from airflow_pipelines.contract.statuses import CrashGuarantee, RuntimeStatus
from airflow_pipelines.host.changes.bootstrap import BootstrapMode, BootstrapPlan, SavedProgram, plan_bootstrap
from airflow_pipelines.host.changes.change_planning import NewProgram, PlannedChange, planned_change
from airflow_pipelines.host.checkpoints.durability import SavedState
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.state.front_ends import front_end_for
from airflow_pipelines.host.steps.checkpointing import save_recovery_point
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.host.steps.recovery import Recovery
from airflow_pipelines.host.streams.kept_operators import saved_operators
from airflow_pipelines.host.streams.stream_changes import SavedOperator
from airflow_pipelines.program.diff import ProgramDiff


def await_listeners(incarnation: Incarnation, live: LivePipeline) -> None:
    """Keep outgoing changes for those who listen before a pipeline that starts paused is resumed.

    :param incarnation: the incarnation
    :param live: the pipeline
    """
    if incarnation.state.desired is RuntimeStatus.PAUSED:
        live.endpoints.outputs.await_listeners()


class Resumption:
    """The start of a pipeline from saved state, maybe with another program.

    :param incarnation: the incarnation
    :param live: the pipeline, of which nothing is restored yet
    :param saved: the state
    """

    def __init__(self, incarnation: Incarnation, live: LivePipeline, saved: SavedState) -> None:
        self._incarnation = incarnation
        self._sessions = incarnation.sessions
        self._approval = incarnation.approval
        self._state = incarnation.state
        self._log = incarnation.log
        self._live = live
        self._saved = saved

    def run(self) -> None:
        """Decide about changes, restore, replay the journal, and evaluate new and changed views.

        :raises SuspendedEarly: if the pipeline was suspended instead of approved
        :raises TakenDown: if it is to end at once
        """
        live, saved = self._live, self._saved
        front_end = front_end_for(saved.program.source, self._sessions)
        before = SavedProgram(saved.program, saved.holdings, front_end, saved.layouts, operators=self._kept_operators)
        plan = plan_bootstrap(before, live.program, live.circuit.wiring)
        # The approval may still choose another mode.
        plan.check(self._approval.mode if self._approval.is_given else BootstrapMode.PLAIN)
        base = "the recovery point" if saved.base is None or not saved.base.listed else f"checkpoint {saved.base.uuid}"
        self._log.info("going on from %s: step %d, %d processed records", base, saved.step, saved.counters.processed_records)
        planned = self._ask_about_change(before, plan)
        live.metrics.restore(saved.counters, saved.initial_start_time)
        live.endpoints.restore(saved.connectors, plan.kept_connectors, plan.kept)
        changes = plan.diff.program_diff or ProgramDiff()
        live.push_keys.restore(saved.push_keys, (*changes.fresh_tables, *changes.removed_tables))
        resumed = plan.kept_connectors & saved.connectors.keys()
        live.endpoints.open_outputs(resumed, plan.kept_connectors, saved.base_step, saved.initial_start_time)
        if saved.records and live.durability.options.fault_tolerance is CrashGuarantee.EXACTLY_ONCE:
            self._state.record(RuntimeStatus.REPLAYING)
        recovery = Recovery(live)
        recovery.restore(saved, plan)
        self._state.check()
        if planned is not None:
            await_listeners(self._incarnation, live)
            started = time.monotonic()
            self._bootstrap(recovery, plan)
            self._note_evaluation(planned, time.monotonic() - started)
        if live.durability.journals and (saved.records or not plan.diff.is_empty):
            save_recovery_point(live)

    def _ask_about_change(self, before: SavedProgram, plan: BootstrapPlan) -> PlannedChange | None:
        """Show the change of the program and wait for its approval; return None if there is no change."""
        live = self._live
        for view, reason in plan.outdated.items():
            self._log.info("view %s is evaluated anew from the tables, which changes nothing for its readers: %s", view, reason)
        if plan.diff.is_empty:
            return None
        self._log.info("the program has changed: %s", plan.diff.describe())
        source = live.identity.source
        new = NewProgram(source, live.identity.version, live.program, live.circuit.wiring, front_end_for(source, self._sessions))
        planned = planned_change(plan, before, new, live.evaluation_times.factors())
        self._approval.ask(planned)
        return planned

    def _kept_operators(self) -> tuple[SavedOperator, ...]:
        """Return the operators of a saved stream program.

        Without a checkpoint there is only a journal, and they have no saved state.
        """
        saved = self._saved
        if saved.base is not None:
            return saved_operators(saved.base.contents.snapshot, self._live.durability.batches)
        program = front_end_for(saved.program.source, self._sessions).compile(saved.program.source)
        return () if program.streams is None else tuple(map(SavedOperator, program.streams.operators))

    def _note_evaluation(self, planned: PlannedChange, taken_s: float) -> None:
        """Record the time of this evaluation for later estimates."""
        if not planned.plan.evaluated:
            return
        expected = f"{planned.plan.seconds:g} to {planned.plan.seconds_at_most:g} s were expected"
        self._log.info("changed views were evaluated in %.1f s; %s", taken_s, expected)
        try:
            self._live.evaluation_times.add(planned.computed_s, taken_s)
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
