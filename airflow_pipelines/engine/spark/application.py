"""The Spark application of this process as a whole: whether it still works, its process, and its JVM's memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark import SparkContext

from airflow_pipelines.engine.spark.internals import JavaObject, jvm, scala_context, was_closed


def application_problem(context: SparkContext) -> str | None:
    """Why the application can run nothing any more; None while it can.

    :raises Exception: whatever keeps the JVM from answering
    """
    if was_closed(context):
        return "its SparkContext was stopped"
    scala = scala_context(context)
    if scala.isStopped():
        return "its SparkContext was stopped"
    # An error that Spark does not catch, such as one of memory, ends the thread that hands out all tasks, and nothing else.
    if not scala.dagScheduler().eventProcessLoop().isActive():
        return "its Spark scheduler has ended"
    return None


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Bytes of memory: ``used`` of at most ``most`` (0 when there is no limit that the JVM knows)."""

    used: int
    most: int


class OldGeneration:
    """The JVM's pools of memory for objects that live long, which are those that tell what the last collection left."""

    def __init__(self, context: SparkContext) -> None:
        """:param context: any context of the application; the pools are looked up once."""
        self._pools: Sequence[JavaObject] = _old_pools(context)

    def usage(self) -> MemoryUsage:
        """What was in use after the last garbage collection. Before the first one, nothing."""
        found = [pool.getCollectionUsage() for pool in self._pools]
        return MemoryUsage(sum(after.getUsed() for after in found), sum(max(after.getMax(), 0) for after in found))


def _old_pools(context: SparkContext) -> Sequence[JavaObject]:
    pools = jvm(context).java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return [pool for pool in pools if any(word in pool.getName() for word in ("Old", "Tenured")) and pool.getCollectionUsage()]


def collect_garbage(context: SparkContext) -> None:
    """Ask the JVM for a full garbage collection, and wait for it."""
    jvm(context).java.lang.System.gc()


def heap_used(context: SparkContext) -> int:
    """Bytes of the JVM's heap that are in use."""
    runtime = jvm(context).java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def most_heap(context: SparkContext) -> int:
    """Bytes that the JVM's heap may grow to."""
    return int(jvm(context).java.lang.Runtime.getRuntime().maxMemory())


def jvm_process(context: SparkContext) -> int:
    """The process id of the JVM."""
    return int(jvm(context).java.lang.ProcessHandle.current().pid())


def log_no_java_calls() -> None:
    """Keep py4j from logging each failed call to the JVM with its Java stack: the caller gets it as an exception."""
    logging.getLogger("py4j").setLevel(logging.WARNING)
