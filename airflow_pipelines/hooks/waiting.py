"""The loop around a condition: look, judge, sleep a little, with a time limit and a budget for errors that may pass.

Kept apart from how a look is taken, so that a worker (synchronous) and a triggerer (asynchronous) drive the same rules.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.errors import PipelineConnectionError, PipelineFailedError, PipelinesError, PipelineTimeoutError
from airflow_pipelines.hooks.conditions import Condition, Observation, Outcome, Verdict, is_transient

_JITTER = 0.2


def jittered(seconds: float) -> float:
    """The interval, up to a fifth longer, so that many waits started together do not look together for ever."""
    return seconds * (1 + random.uniform(0, _JITTER))  # noqa: S311 - spreading load, not a secret


@dataclass
class Wait:
    """One wait in progress.

    ``deadline``: seconds since the epoch after which it fails, None for never. ``max_consecutive_errors``: looks in a row that
    may fail with an error that may pass. ``memory``: what the condition remembers.
    """

    pipeline_name: str
    condition: Condition
    deadline: float | None = None
    max_consecutive_errors: int = 5
    memory: Mapping[str, Any] | None = None
    last_seen: str = "nothing yet"
    _errors: int = field(default=0, init=False)

    @property
    def subject(self) -> str:
        """What is awaited on which pipeline."""
        return f"waiting for {self.condition.goal} of pipeline {self.pipeline_name!r}"

    def seen(self, observation: Observation) -> Verdict:
        """Judge a look that succeeded.

        Args:
            observation: the look.

        Returns:
            The condition's verdict.
        """
        self._errors = 0
        verdict = self.condition.judge(observation, self.memory)
        self.memory = verdict.memory
        self.last_seen = verdict.message
        return verdict

    def stumbled(self, error: PipelinesError) -> None:
        """Account for a look that failed.

        Args:
            error: why.

        Raises:
            PipelinesError: ``error`` itself when waiting cannot help.
            PipelineConnectionError: when the budget is used up.
        """
        if not is_transient(error):
            raise error
        self._errors += 1
        if self._errors > self.max_consecutive_errors:
            raise PipelineConnectionError(
                f"{self.subject}: {self._errors} looks in a row failed, the last with: {error}"
            ) from error

    def check_time(self, now: float) -> None:
        """Fail when the time is up.

        Args:
            now: seconds since the epoch.

        Raises:
            PipelineTimeoutError: what was awaited and what was seen last.
        """
        if self.deadline is not None and now > self.deadline:
            raise PipelineTimeoutError(f"{self.subject}: time is up, last seen: {self.last_seen}")

    def failure(self, verdict: Verdict) -> PipelineFailedError:
        """The error for a verdict that says the condition cannot be reached any more."""
        return PipelineFailedError(f"{self.subject}: {verdict.message}", verdict.result.get("deployment_error"))


def wait_in_place(
    wait: Wait, look: Callable[[], Observation], poll_interval_s: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Any]:
    """Poll until the condition holds.

    Args:
        wait: the wait; its deadline and memory are used.
        look: takes one look.
        poll_interval_s: seconds between looks.
        sleep: how to sleep.

    Returns:
        The verdict's result.

    Raises:
        PipelineFailedError: the condition cannot be reached any more.
        PipelineTimeoutError: the deadline passed.
        PipelineConnectionError: too many looks in a row failed.
    """
    while True:
        try:
            verdict = wait.seen(look())
        except PipelinesError as error:
            wait.stumbled(error)
        else:
            if verdict.outcome is Outcome.REACHED:
                return verdict.result
            if verdict.outcome is Outcome.FAILED:
                raise wait.failure(verdict)
        wait.check_time(time.time())
        sleep(jittered(poll_interval_s))
