"""Waits for a condition, with a timeout error that names the condition and the last state seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import tenacity

from airflow_pipelines.sdk.errors import PipelineTimeoutError
from airflow_pipelines.sdk.wire import is_ending, is_retryable

T = TypeVar("T")

FIRST_POLL_S = 0.05
"""The interval of the first polls. It is short, since most waits on a warm host are over in a moment; it grows to the given one."""

OUTAGE_S = 60.0
"""The number of seconds for which a wait tolerates a service or host that does not answer."""


def wait_until(
    check: Callable[[], T | None],
    *,
    what: str,
    seen: Callable[[], str],
    timeout_s: float | None,
    poll_s: float,
) -> T:
    """Call ``check`` repeatedly until it returns a value.

    :param check: a function that returns the awaited value, or None while there is none yet. Temporary errors (a busy or restarting
        service, a pipeline that is being stopped) are tolerated for a minute; any other error ends the wait.
    :param what: the awaited condition, for the timeout's message: "waiting for <what>"
    :param seen: a function that describes the last state seen, for the timeout's message
    :param timeout_s: maximum number of seconds to wait; None waits without limit
    :param poll_s: the maximum number of seconds between two checks
    :returns: the value that ``check`` returned
    :raises ValueError: when the timeout is negative
    :raises PipelineTimeoutError: when time is up
    """
    if timeout_s is not None and timeout_s < 0:
        raise ValueError(f"timeout_s is {timeout_s}: it must not be negative")
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    silent_since: float | None = None
    silent_error: Exception | None = None

    def once() -> T | None:
        nonlocal silent_since, silent_error
        try:
            result = check()
        except Exception as error:
            # What is awaited of a pipeline that is ending is told by a later check, with the error that ends it.
            if not is_retryable(error) and not is_ending(error):
                raise
            silent_error = error
            silent_since = silent_since or time.monotonic()
            if time.monotonic() - silent_since > OUTAGE_S:
                raise
            return None
        silent_since = silent_error = None
        return result

    def pause(state: tenacity.RetryCallState) -> float:
        seconds = min(poll_s, FIRST_POLL_S * 1.5 ** min(state.attempt_number - 1, 20))
        return seconds if deadline is None else max(0.0, min(seconds, deadline - time.monotonic()))

    def has_expired(_: tenacity.RetryCallState) -> bool:
        return deadline is not None and time.monotonic() >= deadline

    def give_up(_: tenacity.RetryCallState) -> T:
        trouble = f"; the last attempt failed: {silent_error}" if silent_error is not None else ""
        raise PipelineTimeoutError(f"timed out after {timeout_s:g} s waiting for {what}; last seen: {seen()}{trouble}")

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda result: result is None), wait=pause, stop=has_expired, retry_error_callback=give_up
    )
    result = retrying(once)
    if result is None:
        raise AssertionError("tenacity gave up without calling back")
    return result
