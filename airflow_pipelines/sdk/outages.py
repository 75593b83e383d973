"""The retry policy while the service is away: the requests that are repeated, and the time for which they are."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

import tenacity

from airflow_pipelines.common.retries import RetryPolicy, error_of
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.sdk import wire
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineConnectionError, PipelineUnreachableError

logger = logging.getLogger(__name__)

PHASE_CODES: Final = frozenset(
    {
        ErrorCode.AWAITING_APPROVAL,
        ErrorCode.BOOTSTRAP_IN_PROGRESS,
        ErrorCode.INITIALIZING,
        ErrorCode.PIPELINE_INTERACTION_NOT_DEPLOYED,
        ErrorCode.PIPELINE_INTERACTION_UNREACHABLE,
        ErrorCode.PIPELINE_UNAVAILABLE,
        ErrorCode.RESTORE_IN_PROGRESS,
        ErrorCode.SUSPENDED,
    }
)
"""The codes of 503s that are about a pipeline and not the service: a runtime request in such a phase is early, not wrong."""
_AWAY: Final = frozenset({408, 429, 502, 503, 504})
_PAUSES: Final = RetryPolicy(first_wait_s=0.5, longest_wait_s=5.0)


def is_outage(error: BaseException | None) -> bool:
    """Return True if an error means that the service as a whole is away, busy or restarting."""
    if isinstance(error, PipelineAPIError):
        return error.status_code in _AWAY and not (error.status_code == 503 and error.error_code in PHASE_CODES)
    return isinstance(error, PipelineConnectionError)


class Patience:
    """The attempts of one request.

    :param budget_s: seconds, from the first failure on, for which an outage is waited for
    :param repeatable: True if the request may be repeated when the service may have seen it. A request that it cannot have seen is
        always repeated.
    :param where: the service's address, for the log
    """

    def __init__(self, budget_s: float, repeatable: bool, where: str) -> None:
        self._budget_s = budget_s
        self._repeatable = repeatable
        self._where = where
        self._away_since: float | None = None

    def options(self) -> dict[str, Any]:
        """Return the arguments for tenacity."""
        return {
            "retry": tenacity.retry_if_exception(self._may_be_made_again),
            "stop": self._is_over,
            "wait": _pause_s,
            "before_sleep": self._log_outage,
            "reraise": True,
        }

    def log_recovery(self) -> None:
        """Log that the service answers again, if the first attempt failed."""
        if self._away_since is not None:
            logger.info("The service at %s answers again, after %.0f s", self._where, time.monotonic() - self._away_since)

    def _may_be_made_again(self, error: BaseException) -> bool:
        return isinstance(error, PipelineUnreachableError) or (self._repeatable and wire.is_retryable(error))

    def _is_over(self, state: tenacity.RetryCallState) -> bool:
        if not is_outage(error_of(state)):
            return state.attempt_number > len(wire.RETRY_WAITS_S)
        away_s = 0.0 if self._away_since is None else time.monotonic() - self._away_since
        return away_s >= self._budget_s

    def _log_outage(self, state: tenacity.RetryCallState) -> None:
        error = error_of(state)
        if self._away_since is None and is_outage(error):
            self._away_since = time.monotonic()
            logger.warning("The service is away, and is tried again for up to %g s: %s", self._budget_s, error)


def _pause_s(state: tenacity.RetryCallState) -> float:
    """Return the pause before the next attempt.

    It is short at first, for a service that is back at once, and random, so that waiting clients come at different times.
    """
    if not is_outage(error_of(state)):
        return wire.RETRY_WAITS_S[min(state.attempt_number, len(wire.RETRY_WAITS_S)) - 1]
    return _PAUSES.wait_s(state.attempt_number)
