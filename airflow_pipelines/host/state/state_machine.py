"""The states of one incarnation: their order, and the operations allowed in each. No threads and no storage."""

from __future__ import annotations

from collections.abc import Mapping, Set

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import RuntimeStatus

SERVING = frozenset({RuntimeStatus.RUNNING, RuntimeStatus.PAUSED})
"""The states in which requests are answered and steps are run."""
BOOTSTRAPPING = frozenset({RuntimeStatus.BOOTSTRAPPING, RuntimeStatus.CONCURRENT_BOOTSTRAPPING, RuntimeStatus.SYNCHRONIZING})
"""The states in which unchanged relations can be read, and no input is taken."""
_ENDS = frozenset({RuntimeStatus.STOPPED, RuntimeStatus.SUSPENDED})
_AGAIN = frozenset({RuntimeStatus.INITIALIZING})
"""The state of an incarnation that opens its parts again, because its stream program failed and asks for restarts."""
_BOOTSTRAPS = frozenset({RuntimeStatus.BOOTSTRAPPING, RuntimeStatus.CONCURRENT_BOOTSTRAPPING})
_NEXT: Mapping[RuntimeStatus | None, frozenset[RuntimeStatus]] = {
    None: frozenset({RuntimeStatus.INITIALIZING}) | _ENDS,
    RuntimeStatus.INITIALIZING: frozenset(
        {RuntimeStatus.STANDBY, RuntimeStatus.AWAITING_APPROVAL, RuntimeStatus.REPLAYING, *_BOOTSTRAPS, *SERVING, *_ENDS}
    ),
    RuntimeStatus.STANDBY: frozenset({RuntimeStatus.AWAITING_APPROVAL, RuntimeStatus.REPLAYING, *_BOOTSTRAPS, *SERVING, *_ENDS}),
    RuntimeStatus.AWAITING_APPROVAL: frozenset({RuntimeStatus.REPLAYING, *_BOOTSTRAPS, *SERVING, *_ENDS}),
    RuntimeStatus.REPLAYING: _BOOTSTRAPS | SERVING | _AGAIN | _ENDS,
    RuntimeStatus.BOOTSTRAPPING: SERVING | _AGAIN | _ENDS,
    RuntimeStatus.CONCURRENT_BOOTSTRAPPING: frozenset({RuntimeStatus.SYNCHRONIZING}) | _AGAIN | _ENDS,
    RuntimeStatus.SYNCHRONIZING: SERVING | _AGAIN | _ENDS,
    RuntimeStatus.RUNNING: frozenset({RuntimeStatus.PAUSED}) | _AGAIN | _ENDS,
    RuntimeStatus.PAUSED: frozenset({RuntimeStatus.RUNNING}) | _AGAIN | _ENDS,
}
"""The states that may follow each state; no state follows the end of an incarnation."""
_REFUSALS = {
    RuntimeStatus.INITIALIZING: (ErrorCode.INITIALIZING, "is still initializing"),
    RuntimeStatus.STANDBY: (ErrorCode.STANDBY, "stands by until it is activated"),
    RuntimeStatus.AWAITING_APPROVAL: (ErrorCode.AWAITING_APPROVAL, "awaits the approval of its program changes"),
    RuntimeStatus.REPLAYING: (ErrorCode.RESTORE_IN_PROGRESS, "is replaying its journal"),
    RuntimeStatus.BOOTSTRAPPING: (ErrorCode.BOOTSTRAP_IN_PROGRESS, "is bootstrapping its changed views"),
    RuntimeStatus.CONCURRENT_BOOTSTRAPPING: (ErrorCode.BOOTSTRAP_IN_PROGRESS, "is bootstrapping its changed views"),
    RuntimeStatus.SYNCHRONIZING: (ErrorCode.BOOTSTRAP_IN_PROGRESS, "is about to show its changed views"),
    RuntimeStatus.SUSPENDED: (ErrorCode.SUSPENDED, "is suspended"),
}


