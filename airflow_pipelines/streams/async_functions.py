"""Functions that ask other systems about many elements at the same time, and the strategies by which requests are repeated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from airflow_pipelines.streams.functions import Function

IN = TypeVar("IN")
OUT = TypeVar("OUT")
ResultPredicate: TypeAlias = Callable[[list[Any]], bool]
ExceptionPredicate: TypeAlias = Callable[[Exception], bool]


class AsyncFunction(Function, Generic[IN, OUT]):
    """A function that asks another system about each element, with many requests at the same time.

    Make a client in ``open``, which may be asynchronous as ``close`` may, and give the function to :class:`AsyncDataStream`.

    >>> import asyncio
    >>> from airflow_pipelines.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment, Time
    >>> class Price(AsyncFunction[str, tuple[str, float]]):
    ...     async def async_invoke(self, value):
    ...         await asyncio.sleep(0.01)
    ...         return [(value, {"pears": 0.5, "apples": 0.25}[value])]
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> fruits = env.from_collection(["pears", "apples", "pears"])
    >>> priced = AsyncDataStream.ordered_wait(fruits, Price(), Time.seconds(5))
    >>> list(priced.execute_and_collect())
    [('pears', 0.5), ('apples', 0.25), ('pears', 0.5)]
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> Iterable[OUT] | None:
        """Ask about an element.

        :param value: the element
        :returns: the results for it
        """

    def timeout(self, value: IN) -> Iterable[OUT] | None:
        """Handle an element for which there is no answer in time.

        :param value: the element
        :returns: the results for it
        :raises TimeoutError: by default, which ends the program
        """
        raise TimeoutError(
            "There was no answer within the time limit of the request. Raise the limit, or override timeout() of the function to"
            " give results for such an element."
        )


@dataclass(frozen=True)
class AsyncRetryPredicate:
    """The conditions under which a request is repeated.

    :param result: the function that returns True for results with which it is; None for none
    :param exception: the function that returns True for an error after which it is; None for none
    """

    result: ResultPredicate | None = None
    exception: ExceptionPredicate | None = None

    def result_predicate(self) -> ResultPredicate | None:
        """Return the condition on results.

        :returns: a function that returns True to repeat the request; None if results are always accepted
        """
        return self.result

    def exception_predicate(self) -> ExceptionPredicate | None:
        """Return the condition on errors.

        :returns: a function that returns True to repeat the request; None if an error is always final
        """
        return self.exception


class AsyncRetryStrategy(ABC):
    """A strategy by which requests are repeated. All attempts together have the time limit of the request."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return True if another attempt may be made.

        :param current_attempts: the number of attempts that were made, from 1
        :returns: True if it may
        """

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the time to wait before the next attempt.

        :param current_attempts: the number of attempts that were made, from 1
        :returns: milliseconds
        """

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate:
        """Return the conditions under which a request is repeated.

        :returns: the conditions
        """


@dataclass(frozen=True)
class BackoffRetryStrategy(AsyncRetryStrategy):
    """A strategy that repeats a request some times, after times that may grow.

    :param max_attempts: the maximum number of attempts after the first
    :param first_millis: the milliseconds before the first of them
    :param longest_millis: the maximum number of milliseconds before one of them
    :param multiplier: the factor by which the time grows
    :param predicate: the conditions under which a request is repeated
    """

    max_attempts: int
    first_millis: int
    longest_millis: int
    multiplier: float = 1.0
    predicate: AsyncRetryPredicate = field(default_factory=AsyncRetryPredicate)

    def can_retry(self, current_attempts: int) -> bool:
        """See :meth:`AsyncRetryStrategy.can_retry`."""
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """See :meth:`AsyncRetryStrategy.get_backoff_time_millis`."""
        try:
            return int(min(self.longest_millis, self.first_millis * self.multiplier ** (current_attempts - 1)))
        except OverflowError:
            return self.longest_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        """See :meth:`AsyncRetryStrategy.get_retry_predicate`."""
        return self.predicate


NO_RETRY_STRATEGY: AsyncRetryStrategy = BackoffRetryStrategy(0, 0, 0)
"""The strategy that repeats no request."""
