"""The policy by which calls that failed for the moment are made again: how often, how long, and after which waits."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from tenacity import AsyncRetrying, RetryCallState, Retrying
from tenacity.retry import retry_base
from tenacity.stop import stop_after_attempt, stop_after_delay, stop_any, stop_base

_SPREAD: Final = 0.5
"""The largest fraction by which a wait is shortened, so that not all clients of a recovering system call it at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The limits of the attempts at a call, and the waits between them, which double up to the longest one.

    Without ``attempts`` and ``limit_s`` a call is retried until it succeeds.

    >>> from tenacity import retry_if_exception_type
    >>> policy = RetryPolicy(first_wait_s=0.001, longest_wait_s=0.01, attempts=3)
    >>> answers = iter([ConnectionError("no server yet"), "ready"])
    >>> def read() -> str:
    ...     answer = next(answers)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> policy.retrying(retry_if_exception_type(ConnectionError))(read)
    'ready'

    :param first_wait_s: the longest wait after the first failure, in seconds
    :param longest_wait_s: the longest wait after any failure, in seconds
    :param attempts: the maximum number of attempts, or None for no such limit
    :param limit_s: the seconds after which no further attempt begins, or None for no such limit
    """

    first_wait_s: float = 0.0
    longest_wait_s: float = 0.0
    attempts: int | None = None
    limit_s: float | None = None

    def retrying(self, retry: retry_base, **hooks: Any) -> Retrying:
        """Return tenacity's object that calls a function by this policy and raises the last error when it gives up.

        :param retry: the errors after which a further attempt may succeed
        :param hooks: tenacity's other arguments, such as ``sleep`` and ``before_sleep``
        """
        return Retrying(**self._arguments(retry), **hooks)

    def retrying_async(self, retry: retry_base, **hooks: Any) -> AsyncRetrying:
        """Return the same for an asynchronous function.

        :param retry: the errors after which a further attempt may succeed
        :param hooks: tenacity's other arguments
        """
        return AsyncRetrying(**self._arguments(retry), **hooks)

    def wait_s(self, failures: int) -> float:
        """Return the seconds to wait before the next attempt.

        :param failures: the number of failures in a row, at least 1
        """
        # The exponent is bounded, because a large power would overflow a float.
        longest = min(self.first_wait_s * 2.0 ** min(failures - 1, 30), self.longest_wait_s)
        return longest * (1 - _SPREAD * random.random())  # noqa: S311  spreads load, keeps no secret

    def _arguments(self, retry: retry_base) -> dict[str, Any]:
        return {"retry": retry, "stop": self._stop(), "wait": self._wait, "reraise": True}

    def _stop(self) -> stop_base:
        by_attempts = () if self.attempts is None else (stop_after_attempt(self.attempts),)
        by_time = () if self.limit_s is None else (stop_after_delay(self.limit_s),)
        return stop_any(*by_attempts, *by_time)

    def _wait(self, state: RetryCallState) -> float:
        """Return the wait after a failed attempt.

        An error may have ``retry_after_s``, the wait that the system asked for: then it is not shorter than that.
        """
        asked_s = getattr(error_of(state), "retry_after_s", 0.0)
        return max(self.wait_s(state.attempt_number), min(asked_s, self.longest_wait_s))


def error_of(state: RetryCallState) -> BaseException | None:
    """Return the error of an attempt, or None if it had none."""
    return state.outcome.exception() if state.outcome is not None else None


class BackOff:
    """The waits between attempts that are made one at a time, as by a loop that has other work as well.

    :param policy: the waits
    """

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self.failures = 0
        """The number of failures in a row."""

    def next_s(self) -> float:
        """Return the seconds to wait after one more failure."""
        self.failures += 1
        return self._policy.wait_s(self.failures)

    def reset(self) -> None:
        """Note a success: the next wait is short again."""
        self.failures = 0
