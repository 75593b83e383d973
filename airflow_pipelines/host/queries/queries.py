"""The ad-hoc requests of one pipeline: a limited number at once, each within its limits, none for a client that has gone."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pyspark import SparkContext

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.spark.collecting import FrameCollector
from airflow_pipelines.engine.spark.jobs import begin_jobs, cancel_jobs
from airflow_pipelines.engine.spark.result_connection import AbortedError, ResultConnection, ResultTooLargeError
from airflow_pipelines.host.queries.body_queue import BodyQueue, StalledError
from airflow_pipelines.host.queries.query_watch import QueryWatch

T = TypeVar("T")

POOL: Final = "queries"
"""The scheduler pool of ad-hoc requests: see engine/spark/scheduler.xml."""
HELD_BYTES: Final = 4 << 20
"""The number of bytes before which a failure can still replace the answer: they are held back, unless the body is complete."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of ad-hoc requests.

    :param time_s: the seconds from a request's arrival to the beginning of its result, then from one part of the result to the
        next, and for its client to take one
    :param result_bytes: the bytes in Arrow's form of rows that have to be collected: rows to insert or delete
    :param at_once: the number of requests of one pipeline that run at the same time; others wait
    :param waiting: the number of requests of one pipeline that may wait
    :param heap_share: the share of the JVM's memory in use above which requests are cancelled
    """

    time_s: float = 300.0
    result_bytes: int = 512 << 20
    at_once: int = 4
    waiting: int = 256
    heap_share: float = 0.9


DEFAULT_QUERY_LIMITS = QueryLimits()


class Query:
    """An ad-hoc request."""

    def __init__(self, context: SparkContext, group: str, limits: QueryLimits, held_bytes: int) -> None:
        self.group = group
        self.problem: Problem | None = None
        """The reason why it was cancelled, or None if it was not."""
        self.result_bytes = limits.result_bytes
        self.connection = ResultConnection()
        self.collector = FrameCollector(self.connection, limits.result_bytes)
        self.body = BodyQueue(limits.time_s, held_bytes)
        self._context = context
        self._lock = threading.Lock()

    def cancel(self, problem: Problem) -> None:
        """Cancel it, with its Spark jobs and those that it would start next; the first reason counts. Any thread may call it."""
        with self._lock:
            if self.problem is not None:
                return
            self.problem = problem
        self.connection.abort()
        self.body.abort()
        cancel_jobs(self._context, self.group)

    def begin(self, description: str) -> None:
        """Mark this thread's Spark jobs as this request's."""
        begin_jobs(self._context, self.group, description, POOL)


@dataclass(frozen=True, slots=True)
class QueryAnswer(Generic[T]):
    """The answer to a request.

    :param head: the part that has to be known before anything is sent
    :param body: the bytes to send, made part by part
    """

    head: T
    body: Iterator[bytes]


class QueryReply(Generic[T]):
    """An answer whose body has begun to arrive, or is complete.

    :param head: the head of the answer
    :param parts: the parts still to be sent
    :param cancel: ends the request
    """

    def __init__(self, head: T, parts: AsyncIterator[bytes], cancel: Callable[[], None]) -> None:
        self.head = head
        self.parts = parts
        self.cancel = cancel


class Queries:
    """The ad-hoc requests of one incarnation, each run in a thread of a pool.

    :param name: the pipeline's name
    :param group: the prefix of their Spark job groups
    """

    def __init__(self, context: SparkContext, name: str, group: str, limits: QueryLimits, watch: QueryWatch) -> None:
        self._context = context
        self._name = name
        self._group = group
        self._limits = limits
        self._watch = watch
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._queries: set[Query] = set()
        self._closed: Problem | None = None
        self._threads = ThreadPoolExecutor(limits.at_once, thread_name_prefix=f"query {name}")

    async def run(
        self, work: Callable[[Query], QueryAnswer[T]], left: Callable[[], Awaitable[object]], *, holds: bool = True
    ) -> QueryReply[T]:
        """Answer a request in another thread; cancel it if the client leaves first or the time is up.

        :param work: computes the answer; the body of the answer is made in the same thread
        :param left: waits until the client has gone
        :param holds: True if the beginning of the body is held back for a while, so that a failure can replace the answer
        :returns: the answer, as soon as there is something to send
        :raises Problem: if the request is refused or cancelled, with the reason
        """
        query = self._admit(HELD_BYTES if holds else 1)
        heads: list[T] = []
        begun = asyncio.ensure_future(query.body.wait_for_data())
        gone = asyncio.ensure_future(left())
        self._threads.submit(self._carry_out, query, work, heads)
        try:
            waited: set[asyncio.Future[Any]] = {begun, gone}
            await asyncio.wait(waited, timeout=self._limits.time_s, return_when=asyncio.FIRST_COMPLETED)
            if not begun.done():
                raise self._make_disconnect_problem() if gone.done() else self._late()
            begun.result()
        except BaseException as failure:
            self._cancel_soon(query, failure if isinstance(failure, Problem) else self._make_disconnect_problem())
            raise
        finally:
            gone.cancel()
            begun.cancel()
        return QueryReply(heads[0], self._parts(query), lambda: self._cancel_soon(query, self._make_disconnect_problem()))

    def cancel(self, problem: Problem) -> None:
        """Cancel all current requests."""
        with self._lock:
            queries = list(self._queries)
        for query in queries:
            query.cancel(problem)

    def close(self, problem: Problem) -> None:
        """Cancel all requests, and take no more."""
        with self._lock:
            self._closed = problem
        self.cancel(problem)
        self._threads.shutdown(wait=False)

    def _admit(self, held_bytes: int) -> Query:
        with self._lock:
            if self._closed is not None:
                raise self._closed
            if len(self._queries) >= self._limits.at_once + self._limits.waiting:
                raise Problem(
                    ErrorCode.API_CONNECTION_LIMIT,
                    f"{len(self._queries)} ad-hoc requests of the pipeline {self._name} run or wait already. Try again later.",
                )
            query = Query(self._context, f"{self._group}-query-{next(self._numbers)}", self._limits, held_bytes)
            self._queries.add(query)
            return query

    def _carry_out(self, query: Query, work: Callable[[Query], QueryAnswer[T]], heads: list[T]) -> None:
        """Do the work of a request, in a thread of the pool."""
        failure: Exception | None = None
        try:
            if query.problem is not None:
                raise query.problem
            with self._watch.over(query):
                query.begin(f"ad-hoc request of pipeline {self._name}")
                answer = work(query)
                heads.append(answer.head)
                for part in answer.body:
                    query.body.put(part)
        except ResultTooLargeError:
            failure = self._too_large()
            query.cancel(failure)
        except StalledError:
            failure = self._make_stalled_problem()
            query.cancel(failure)
        except AbortedError:
            failure = query.problem or self._make_disconnect_problem()
        except Exception as error:  # noqa: BLE001  belongs to the request
            failure = query.problem or error
        finally:
            with self._lock:
                self._queries.discard(query)
            query.body.end(failure)

    async def _parts(self, query: Query) -> AsyncIterator[bytes]:
        """Yield the body of an answer as it arrives.

        :raises Problem: if the request ends before its answer does
        """
        try:
            while (part := await asyncio.wait_for(query.body.next(), self._limits.time_s)) is not None:
                yield part
        except TimeoutError:
            late = self._late()
            self._cancel_soon(query, late)
            raise late from None
        finally:
            if not query.body.ended:
                self._cancel_soon(query, self._make_disconnect_problem())

    def _cancel_soon(self, query: Query, reason: Problem) -> None:
        """Cancel a request without waiting: a JVM in trouble must not hold up other requests."""
        if not query.body.ended:
            threading.Thread(target=query.cancel, args=(reason,), name="cancel query", daemon=True).start()

    def _late(self) -> Problem:
        return Problem(
            ErrorCode.AD_HOC_QUERY_ERROR,
            f"The request was cancelled: it was not done within {self._limits.time_s:g} s, the limit for ad-hoc requests "
            "(AIRFLOW_PIPELINES_QUERY_TIMEOUT_S). Ask for less, or make it a view.",
        )

    def _make_stalled_problem(self) -> Problem:
        return Problem(
            ErrorCode.AD_HOC_QUERY_ERROR,
            f"The request was cancelled: its client took nothing of the result for {self._limits.time_s:g} s, the limit for ad-hoc "
            "requests (AIRFLOW_PIPELINES_QUERY_TIMEOUT_S).",
        )

    def _too_large(self) -> Problem:
        return Problem(
            ErrorCode.AD_HOC_QUERY_ERROR,
            f"The request was cancelled: its result has more than {self._limits.result_bytes} bytes, the limit for rows that are "
            "inserted or deleted (AIRFLOW_PIPELINES_QUERY_RESULT_BYTES). Change fewer rows at a time.",
        )

    def _make_disconnect_problem(self) -> Problem:
        return Problem(ErrorCode.AD_HOC_QUERY_ERROR, "The request was cancelled: its client has gone.")
