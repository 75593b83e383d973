"""The processor time of what a thread does in Spark's driver, in Python and in the JVM together."""

from __future__ import annotations

import time

from pyspark import SparkContext

from airflow_pipelines.engine.spark.internals import jvm


def thread_seconds(context: SparkContext) -> float:
    """Return the processor time of the calling thread, and of the JVM's thread that serves its calls, in seconds.

    PySpark gives each thread one of the JVM for itself, so that the difference of two answers is what the thread did meanwhile.

    :param context: the application
    """
    machine = jvm(context)
    threads = machine.java.lang.management.ManagementFactory.getThreadMXBean()
    # Its class is one that the JVM shows to nobody; the interface may be asked.
    interface = machine.java.lang.Class.forName("java.lang.management.ThreadMXBean")
    nothing = machine.java.util.ArrayList().toArray()
    asked = interface.getMethod("getCurrentThreadCpuTime", machine.java.lang.Class.forName("java.lang.Object").getInterfaces())
    return time.thread_time() + max(0, int(asked.invoke(threads, nothing))) / 1e9
