"""Spark jobs by their owner: job groups, scheduler pools, cancellation, and thread properties for worker threads."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import SparkContext

from airflow_pipelines.engine.spark.driver_tasks import cancel_tasks, enter_group, group_of_this_thread
from airflow_pipelines.engine.spark.internals import JavaObject, jvm, scala_context, singleton


def begin_jobs(context: SparkContext, group: str, description: str, pool: str | None = None) -> None:
    """Assign the jobs that this thread starts from now on to a group.

    Cancellation also interrupts the threads of tasks: some wait for a Python function or a file and do not check for cancellation.

    :param group: the group's name, by which :func:`cancel_jobs` finds its jobs
    :param description: the description for people
    :param pool: the scheduler pool of the jobs (see ``scheduler.xml``); None leaves the thread's own
    """
    context.setJobGroup(group, description, interruptOnCancel=True)
    enter_group(group)
    if pool is not None:
        context.setLocalProperty("spark.scheduler.pool", pool)


def cancel_jobs(context: SparkContext, group: str) -> None:
    """Cancel the jobs of a group, running ones and those that its threads start later. May be called from any thread."""
    # PySpark's own cancelJobGroup cancels only running jobs; the thread would then start its next one.
    scala_context(context).cancelJobGroupAndFutureJobs(group)
    cancel_tasks(group)


def started_jobs(context: SparkContext) -> int:
    """Return the number of jobs that the application has started so far."""
    return int(scala_context(context).dagScheduler().numTotalJobs())


@dataclass(frozen=True, slots=True)
class ThreadProperties:
    """The Spark properties of one thread, including its job group and pool, for threads that work for it."""

    _spark: JavaObject
    _properties: JavaObject
    _group: str | None

    @classmethod
    def of_this_thread(cls, context: SparkContext) -> ThreadProperties:
        """Return a copy of the calling thread's properties."""
        spark = scala_context(context)
        return cls(spark, spark.getLocalProperties().clone(), group_of_this_thread())

    def apply(self) -> None:
        """Set the properties in the calling thread.

        Each thread gets a copy, because Spark changes a thread's properties in place.
        """
        self._spark.setLocalProperties(self._properties.clone())
        enter_group(self._group)


def running_task(context: SparkContext, stage: int) -> int | None:
    """Return the id of a task of a stage that occupies a core, or None if there is none."""
    store = scala_context(context).statusStore()
    java = jvm(context)
    running = java.java.util.ArrayList()
    running.add(java.org.apache.spark.status.api.v1.TaskStatus.RUNNING)
    attempt = store.lastStageAttempt(stage).attemptId()
    tasks = store.taskList(stage, attempt, 0, 1, singleton(java.scala, "None"), True, running)
    return int(tasks.apply(0).taskId()) if tasks.size() else None


def restart_task(context: SparkContext, task: int, reason: str) -> None:
    """Kill a task, so that Spark restarts it later and its core is free.

    :param context: any context of the application
    :param task: the id of the task's attempt
    :param reason: the reason for Spark's log
    """
    scala_context(context).killTaskAttempt(task, True, reason)
