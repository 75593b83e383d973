"""Metrics of waits, through Airflow's own metrics: the outcomes and durations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum

from airflow.sdk.observability import stats

from airflow_pipelines.sdk.errors import PipelineConnectionError, PipelineFailedError, PipelineTimeoutError


class WaitOutcome(StrEnum):
    """The outcome of a wait."""

    REACHED = "reached"
    FAILED = "failed"
    """A condition that cannot be reached any more."""
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    """A service that was away for too long."""
    ERROR = "error"


def wait_ended(condition: str, outcome: WaitOutcome, seconds: float) -> None:
    """Count a wait that has ended.

    :param condition: the kind of its condition
    :param outcome: its outcome
    :param seconds: its duration in seconds
    """
    tags = {"condition": condition, "outcome": outcome.value}
    stats.incr(f"airflow_pipelines.wait.{condition}.{outcome.value}", tags=tags)
    stats.timing(f"airflow_pipelines.wait.{condition}.duration", timedelta(seconds=seconds), tags=tags)


@contextmanager
def measured_wait(condition: str) -> Iterator[None]:
    """Count the wait within the block.

    :param condition: the kind of its condition
    """
    since = time.monotonic()
    outcome = WaitOutcome.ERROR
    try:
        yield
        outcome = WaitOutcome.REACHED
    except PipelineTimeoutError:
        outcome = WaitOutcome.TIMEOUT
        raise
    except PipelineFailedError:
        outcome = WaitOutcome.FAILED
        raise
    except PipelineConnectionError:
        outcome = WaitOutcome.UNREACHABLE
        raise
    finally:
        wait_ended(condition, outcome, time.monotonic() - since)
