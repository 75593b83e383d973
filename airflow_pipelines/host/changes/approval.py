"""The approval of a program that differs from the one of the saved state."""

from __future__ import annotations

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.program_versions import ProgramChange, ProgramVersion, unexpected_program
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.changes.bootstrap import BootstrapMode, BootstrapPlan
from airflow_pipelines.host.changes.change_planning import PlannedChange
from airflow_pipelines.host.state.fence_watch import FenceWatch
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.run_state import RunState, SuspendedEarly


class Approval:
    """The question whether to go on with a changed program, and its answer."""

    def __init__(self, deployment: Deployment, state: RunState, fence: FenceWatch, log: PipelineLog) -> None:
        self.mode = BootstrapMode.of(silent=deployment.silent_bootstrap, concurrent=deployment.concurrent_bootstrap)
        """The mode in which the changed views are evaluated."""
        self._policy = deployment.bootstrap_policy
        self._program = ProgramVersion.of(deployment.source, deployment.program_version)
        self._state = state
        self._fence = fence
        self._log = log
        self._waiting: ProgramChange | None = None
        self._asked: BootstrapPlan | None = None
        self._approved = False
        self._told: RuntimeStatus | None = None

    @property
    def is_given(self) -> bool:
        """True if nobody is asked, because the start's bootstrap policy allows or rejects all changes."""
        return self._policy != "await_approval"

    def approve(self, mode: BootstrapMode, expected: ProgramChange | None = None, timeout_s: float = 60.0) -> bool:
        """Let a pipeline that awaits approval go on, and wait until it has left that state. Do nothing for any other pipeline.

        :param mode: the mode in which the changed views are evaluated; it replaces the mode given at the start
        :param expected: the programs that the approval is for, or None for any that are waiting
        :param timeout_s: the seconds to wait at most
        :returns: True if the pipeline awaited approval
        :raises Problem: if other programs are waiting; nothing is approved then
        """
        with self._state.condition:
            if expected is not None:
                self._expect(expected)
            if not self._state.awaits_approval:
                return False
            if self._asked is not None:
                self._asked.check(mode)
            self.mode = mode
            self._approved = True
            self._state.notify()
            self._state.wait(lambda: not self._state.awaits_approval, timeout_s)
            return True

    def ask(self, change: PlannedChange) -> None:
        """Decide whether to go on with a changed program, as the bootstrap policy says. The pipeline's thread calls it.

        :param change: the difference, and its consequences
        :raises Problem: if the policy rejects changes
        :raises SuspendedEarly: if the pipeline is suspended instead
        :raises TakenDown: if the pipeline is taken down instead
        """
        diff = change.bootstrap.diff
        if self._policy == "reject":
            raise Problem(
                ErrorCode.BOOTSTRAP_REJECTED,
                f"The program differs from the one of the checkpoint, and the bootstrap policy is 'reject': {diff.describe()}"
                ". Undo the changes, or start with another policy.",
                diff.to_wire(),
            )
        if self._policy != "await_approval":
            return
        self._waiting, self._asked = change.programs, change.bootstrap
        details = change.to_wire()
        while not self._is_decided():
            self._told = self._state.desired
            self._state.record(RuntimeStatus.AWAITING_APPROVAL, details=details)
            while not self._state.wait(self._has_news, self._fence.until_due):
                self._fence.look()
        self._state.check()
        if not self._approved:
            self._log.info("suspended before the changes were approved")
            raise SuspendedEarly
        self._log.info("the changes were approved")

    def _has_news(self) -> bool:
        """Return True if there is an answer, or a new desired status to report."""
        return self._is_decided() or self._state.desired is not self._told

    def _is_decided(self) -> bool:
        return self._approved or self._state.taken_down or self._state.desired is RuntimeStatus.SUSPENDED

    def _expect(self, expected: ProgramChange) -> None:
        if not self._program.is_expected(expected.new):
            raise unexpected_program("The program", self._program, expected.new)
        if self._waiting is not None and not self._waiting.saved.is_expected(expected.saved):
            raise unexpected_program("The program of the saved state", self._waiting.saved, expected.saved)
