"""A watch over running ad-hoc requests: they give way to the pipelines' steps, and end before the JVM is out of memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from pyspark import SparkContext

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.spark.application import MemoryUsage, OldGeneration, collect_garbage
from airflow_pipelines.engine.spark.jobs import restart_task, running_task

LOOK_S: Final = 0.1

logger = logging.getLogger(__name__)


class Cancellable(Protocol):
    """A running request."""

    @property
    def group(self) -> str:
        """The name of its Spark job group."""
        ...

    def cancel(self, problem: Problem) -> None:
        """Cancel it for a reason."""
        ...


class QueryWatch:
    """A watch over a host's Spark application, ten times a second while a request runs in it.

    :param heap_share: the share of the JVM's memory in use above which all requests are cancelled
    """

    def __init__(self, context: SparkContext, heap_share: float) -> None:
        self._context = context
        self._heap_share = heap_share
        self._lock = threading.Lock()
        self._running: list[Cancellable] = []
        self._heap: OldGeneration | None = None
        self._waiting: frozenset[int] = frozenset()
        self._at_full: list[Cancellable] = []

    @contextmanager
    def over(self, query: Cancellable) -> Iterator[None]:
        """Watch a request within the block."""
        with self._lock:
            self._running.append(query)
            if len(self._running) == 1:
                threading.Thread(target=self._watch, name="query watch", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(query)

    def _watch(self) -> None:
        ended = threading.Event()
        while True:
            ended.wait(LOOK_S)
            with self._lock:
                queries = list(self._running)
            if not queries:
                return
            try:
                # Looking up the memory pools takes many calls, and most requests end before the first check.
                self._heap = self._heap or OldGeneration(self._context)
                self._save_memory(queries, self._heap)
                self._make_way(queries)
            except Exception:
                # Watching is a help; the requests have other limits.
                logger.exception("The ad-hoc requests could not be looked after; it is tried again")

    def _save_memory(self, queries: list[Cancellable], heap: OldGeneration) -> None:
        """Cancel all requests if the memory is full even after a garbage collection: nobody can tell which request uses it.

        The tasks of a request that has failed hold their memory until they notice. So the memory has to be full at two checks
        during a request.
        """
        usage = self._full_memory(heap)
        before, self._at_full = self._at_full, [] if usage is None else queries
        cancelled = [query for query in queries if any(query is each for each in before)]
        if usage is None or not cancelled:
            return
        text = f"{usage.used >> 20} of {usage.most >> 20} MiB"
        logger.warning("%s of the JVM's memory are in use: %d ad-hoc requests are cancelled", text, len(cancelled))
        for query in cancelled:
            query.cancel(
                Problem(
                    ErrorCode.AD_HOC_QUERY_ERROR,
                    f"The request was cancelled: the host's memory is used up ({text}), and ad-hoc requests give way to pipelines. "
                    "Ask for less, or give hosts more memory (AIRFLOW_PIPELINES_DRIVER_MEMORY).",
                )
            )

    def _full_memory(self, heap: OldGeneration) -> MemoryUsage | None:
        """Return the memory in use after a garbage collection if it is full, None if it is not."""
        if not self._is_full(heap.usage()):
            return None
        # The last collection may have been during a request that has failed since.
        collect_garbage(self._context)
        usage = heap.usage()
        return usage if self._is_full(usage) else None

    def _is_full(self, usage: MemoryUsage) -> bool:
        return usage.most > 0 and usage.used > self._heap_share * usage.most

    def _make_way(self, queries: list[Cancellable]) -> None:
        """Free a core for a step if requests hold all of them: Spark itself takes none away. The task is run again later."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for query in queries for job in tracker.getJobIdsForGroup(query.group)]
        theirs = {stage for job in jobs if job is not None for stage in job.stageIds}
        active = set(tracker.getActiveStageIds())
        infos = {stage: tracker.getStageInfo(stage) for stage in active - theirs}
        waiting = frozenset(
            stage
            for stage, info in infos.items()
            if info is not None and not info.numActiveTasks and info.numCompletedTasks < info.numTasks
        )
        # A stage must wait at two checks, because Spark's status is a little late.
        starved, self._waiting = waiting & self._waiting, waiting
        if not starved:
            return
        for stage in sorted(active & theirs):
            task = running_task(self._context, stage)
            if task is not None:
                logger.info("task %d of an ad-hoc request makes way for a step", task)
                restart_task(self._context, task, "a pipeline's step needs the core")
                return
