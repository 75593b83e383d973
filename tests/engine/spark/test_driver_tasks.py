"""Tasks in the threads that ask for rows: what they leave behind, and how they are cancelled."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.driver_tasks import TaskCancelledError, driver_task
from airflow_pipelines.engine.spark.internals import jvm, singleton
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.jobs import ThreadProperties, begin_jobs, cancel_jobs

pytestmark = pytest.mark.core

PATIENCE_S = 60.0


@pytest.fixture
def java(spark: SparkSession) -> Any:
    return jvm(spark.sparkContext)


@pytest.fixture
def no_settings(java: Any) -> Any:
    return java.java.util.Properties()


def begun(work: Callable[[], Any]) -> Future[Any]:
    """Something under way in a thread of its own."""
    threads = ThreadPoolExecutor(1)
    future = threads.submit(work)
    threads.shutdown(wait=False)
    return future


def current_task(java: Any) -> Any:
    return singleton(java.org.apache.spark, "TaskContext").get()


def test_a_thread_is_a_task_within_the_block_only(spark: SparkSession, java: Any, no_settings: Any) -> None:
    ids = set()
    for fails in (False, True, False):
        try:
            with driver_task(spark.sparkContext, no_settings) as task:
                ids.add(current_task(java).taskAttemptId())
                assert not task.isCompleted()
                if fails:
                    raise ValueError("of the block")
        except ValueError:
            assert fails
        assert current_task(java) is None
        assert task.isCompleted()
    assert len(ids) == 3, "memory is accounted for by the id"


def test_memory_that_a_task_took_is_given_back(spark: SparkSession, java: Any, no_settings: Any) -> None:
    manager = singleton(java.org.apache.spark, "SparkEnv").get().memoryManager()
    mode = java.org.apache.spark.memory.MemoryMode.ON_HEAP
    with driver_task(spark.sparkContext, no_settings) as task:
        assert manager.acquireExecutionMemory(1 << 20, task.taskAttemptId(), mode) == 1 << 20
    assert manager.getExecutionMemoryUsageForTask(task.taskAttemptId()) == 0


@pytest.mark.core
def test_a_thread_is_no_task_any_more_when_its_end_fails(spark: SparkSession, java: Any, no_settings: Any) -> None:
    manager = singleton(java.org.apache.spark, "SparkEnv").get().memoryManager()
    thread = java.java.lang.Thread.currentThread()
    listener = java.java.lang.Class.forName("org.apache.spark.util.TaskCompletionListener", True, thread.getContextClassLoader())
    # Called when the task is complete, it looks for something in an empty box.
    failing = java.java.beans.EventHandler.create(listener, java.java.util.Optional.empty(), "get")
    ids: list[int] = []

    def end() -> None:
        with driver_task(spark.sparkContext, no_settings) as task:
            ids.append(task.taskAttemptId())
            task.addTaskCompletionListener(failing)
            manager.acquireExecutionMemory(1 << 20, ids[0], java.org.apache.spark.memory.MemoryMode.ON_HEAP)

    with pytest.raises(SPARK_ERRORS, match="No value present"):
        end()
    assert current_task(java) is None
    assert manager.getExecutionMemoryUsageForTask(ids[0]) == 0


def test_a_task_that_waits_ends_when_its_group_is_cancelled(spark: SparkSession, java: Any, no_settings: Any) -> None:
    context, group, inside = spark.sparkContext, str(uuid.uuid4()), threading.Event()

    def wait() -> None:
        with driver_task(context, no_settings):
            inside.set()
            java.java.lang.Thread.sleep(int(PATIENCE_S * 1000))

    def waits() -> bool:
        begin_jobs(context, group, "a step")
        with pytest.raises(TaskCancelledError, match=group):
            wait()
        # What the thread waits for next is not broken off.
        return bool(java.java.lang.Thread.currentThread().isInterrupted())

    under_way = begun(waits)
    assert inside.wait(PATIENCE_S)
    cancel_jobs(context, group)
    assert under_way.result(PATIENCE_S / 2) is False


def test_a_cancelled_group_begins_no_task_later_and_other_groups_go_on(spark: SparkSession, no_settings: Any) -> None:
    context, cancelled, other = spark.sparkContext, str(uuid.uuid4()), str(uuid.uuid4())

    def works(group: str) -> None:
        begin_jobs(context, group, "a step")
        properties = ThreadProperties.of_this_thread(context)

        def helps() -> None:
            properties.apply()
            with driver_task(context, no_settings):
                pass

        # Threads that work for it belong to the group as well.
        begun(helps).result(PATIENCE_S)

    cancel_jobs(context, cancelled)
    with pytest.raises(TaskCancelledError, match=cancelled):
        begun(lambda: works(cancelled)).result(PATIENCE_S)
    begun(lambda: works(other)).result(PATIENCE_S)


def test_an_error_of_a_task_that_nobody_cancelled_is_raised_as_it_is(spark: SparkSession, java: Any, no_settings: Any) -> None:
    with pytest.raises(SPARK_ERRORS, match='input string: "one"'), driver_task(spark.sparkContext, no_settings):
        java.java.lang.Integer.parseInt("one")
