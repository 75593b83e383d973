"""Futures of results."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class CompletableFuture(Future[T]):
    """A future of a result: ``result()`` waits for it, and ``done()`` returns True if it is available.

    >>> from airflow_pipelines.datastream.common import CompletableFuture
    >>> savepoint = CompletableFuture()
    >>> name = CompletableFuture.of(savepoint, lambda path: path.rpartition("/")[2])
    >>> savepoint.set_result("/savepoints/monday")
    >>> name.done(), name.result(timeout=10)
    (True, 'monday')
    """

    @staticmethod
    def completed(value: R) -> CompletableFuture[R]:
        """Return a future that has its result already.

        :param value: the result
        :returns: the future
        """
        future: CompletableFuture[R] = CompletableFuture()
        future.set_result(value)
        return future

    @staticmethod
    def of(future: Future[T], convert: Callable[[T], R]) -> CompletableFuture[R]:
        """Return a future with the converted result of another future.

        :param future: the other future
        :param convert: the function that converts its result
        :returns: a future with the converted result, or with the first error
        """
        converted: CompletableFuture[R] = CompletableFuture()

        def finish(done: Future[T]) -> None:
            try:
                converted.set_result(convert(done.result()))
            except BaseException as error:  # noqa: BLE001 (whatever it is belongs to who waits)
                converted.set_exception(error)

        future.add_done_callback(finish)
        return converted
