"""Strategies by which asynchronous requests are repeated, and conditions for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.streams.async_functions import (
    NO_RETRY_STRATEGY,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
    BackoffRetryStrategy,
    ExceptionPredicate,
    ResultPredicate,
)

__all__ = [
    "NO_RETRY_STRATEGY",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "ExponentialBackoffDelayRetryStrategyBuilder",
    "FixedDelayRetryStrategyBuilder",
    "empty_result_predicate",
    "has_exception_predicate",
]


def empty_result_predicate(results: list[Any]) -> bool:
    """Return True if a request has given no results.

    :param results: the results
    :returns: True if there are none
    """
    return not results


def has_exception_predicate(error: Exception) -> bool:
    """Return True, for any error.

    :param error: the error
    :returns: True
    """
    del error
    return True


class _Builder:
    """The conditions of a strategy that is being built."""

    def __init__(self, strategy: BackoffRetryStrategy) -> None:
        self._strategy = strategy

    def if_result(self, result_retry_predicate: ResultPredicate) -> Self:
        """Repeat a request because of its results.

        :param result_retry_predicate: the function that returns True for results with which it is repeated
        :returns: this object
        """
        self._strategy = replace(self._strategy, predicate=replace(self._strategy.predicate, result=result_retry_predicate))
        return self

    def if_exception(self, exception_retry_predicate: ExceptionPredicate) -> Self:
        """Repeat a request because of its error.

        :param exception_retry_predicate: the function that returns True for an error after which it is repeated
        :returns: this object
        """
        self._strategy = replace(self._strategy, predicate=replace(self._strategy.predicate, exception=exception_retry_predicate))
        return self

    def build(self) -> AsyncRetryStrategy:
        """Make the strategy.

        :returns: the strategy
        """
        return self._strategy


class FixedDelayRetryStrategyBuilder(_Builder):
    """A builder of strategies that wait the same time before each attempt.

    :param max_attempts: the maximum number of attempts after the first
    :param backoff_time_millis: milliseconds before each of them

    >>> from airflow_pipelines.datastream.async_retry_strategies import FixedDelayRetryStrategyBuilder, has_exception_predicate
    >>> strategy = FixedDelayRetryStrategyBuilder(3, 100).if_exception(has_exception_predicate).build()
    >>> strategy.can_retry(3), strategy.can_retry(4), strategy.get_backoff_time_millis(2)
    (True, False, 100)
    """

    def __init__(self, max_attempts: int, backoff_time_millis: int) -> None:
        wait = checks.integer("backoff_time_millis", backoff_time_millis, 1)
        super().__init__(BackoffRetryStrategy(checks.integer("max_attempts", max_attempts, 1), wait, wait))


class ExponentialBackoffDelayRetryStrategyBuilder(_Builder):
    """A builder of strategies that wait longer before each attempt.

    :param max_attempts: the maximum number of attempts after the first
    :param initial_delay: milliseconds before the first of them
    :param max_retry_delay: the maximum number of milliseconds before one of them
    :param multiplier: the factor by which the time grows

    >>> from airflow_pipelines.datastream.async_retry_strategies import ExponentialBackoffDelayRetryStrategyBuilder
    >>> strategy = ExponentialBackoffDelayRetryStrategyBuilder(5, 100, 1000, 2.0).build()
    >>> [strategy.get_backoff_time_millis(attempt) for attempt in range(1, 6)]
    [100, 200, 400, 800, 1000]
    """

    def __init__(self, max_attempts: int, initial_delay: int, max_retry_delay: int, multiplier: float) -> None:
        first = checks.integer("initial_delay", initial_delay, 1)
        longest = checks.integer("max_retry_delay", max_retry_delay, first)
        if not isinstance(multiplier, int | float) or multiplier <= 1:
            raise ValueError(f"multiplier is {multiplier!r}: it must be a number greater than 1")
        attempts = checks.integer("max_attempts", max_attempts, 1)
        super().__init__(BackoffRetryStrategy(attempts, first, longest, float(multiplier)))
