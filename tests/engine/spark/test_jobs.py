"""Job groups and the properties of threads, which decide what a cancellation ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.jobs import ThreadProperties, begin_jobs, cancel_jobs, started_jobs

pytestmark = pytest.mark.core


def in_a_thread(work: Callable[[], None]) -> None:
    """Run something in a thread of its own, whose properties end with it; raise what it raises."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(work).result()


def test_a_cancelled_group_starts_no_job_later(spark: SparkSession) -> None:
    context = spark.sparkContext

    def work() -> None:
        begin_jobs(context, "cancelled group", "a step", pool="queries")
        assert context.getLocalProperty("spark.scheduler.pool") == "queries"
        assert spark.range(3).repartition(2).count() == 3
        cancel_jobs(context, "cancelled group")
        with pytest.raises(SPARK_ERRORS, match="cancelled group"):
            spark.range(3).repartition(2).count()

    in_a_thread(work)


def test_threads_get_the_properties_of_the_one_they_work_for_and_keep_changes_to_themselves(spark: SparkSession) -> None:
    context = spark.sparkContext
    groups: list[str | None] = []

    def helper(properties: ThreadProperties) -> None:
        properties.apply()
        groups.append(context.getLocalProperty("spark.jobGroup.id"))
        before = started_jobs(context)
        spark.range(3).repartition(2).count()
        assert started_jobs(context) > before
        context.setLocalProperty("spark.jobGroup.id", "changed")

    def work() -> None:
        begin_jobs(context, "shared group", "a step")
        properties = ThreadProperties.of_this_thread(context)
        for _ in range(2):
            in_a_thread(lambda: helper(properties))
        groups.append(context.getLocalProperty("spark.jobGroup.id"))
        assert context.statusTracker().getJobIdsForGroup("shared group")

    in_a_thread(work)
    assert groups == ["shared group"] * 3
