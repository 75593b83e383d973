"""The decision to run an incarnation again after its stream program has failed, as the program asks for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.connectors.base import FatalConnectorFailure
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.streams.runtime import StreamProgramFailure
from airflow_pipelines.program.streams import STREAM_PROGRAM, StreamProgram
from airflow_pipelines.streams.restarts import RestartDecisions, RestartPolicy


@dataclass(frozen=True, slots=True)
class Restart:
    """Another attempt.

    :param attempt: its number, from 2
    :param delay_s: the seconds until it begins
    :param most: the maximum number of attempts, or None if failures are counted over a time
    :param recent: the number of failures in that time and the allowed number, as text; empty if failures are not counted over a
        time
    """

    attempt: int
    delay_s: float
    most: int | None = None
    recent: str = ""

    def describe(self) -> str:
        """Return a phrase for the log, such as ``attempt 2 of 3 in 1 s``."""
        most = "" if self.most is None else f" of {self.most}"
        recent = f" ({self.recent})" if self.recent else ""
        return f"attempt {self.attempt}{most} in {self.delay_s:g} s{recent}"

    def to_wire(self, reason: str) -> dict[str, Any]:
        """Return the details of the transition to the attempt.

        :param reason: the reason for another attempt
        """
        return {"restart": {"attempt": self.attempt, "delay_ms": round(self.delay_s * 1000), "reason": reason}}


class Restarts:
    """The restarts of one incarnation.

    :param now: returns seconds, counted from any time
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.attempt = 1
        """The number of the current attempt."""
        self._now = now
        self._policy: RestartPolicy | None = None
        self._decisions = RestartDecisions(None)

    def after(self, failure: Exception, program: StreamProgram | None) -> Restart | None:
        """Return the restart that follows the end of the current attempt, or None.

        :param failure: the failure that has ended it
        :param program: the stream program that ran, or None if none did
        :returns: the next attempt, or None if there is none
        """
        if program is None or not _is_of_stream_program(failure):
            return None
        if (policy := _policy_of(program)) != self._policy:
            self._policy, self._decisions = policy, RestartDecisions(policy, self._now)
        delay = self._decisions.delay_after_failure()
        if policy is None or delay is None:
            return None
        self.attempt += 1
        if policy.interval_ms is None:
            return Restart(self.attempt, delay, most=policy.attempts + 1)
        interval = f"{policy.interval_ms / 1000:g} s"
        return Restart(
            self.attempt, delay, recent=f"failures in the last {interval}: {self._decisions.counted}, allowed: {policy.attempts}"
        )


def _is_of_stream_program(failure: Exception) -> bool:
    if isinstance(failure, StepError):
        return failure.view == STREAM_PROGRAM
    # Only the connectors of a stream program's sources raise fatal failures.
    return isinstance(failure, FatalConnectorFailure | StreamProgramFailure)


def _policy_of(program: StreamProgram) -> RestartPolicy | None:
    restarts = program.run.restarts
    return None if restarts is None else RestartPolicy(restarts.attempts, restarts.delay_ms, restarts.interval_ms)
