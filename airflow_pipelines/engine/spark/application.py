"""The Spark application of this process as a whole: its health, its process, and its JVM's memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark import SparkContext

from airflow_pipelines.engine.spark.internals import JavaObject, jvm, scala_context, was_closed


def application_problem(context: SparkContext) -> str | None:
    """Return the reason why the application can no longer run anything, or None if it can.

    :raises Exception: any error that keeps the JVM from answering
    """
    if was_closed(context):
        return "its SparkContext was stopped"
    scala = scala_context(context)
    if scala.isStopped():
        return "its SparkContext was stopped"
    # An error that Spark does not catch, such as out of memory, ends only the thread that schedules all tasks.
    if not scala.dagScheduler().eventProcessLoop().isActive():
        return "its Spark scheduler has ended"
    return None


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """The size of memory in bytes: ``used`` of at most ``most`` (0 if the JVM knows no limit)."""

    used: int
    most: int


class OldGeneration:
    """The JVM's memory pools for long-lived objects, which tell how much memory the last collection left in use."""

    def __init__(self, context: SparkContext) -> None:
        """:param context: any context of the application; the pools are looked up once."""
        self._pools: Sequence[JavaObject] = _old_pools(context)

    def usage(self) -> MemoryUsage:
        """Return the memory in use after the last garbage collection; nothing before the first one."""
        usages = [pool.getCollectionUsage() for pool in self._pools]
        return MemoryUsage(sum(after.getUsed() for after in usages), sum(max(after.getMax(), 0) for after in usages))


def _old_pools(context: SparkContext) -> Sequence[JavaObject]:
    pools = jvm(context).java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return [pool for pool in pools if any(word in pool.getName() for word in ("Old", "Tenured")) and pool.getCollectionUsage()]


def collect_garbage(context: SparkContext) -> None:
    """Run a full garbage collection of the JVM, and wait for it."""
    jvm(context).java.lang.System.gc()


def heap_used(context: SparkContext) -> int:
    """Return the number of bytes of the JVM's heap that are in use."""
    runtime = jvm(context).java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def most_heap(context: SparkContext) -> int:
    """Return the maximum size of the JVM's heap in bytes."""
    return int(jvm(context).java.lang.Runtime.getRuntime().maxMemory())


def jvm_process(context: SparkContext) -> int:
    """Return the process id of the JVM."""
    return int(jvm(context).java.lang.ProcessHandle.current().pid())


def log_no_java_calls() -> None:
    """Keep py4j from logging each failed call to the JVM with its Java stack. The caller gets it as an exception."""
    logging.getLogger("py4j").setLevel(logging.WARNING)
