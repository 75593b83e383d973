"""Polls until a condition holds, within a time limit and a number of transient errors.

How a pipeline is polled is left to the caller, so that a worker (synchronous) and a triggerer (asynchronous) apply the same rules.
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
    """The interval, up to a fifth longer, so that many waits that started together do not poll together for ever."""
    return seconds * (1 + random.uniform(0, _JITTER))  # noqa: S311 - spreading load, not a secret


@dataclass
class Wait:
    """One wait in progress.

    :param deadline: seconds since the epoch after which it fails, None for never
    :param max_consecutive_errors: polls in a row that may fail with a transient error
    :param memory: what the condition remembers
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
        """Evaluate a poll that succeeded.

        :param observation: what the poll found
        :returns: the condition's verdict
        """
        self._errors = 0
        verdict = self.condition.judge(observation, self.memory)
        self.memory = verdict.memory
        self.last_seen = verdict.message
        return verdict

    def poll_failed(self, error: PipelinesError) -> None:
        """Count a poll that failed.

        :param error: why
        :raises PipelinesError: ``error`` itself when waiting cannot help
        :raises PipelineConnectionError: more polls in a row failed than ``max_consecutive_errors`` allows
        """
        if not is_transient(error):
            raise error
        self._errors += 1
        if self._errors > self.max_consecutive_errors:
            raise PipelineConnectionError(
                f"{self.subject}: {self._errors} polls in a row failed, the last with: {error}"
            ) from error

    def check_time(self, now: float) -> None:
        """Fail when the time is up.

        :param now: seconds since the epoch
        :raises PipelineTimeoutError: what was awaited and what was seen last
        """
        if self.deadline is not None and now > self.deadline:
            raise PipelineTimeoutError(f"{self.subject}: time is up, last seen: {self.last_seen}")

    def failure(self, verdict: Verdict) -> PipelineFailedError:
        """The error for a verdict that says the condition cannot be reached any more."""
        return PipelineFailedError(f"{self.subject}: {verdict.message}", verdict.result.get("deployment_error"))


def wait_in_place(wait: Wait, poll: Callable[[], Observation], poll_interval_s: float) -> dict[str, Any]:
    """Poll until the condition holds.

    :param wait: the wait; its deadline and memory are used
    :param poll: polls the pipeline once
    :param poll_interval_s: seconds between polls
    :returns: the verdict's result
    :raises PipelineFailedError: the condition cannot be reached any more
    :raises PipelineTimeoutError: the deadline passed
    :raises PipelineConnectionError: too many polls in a row failed
    """
    while True:
        try:
            verdict = wait.seen(poll())
        except PipelinesError as error:
            wait.poll_failed(error)
        else:
            if verdict.outcome is Outcome.REACHED:
                return verdict.result
            if verdict.outcome is Outcome.FAILED:
                raise wait.failure(verdict)
        wait.check_time(time.time())
        time.sleep(jittered(poll_interval_s))
