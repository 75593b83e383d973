"""The processor time of a thread in Spark's driver, in Python and in the JVM together."""

from __future__ import annotations

import time

from pyspark import SparkContext

from airflow_pipelines.engine.spark.internals import jvm


def thread_seconds(context: SparkContext) -> float:
    """Return the processor time of the calling thread, and of the JVM's thread that serves its calls, in seconds.

    PySpark gives each thread a JVM thread of its own, so the difference of two results is the time that the thread has used in
    between.

    :param context: the application
    """
    machine = jvm(context)
    threads = machine.java.lang.management.ManagementFactory.getThreadMXBean()
    # The JVM hides the bean's class; its interface is accessible.
    interface = machine.java.lang.Class.forName("java.lang.management.ThreadMXBean")
    nothing = machine.java.util.ArrayList().toArray()
    asked = interface.getMethod("getCurrentThreadCpuTime", machine.java.lang.Class.forName("java.lang.Object").getInterfaces())
    return time.thread_time() + max(0, int(asked.invoke(threads, nothing))) / 1e9
