"""Tasks that run in the driver, in the thread that asks for their rows, instead of under Spark's scheduler.

A plan of one task is an iterator over its rows. Running it through the scheduler takes 10 to 20 ms, however few rows there are.
Here the calling thread becomes the task: it gets a task context with memory of its own, as an executor would provide it, reads the
iterator, and releases the memory.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from cachetools import LRUCache
from pyspark import SparkContext

from airflow_pipelines.engine.spark.internals import JavaObject, jvm, singleton

_REMEMBERED = 1_000
"""The number of cancelled groups that are remembered, the same as Spark's own."""
_FIRST_ID = 1 << 48
"""The id of the first task.

Spark's scheduler counts its tasks from zero; memory is accounted for by task id, so no two may be equal.
"""
_begun = 0
_thread = threading.local()
_lock = threading.Lock()
_running: dict[int, _Running] = {}
_cancelled: LRUCache[str, bool] = LRUCache(_REMEMBERED)


class TaskCancelledError(Exception):
    """The error of a task whose job group was cancelled."""


def enter_group(group: str | None) -> None:
    """Assign the tasks of this thread to a job group from now on.

    :param group: the group's name; None for none
    """
    _thread.group = group


def group_of_this_thread() -> str | None:
    """Return the job group of this thread's tasks."""
    group: str | None = getattr(_thread, "group", None)
    return group


def cancel_tasks(group: str) -> None:
    """Cancel the tasks of a group, running ones and those that its threads begin later. May be called from any thread.

    A running task ends where it waits, or where Spark checks for cancellation.

    :param group: the group's name
    """
    with _lock:
        _cancelled[group] = True
        for running in [each for each in _running.values() if each.group == group]:
            running.task.markInterrupted("its job group was cancelled")
            running.thread.interrupt()


def begun_tasks() -> int:
    """Return the number of tasks that this process has begun so far."""
    with _lock:
        return _begun


@contextmanager
def driver_task(context: SparkContext, properties: JavaObject) -> Iterator[JavaObject]:
    """Make the calling thread a task within the block.

    :param context: the application
    :param properties: a java.util.Properties with the settings of the session whose plan the task runs
    :returns: the Java TaskContext
    :raises TaskCancelledError: when the thread's job group was cancelled, before the block or within it
    """
    global _begun
    java, group = _classes(context), group_of_this_thread()
    with _lock:
        _begun += 1
        number = _FIRST_ID + _begun
    memory = java.memory(java.manager, number)
    task = java.task(0, 0, 0, number, 0, 1, memory, properties, java.metrics_system, java.metrics, 1, java.no_resources)
    with _lock:
        _refuse_cancelled(group)
        if group is not None:
            _running[number] = _Running(group, task, _java_thread(java))
    with ExitStack() as afterwards:
        # The callbacks run in reverse order, each even if one before it fails.
        afterwards.callback(java.tasks.unset)
        afterwards.callback(memory.cleanUpAllAllocatedMemory)
        afterwards.callback(task.markTaskCompleted, java.none)
        afterwards.callback(_end, java, number)
        java.tasks.setTaskContext(task)
        try:
            yield task
        except Exception as error:
            if _is_cancelled(group):
                raise TaskCancelledError(f"cancelled, with the job group {group}") from error
            raise


def _end(java: _Classes, number: int) -> None:
    """End a task, so that no cancellation reaches it or the next wait of its thread."""
    with _lock:
        ended = _running.pop(number, None)
    if ended is not None and _is_cancelled(ended.group):
        java.thread.interrupted()


def _is_cancelled(group: str | None) -> bool:
    with _lock:
        return group in _cancelled


def _refuse_cancelled(group: str | None) -> None:
    if group in _cancelled:
        raise TaskCancelledError(f"cancelled, with the job group {group}")


@dataclass(frozen=True, slots=True)
class _Running:
    """A running task, and its Java thread."""

    group: str
    task: JavaObject
    thread: JavaObject


def _java_thread(java: _Classes) -> JavaObject:
    """Return the JVM thread that serves this Python thread. It is the same for as long as both live."""
    known = getattr(_thread, "java", None)
    if known is None or known[0] is not java:
        known = _thread.java = (java, java.thread.currentThread())
    return known[1]


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes and objects of the JVM, looked up once: each part of a name costs a call."""

    memory: JavaObject
    manager: JavaObject
    task: JavaObject
    tasks: JavaObject
    metrics_system: JavaObject
    metrics: JavaObject
    no_resources: JavaObject
    none: JavaObject
    thread: JavaObject


@functools.lru_cache(maxsize=4)
def _classes(context: SparkContext) -> _Classes:
    java = jvm(context)
    spark = java.org.apache.spark
    environment = singleton(spark, "SparkEnv").get()
    return _Classes(
        memory=spark.memory.TaskMemoryManager,
        manager=environment.memoryManager(),
        task=spark.TaskContextImpl,
        tasks=singleton(spark, "TaskContext"),
        metrics_system=environment.metricsSystem(),
        # Nobody reads them, so that all tasks may count in the same ones.
        metrics=singleton(spark.executor, "TaskMetrics").empty(),
        no_resources=singleton(java.scala.collection.immutable, "Map").empty(),
        none=singleton(java.scala, "None"),
        thread=java.java.lang.Thread,
    )
