"""An operator that waits for the answers of other systems, with many requests at the same time.

A step waits for all requests of its elements, so none is under way between two steps: a snapshot need not hold any, a restart asks
again about the elements that it reads again, and watermarks keep their places between elements.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from airflow_pipelines.streams.async_functions import AsyncFunction, AsyncRetryStrategy
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.functions import own_copy
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec
from airflow_pipelines.streams.operators.collector import Collector
from airflow_pipelines.streams.operators.life import FunctionLife

T = TypeVar("T")
_CLOSE_S: Final = 5.0
"""The maximum time in seconds that cancelled requests may take to end."""
_log = logging.getLogger("airflow_pipelines.streams")


@dataclass(frozen=True)
class AsyncWait(OperatorSpec):
    """An operator that asks about each element.

    :param function: the function object
    :param timeout_ms: the time limit of a request with all its attempts, in ms
    :param capacity: the maximum number of requests at the same time in a task
    :param is_ordered: True if results come in the order of the elements, False if they come in the order of the answers
    :param retries: the strategy by which requests are repeated
    """

    function: AsyncFunction[Any, Any]
    timeout_ms: int
    capacity: int
    is_ordered: bool
    retries: AsyncRetryStrategy
    kind = "Async Wait"

    def create(self) -> Operator:
        """Create one parallel instance."""
        return AsyncWaitOperator(self)

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function and the strategy."""
        return {"function": self.function, "retry strategy": self.retries}


class AsyncWaitOperator(Operator):
    """A parallel instance, whose requests run in an event loop of its own.

    :param spec: its specification
    """

    def __init__(self, spec: AsyncWait) -> None:
        super().__init__()
        self._spec = spec
        self._function = own_copy(spec.function)
        self._retries = spec.retries
        self._requests = _EventLoop()
        self._life = FunctionLife(self._function, self._run_if_asynchronous)

    def open(self, state: Any | None) -> None:
        """Open the function."""
        self._life.open(self.context)
        self._collector = Collector(self.context, self.output)

    def _run_if_asynchronous(self, result: Any) -> None:
        """Run what ``open`` or ``close`` returned, if they are asynchronous, such as for a client that is closed so."""
        if inspect.iscoroutine(result):
            self._requests.run(result)

    def process(self, batch: Batch, port: int) -> None:
        """Ask about all records, and emit the results."""
        answers = self._requests.run(self._ask_all(batch.values))
        if self._spec.is_ordered:
            answers.sort(key=lambda answer: answer[0])
        for place, results in answers:
            value = batch.values[place]
            try:
                self._collector.add_all(results, batch.timestamps[place])
            except Exception as error:
                note_element(error, self.name, value)
                raise
        self._collector.flush()

    async def _ask_all(self, values: list[Any]) -> list[tuple[int, Iterable[Any]]]:
        """Return the places of elements with the results for them, in the order of the answers."""
        room = asyncio.Semaphore(self._spec.capacity)
        answers: list[tuple[int, Iterable[Any]]] = []

        async def ask(place: int, value: Any) -> None:
            async with room:
                try:
                    results = await self._ask(value)
                except Exception as error:
                    note_element(error, self.name, value)
                    raise
            answers.append((place, () if results is None else results))

        try:
            # The first failure cancels the other requests.
            async with asyncio.TaskGroup() as requests:
                for place, value in enumerate(values):
                    requests.create_task(ask(place, value))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        return answers

    async def _ask(self, value: Any) -> Iterable[Any] | None:
        try:
            async with asyncio.timeout(self._spec.timeout_ms / 1000) as limit:
                return await self._ask_with_retries(value)
        except TimeoutError:
            if not limit.expired():
                # It is an error of the function itself.
                raise
            return self._function.timeout(value)

    async def _ask_with_retries(self, value: Any) -> Iterable[Any] | None:
        predicate = self._retries.get_retry_predicate()
        is_refused, is_passing = predicate.result_predicate(), predicate.exception_predicate()
        attempt = 1
        while True:
            may_retry = self._retries.can_retry(attempt)
            try:
                results = await self._invoke(value)
            except Exception as error:
                if not (may_retry and is_passing is not None and is_passing(error)):
                    raise
            else:
                if results is not None and not hasattr(results, "__iter__"):
                    raise StreamProgramError(
                        f"async_invoke() returned {results!r}. It must return a list of results, or None for no result."
                    )
                results = [*results] if results is not None else []
                if not (may_retry and is_refused is not None and is_refused(results)):
                    return results
            await asyncio.sleep(self._retries.get_backoff_time_millis(attempt) / 1000)
            attempt += 1

    async def _invoke(self, value: Any) -> Any:
        """Call the function. What would end a task without a result, or the event loop, becomes an error."""
        try:
            return await self._function.async_invoke(value)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # The time limit has passed, or another request has failed.
                raise
            raise StreamProgramError("async_invoke() was cancelled from within: what it waited for was cancelled.") from error
        except (SystemExit, KeyboardInterrupt) as error:
            raise StreamProgramError(f"async_invoke() raised {type(error).__name__}: raise an error to end the program.") from error

    def close(self) -> None:
        """Close the function, and the event loop with what is left in it."""
        try:
            self._life.close()
        finally:
            self._requests.close()


class _EventLoop:
    """An event loop in a thread of its own, which starts with the first use: the calling thread may have a running loop itself."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and return its result."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="async-requests", daemon=True)
            self._thread.start()
        running = asyncio.run_coroutine_threadsafe(_hold_error(work), self._loop)
        try:
            result, error = running.result()
        except BaseException:
            # The program is interrupted while it waits.
            running.cancel()
            raise
        if error is not None:
            raise error
        return result  # type: ignore[return-value]

    def close(self) -> None:
        """Cancel what still runs, and end the thread."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result(_CLOSE_S)
        except FutureTimeoutError:
            _log.warning(
                "A request has not ended %g s after it was cancelled; the program goes on without waiting for it", _CLOSE_S
            )
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _hold_error(work: Coroutine[Any, Any, T]) -> tuple[T | None, Exception | None]:
    """Return the result of a coroutine, or its error: a future would replace a ``TimeoutError`` by one without its notes."""
    try:
        return await work, None
    except Exception as error:  # noqa: BLE001 (raised by the caller)
        return None, error


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
