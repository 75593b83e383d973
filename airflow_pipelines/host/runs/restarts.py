"""Whether an incarnation whose stream program has failed runs it again, as the program asks for."""

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
    :param delay_s: seconds until it begins
    :param most: how many attempts there may be; None when failures are counted over a time
    :param recent: of failures that are counted over a time, how many there were and how many there may be; else empty
    """

    attempt: int
    delay_s: float
    most: int | None = None
    recent: str = ""

    def describe(self) -> str:
        """A phrase for the log, as ``attempt 2 of 3 in 1 s``."""
        most = "" if self.most is None else f" of {self.most}"
        recent = f" ({self.recent})" if self.recent else ""
        return f"attempt {self.attempt}{most} in {self.delay_s:g} s{recent}"

    def to_wire(self, reason: str) -> dict[str, Any]:
        """What the transition to the attempt tells.

        :param reason: why there is another one
        """
        return {"restart": {"attempt": self.attempt, "delay_ms": round(self.delay_s * 1000), "reason": reason}}


class Restarts:
    """The restarts of one incarnation.

    :param now: gives seconds, from any time on
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.attempt = 1
        """The number of the attempt that goes on."""
        self._now = now
        self._policy: RestartPolicy | None = None
        self._decisions = RestartDecisions(None)

    def after(self, failure: Exception, program: StreamProgram | None) -> Restart | None:
        """What follows the end of the attempt that goes on.

        :param failure: what has ended it
        :param program: the stream program that ran; None when none did
        :returns: the next attempt; None when there is none
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
    # The connectors that cannot go on after a failure are those of sources of stream programs.
    return isinstance(failure, FatalConnectorFailure | StreamProgramFailure)


def _policy_of(program: StreamProgram) -> RestartPolicy | None:
    restarts = program.run.restarts
    return None if restarts is None else RestartPolicy(restarts.attempts, restarts.delay_ms, restarts.interval_ms)
