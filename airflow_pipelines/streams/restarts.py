"""Decisions about the restart of a program that has failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """The policy for restarts after failures.

    :param attempts: the number of failures that are followed by a restart; one more ends the program
    :param delay_ms: ms before each restart
    :param interval_ms: the number of ms after which a failure no longer counts; None if all failures count
    """

    attempts: int
    delay_ms: int
    interval_ms: int | None = None


class RestartDecisions:
    """The decisions about the failures of one program, in the order in which they occur.

    :param policy: the policy; None to end the program at the first failure
    :param now: a clock that returns seconds, from any origin
    """

    def __init__(self, policy: RestartPolicy | None, now: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._now = now
        self._failures: list[float] = []

    @property
    def counted(self) -> int:
        """The number of failures that counted when the last one occurred, including that one."""
        return len(self._failures)

    def delay_after_failure(self) -> float | None:
        """Record another failure, and return the delay before the next attempt.

        :returns: seconds to wait before the next attempt; None if there is none
        """
        policy, now = self._policy, self._now()
        if policy is None:
            return None
        if policy.interval_ms is not None:
            self._failures = [at for at in self._failures if now - at < policy.interval_ms / 1000]
        self._failures.append(now)
        return policy.delay_ms / 1000 if len(self._failures) <= policy.attempts else None
