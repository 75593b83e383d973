"""Polling until a condition holds, within a time limit, and through outages of the service that are not too long.

The caller does the polling itself, so that a worker (synchronous) and a triggerer (asynchronous) apply the same rules.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.hooks.conditions import Condition, Observation, PollOutcome, Verdict, is_transient
from airflow_pipelines.hooks.wait_log import WaitLog
from airflow_pipelines.sdk.errors import PipelineConnectionError, PipelineFailedError, PipelinesError, PipelineTimeoutError

OUTAGE_BUDGET_S = 180.0
"""The default seconds that the service may be away before anything fails."""
_JITTER = 0.2


def add_jitter(seconds: float) -> float:
    """Return the interval, up to a fifth longer, so that many waits that started together do not poll together for ever."""
    return seconds * (1 + random.uniform(0, _JITTER))  # noqa: S311 - spreading load, not a secret


def spread(seconds: float) -> float:
    """Return a random part of the interval, so that waits that start together do not poll together at first."""
    return random.uniform(0, seconds)  # noqa: S311 - spreading load, not a secret


@dataclass
class Wait:
    """A wait in progress.

    :param deadline: the time after which it fails, in seconds since the epoch; None for no limit
    :param outage_budget_s: the seconds that the service may be away, counted from the first failed poll
    :param memory: the memory of the condition
    :param away_since: the time of the first failed poll, in seconds since the epoch; None while the service answers
    :param story: the progress lines; None if nobody reads them
    """

    pipeline_name: str
    condition: Condition
    deadline: float | None = None
    outage_budget_s: float = OUTAGE_BUDGET_S
    memory: Mapping[str, Any] | None = None
    last_seen: str = "nothing yet"
    away_since: float | None = None
    story: WaitLog | None = None

    @property
    def subject(self) -> str:
        """The goal and the pipeline, as text."""
        return f"waiting for {self.condition.goal} of pipeline {self.pipeline_name!r}"

    def evaluate(self, observation: Observation) -> Verdict:
        """Evaluate a poll that succeeded.

        :param observation: the observation of the poll
        :returns: the condition's verdict
        """
        self.away_since = None
        verdict = self.condition.judge(observation, self.memory)
        self.memory = verdict.memory
        self.last_seen = verdict.message
        if self.story is not None and verdict.outcome is PollOutcome.PENDING:
            self.story.progress(self.subject, verdict.message, observation.at)
        return verdict

    def poll_failed(self, error: PipelinesError, now: float) -> None:
        """Record a poll that failed.

        :param error: the error
        :param now: the current time, in seconds since the epoch
        :raises PipelinesError: if waiting cannot help: ``error`` itself
        :raises PipelineConnectionError: if the service has been away for longer than ``outage_budget_s`` allows
        """
        if not is_transient(error):
            raise error
        if self.away_since is None:
            self.away_since = now
        away_s = now - self.away_since
        if away_s > self.outage_budget_s:
            raise PipelineConnectionError(f"{self.subject}: the service has been away for {away_s:.0f} s: {error}") from error
        self.last_seen = f"the service is away: {error}"
        if self.story is not None:
            self.story.outage(self.subject, f"{self.last_seen} (for up to {self.outage_budget_s:g} s that is waited for)")

    def to_json(self) -> dict[str, Any]:
        """Return the state that another process needs to continue this wait."""
        told = None if self.story is None else self.story.to_json()
        return {"memory": dict(self.memory) if self.memory else None, "away_since": self.away_since, "told": told}

    def go_on_from(self, earlier: Mapping[str, Any]) -> None:
        """Continue a wait of another process.

        :param earlier: the result of its :meth:`to_json`
        """
        self.memory = earlier["memory"]
        self.away_since = earlier["away_since"]
        if self.story is not None and earlier["told"]:
            self.story = WaitLog.from_json(self.story.log, earlier["told"])

    def check_time(self, now: float) -> None:
        """Raise when the time is up.

        :param now: the current time, in seconds since the epoch
        :raises PipelineTimeoutError: if the deadline has passed; the message has the goal and the last observation
        """
        if self.deadline is not None and now > self.deadline:
            raise PipelineTimeoutError(f"{self.subject}: time is up, last seen: {self.last_seen}")

    def failure(self, verdict: Verdict) -> PipelineFailedError:
        """Return the error for a verdict that says the condition cannot be reached any more."""
        return PipelineFailedError(f"{self.subject}: {verdict.message}", verdict.result.get("deployment_error"))


def wait_in_place(wait: Wait, poll: Callable[[], Observation], poll_interval_s: float) -> dict[str, Any]:
    """Poll until the condition holds.

    :param wait: the wait; its deadline and memory are used
    :param poll: a function that polls the pipeline once
    :param poll_interval_s: seconds between polls
    :returns: the verdict's result
    :raises PipelineFailedError: if the condition cannot be reached any more
    :raises PipelineTimeoutError: if the deadline passed
    :raises PipelineConnectionError: if the service was away for too long
    """
    while True:
        try:
            verdict = wait.evaluate(poll())
        except PipelinesError as error:
            wait.poll_failed(error, time.time())
        else:
            if verdict.outcome is PollOutcome.REACHED:
                return verdict.result
            if verdict.outcome is PollOutcome.FAILED:
                raise wait.failure(verdict)
        wait.check_time(time.time())
        time.sleep(add_jitter(poll_interval_s))
