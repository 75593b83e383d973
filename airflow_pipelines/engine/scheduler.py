"""The scheduler of a step's operators: each runs after its inputs, independent ones at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from pyspark import SparkContext

from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.spark.jobs import ThreadProperties

Action = Callable[[Operator[Any]], None]
Condition = Callable[[Operator[Any]], bool]


class Workers:
    """The threads that evaluate one circuit's operators. They start when two operators first have work to do at the same time."""

    def __init__(self, context: SparkContext) -> None:
        """Create workers with one thread per core of an application, within bounds."""
        self._context = context
        self._threads = max(2, min(8, context.defaultParallelism))
        self._pool: ThreadPoolExecutor | None = None

    def run(self, operators: Sequence[Operator[Any]], due: Condition, evaluate: Action) -> None:
        """Call ``evaluate`` for every operator for which ``due`` holds, once all that it reads is evaluated.

        When one fails, no other is begun. The error of the first failed one is raised after those in progress have ended.

        :param operators: the operators, each after its inputs
        :param due: a predicate: True if an operator has work to do; called when all that it reads is evaluated
        :param evaluate: the function that evaluates an operator, in any thread
        """
        waiting: dict[str, Operator[Any]] = {operator.relation: operator for operator in operators}
        running: dict[Future[None], str] = {}
        failed: dict[str, BaseException] = {}
        properties: ThreadProperties | None = None
        while waiting or running:
            ready = [] if failed else _find_ready(waiting, set(running.values()), due)
            if failed:
                waiting.clear()
            if len(ready) == 1 and not running:
                evaluate(waiting.pop(ready[0]))
                continue
            for name in ready:
                # They include the job group, by which a running step is cancelled.
                properties = properties or ThreadProperties.of_this_thread(self._context)
                running[self._ensure_pool().submit(self._run_with, properties, evaluate, waiting.pop(name))] = name
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                name, error = running.pop(future), future.exception()
                if error is not None:
                    failed[name] = error
        for operator in operators:
            if operator.relation in failed:
                raise failed[operator.relation]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    def _ensure_pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="stage")
        return self._pool

    @staticmethod
    def _run_with(properties: ThreadProperties, evaluate: Action, operator: Operator[Any]) -> None:
        properties.apply()
        evaluate(operator)


def _find_ready(waiting: dict[str, Operator[Any]], running: set[str], due: Condition) -> list[str]:
    """Return the operators whose inputs have all been evaluated. Those that are not due are removed from ``waiting``."""
    ready: list[str] = []
    for name, operator in list(waiting.items()):
        # Operators come after their inputs, so one pass finds all.
        if any(read != name and (read in waiting or read in running) for read in operator.reads):
            continue
        if due(operator):
            ready.append(name)
        else:
            del waiting[name]
    return ready
