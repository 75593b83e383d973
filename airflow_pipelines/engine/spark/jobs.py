"""Spark jobs by who started them: job groups, scheduler pools, cancellation, and the properties that threads hand on."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import SparkContext

from airflow_pipelines.engine.spark.driver_tasks import cancel_tasks, enter_group, group_of_this_thread
from airflow_pipelines.engine.spark.internals import JavaObject, jvm, scala_context, singleton


def begin_jobs(context: SparkContext, group: str, description: str, pool: str | None = None) -> None:
    """Let the jobs that this thread starts from now on belong to a group.

    Cancelling interrupts the threads of tasks as well: some wait for a Python function or a file and do not look whether they were
    cancelled.

    :param group: the group's name, by which :func:`cancel_jobs` finds its jobs
    :param description: what a person reads
    :param pool: the scheduler pool of the jobs (see ``scheduler.xml``); None leaves the thread's own
    """
    context.setJobGroup(group, description, interruptOnCancel=True)
    enter_group(group)
    if pool is not None:
        context.setLocalProperty("spark.scheduler.pool", pool)


def cancel_jobs(context: SparkContext, group: str) -> None:
    """Cancel the jobs of a group, those under way and those that its threads start later. From any thread."""
    # PySpark's own cancelJobGroup cancels only jobs under way; the thread would then start its next one.
    scala_context(context).cancelJobGroupAndFutureJobs(group)
    cancel_tasks(group)


def started_jobs(context: SparkContext) -> int:
    """The number of jobs that the application has started so far."""
    return int(scala_context(context).dagScheduler().numTotalJobs())


@dataclass(frozen=True, slots=True)
class ThreadProperties:
    """The Spark properties of one thread, its job group and pool among them, for threads that work for it."""

    _spark: JavaObject
    _properties: JavaObject
    _group: str | None

    @classmethod
    def of_this_thread(cls, context: SparkContext) -> ThreadProperties:
        """A copy of the calling thread's properties."""
        spark = scala_context(context)
        return cls(spark, spark.getLocalProperties().clone(), group_of_this_thread())

    def apply(self) -> None:
        """Give them to the calling thread. Each thread gets a copy: Spark changes a thread's properties in place."""
        self._spark.setLocalProperties(self._properties.clone())
        enter_group(self._group)


def running_task(context: SparkContext, stage: int) -> int | None:
    """The id of a task of a stage that has a core, None when none has."""
    store = scala_context(context).statusStore()
    java = jvm(context)
    running = java.java.util.ArrayList()
    running.add(java.org.apache.spark.status.api.v1.TaskStatus.RUNNING)
    attempt = store.lastStageAttempt(stage).attemptId()
    tasks = store.taskList(stage, attempt, 0, 1, singleton(java.scala, "None"), True, running)
    return int(tasks.apply(0).taskId()) if tasks.size() else None


def restart_task(context: SparkContext, task: int, reason: str) -> None:
    """Take a task's core away; Spark begins the task again later.

    :param context: any context of the application
    :param task: the id of the task's attempt
    :param reason: for Spark's log
    """
    scala_context(context).killTaskAttempt(task, True, reason)
