"""Results that come later."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class CompletableFuture(Future[T]):
    """A result that comes later: ``result()`` waits for it, ``done()`` says whether it is there."""

    @staticmethod
    def completed(value: R) -> CompletableFuture[R]:
        """A result that is there.

        :param value: the result
        :returns: the future
        """
        future: CompletableFuture[R] = CompletableFuture()
        future.set_result(value)
        return future

    @staticmethod
    def of(future: Future[T], convert: Callable[[T], R]) -> CompletableFuture[R]:
        """The result of another future, converted.

        :param future: the other one
        :param convert: called with its result
        :returns: a future with what that returned, or with the first error
        """
        converted: CompletableFuture[R] = CompletableFuture()

        def finish(done: Future[T]) -> None:
            try:
                converted.set_result(convert(done.result()))
            except BaseException as error:  # noqa: BLE001 (whatever it is belongs to who waits)
                converted.set_exception(error)

        future.add_done_callback(finish)
        return converted
