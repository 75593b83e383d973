"""Whether a program that has failed is started again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """What follows a failure.

    :param attempts: so many failures are followed by a restart, one more ends the program
    :param delay_ms: ms before each restart
    :param interval_ms: only failures of the last so many ms count; None when all do
    """

    attempts: int
    delay_ms: int
    interval_ms: int | None = None


class RestartDecisions:
    """Decides about the failures of one program, in the order in which they come.

    :param policy: what follows a failure; None for the end
    :param now: gives seconds, from any time on
    """

    def __init__(self, policy: RestartPolicy | None, now: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._now = now
        self._failures: list[float] = []

    @property
    def counted(self) -> int:
        """How many failures counted when the last one came, with that one."""
        return len(self._failures)

    def delay_after_failure(self) -> float | None:
        """There is another failure.

        :returns: seconds to wait before the next attempt; None when there is none
        """
        policy, now = self._policy, self._now()
        if policy is None:
            return None
        if policy.interval_ms is not None:
            self._failures = [at for at in self._failures if now - at < policy.interval_ms / 1000]
        self._failures.append(now)
        return policy.delay_ms / 1000 if len(self._failures) <= policy.attempts else None