class StateMachine:
    """The current and the desired status of an incarnation."""

    def __init__(self, pipeline: str, desired: RuntimeStatus) -> None:
        """Begin without a status.

        :param pipeline: the pipeline's name, for messages
        :param desired: the desired status once it is up
        """
        self.status: RuntimeStatus | None = None
        """The current status, or None before the incarnation begins."""
        self.desired = desired
        self.taken_down = False
        """True if it is to end at once, without a checkpoint."""
        self.ended = False
        """True if it is over and has released everything."""
        self._pipeline = pipeline
        self._announced: RuntimeStatus | None = None

    def want(self, desired: RuntimeStatus) -> None:
        """Set the desired status. Suspended is final: an incarnation that is to suspend keeps it.

        :param desired: running, paused or suspended; there is no way back to standby
        :raises Problem: if it stands by, or is to, and the desired status is not suspended: only :meth:`activate` lets it run
        """
        if self.desired is RuntimeStatus.STANDBY and desired is not RuntimeStatus.SUSPENDED:
            raise Problem(
                ErrorCode.INVALID_TRANSITION,
                f"The pipeline {self._pipeline} {_REFUSALS[RuntimeStatus.STANDBY][1]}: it cannot become {desired.value} before.",
            )
        if self.desired is not RuntimeStatus.SUSPENDED:
            self.desired = desired

    def activate(self, desired: RuntimeStatus) -> None:
        """End standby. Do nothing if it was activated to the same status before.

        :param desired: running or paused
        :raises Problem: if it does not stand by
        """
        # Others may know of the standby a moment before its status is current.
        again = self.status is RuntimeStatus.STANDBY and self.desired is desired
        if self.desired is not RuntimeStatus.STANDBY and not again:
            raise Problem(
                ErrorCode.INVALID_TRANSITION,
                f"The pipeline {self._pipeline} does not stand by: only a pipeline in standby can be activated.",
            )
        self.desired = desired

    def skip_standby(self) -> None:
        """Set the desired status to running, although it was started to stand by first."""
        self.desired = RuntimeStatus.RUNNING

    def announce(self, status: RuntimeStatus) -> None:
        """Announce the state that is about to be entered.

        If it serves requests, they are answered from now on: others may know of it.

        :param status: the next state, or once more the current one
        """
        self._announced = status

    def enter(self, status: RuntimeStatus) -> bool:
        """Make a state the current one.

        :param status: the next state, or once more the current one
        :returns: True if the state has changed
        :raises ValueError: if it cannot follow
        """
        if status is self.status:
            return False
        if status not in _NEXT.get(self.status, frozenset()):
            raise ValueError(f"{status.value} cannot follow {self.status.value if self.status else 'nothing'}")
        self.status = status
        return True

    @property
    def awaits_approval(self) -> bool:
        """True if it awaits the approval of its program, also just before, when others may know of it already."""
        return RuntimeStatus.AWAITING_APPROVAL in (self.status, self._announced)

    @property
    def is_serving(self) -> bool:
        """True if requests are answered and steps are run."""
        return self.status in SERVING

    @property
    def is_running(self) -> bool:
        """True if inputs are taken."""
        return self.status is RuntimeStatus.RUNNING

    @property
    def has_to_change(self) -> bool:
        """True if the desired status differs from the current one, or it is to end at once."""
        return self.taken_down or self.desired is not self.status

    @property
    def is_bootstrapping(self) -> bool:
        """True if changed views are being evaluated."""
        return self.status in BOOTSTRAPPING

    def refusal(self) -> Problem | None:
        """Return the problem that keeps requests from being answered, or None if they are answered."""
        return self._refusal(SERVING)

    def reading_refusal(self) -> Problem | None:
        """Return the problem that keeps contents from being read, or None if unchanged relations can be read."""
        return self._refusal(SERVING | BOOTSTRAPPING)

    def _refusal(self, answering: Set[RuntimeStatus]) -> Problem | None:
        ended = self.ended and self.status is not RuntimeStatus.SUSPENDED
        if ended or self.taken_down or self.status is RuntimeStatus.STOPPED:
            return self.terminating()
        if self.status in answering or self._announced in answering:
            return None
        code, text = _REFUSALS.get(self.status or RuntimeStatus.INITIALIZING, _REFUSALS[RuntimeStatus.INITIALIZING])
        return Problem(code, f"The pipeline {self._pipeline} {text}; try again when it is running.")

    def terminating(self) -> Problem:
        """Return the problem for requests that the pipeline gets while it ends."""
        return Problem(ErrorCode.TERMINATING, f"The pipeline {self._pipeline} is being stopped.")
