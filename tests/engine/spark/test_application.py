"""What the application and its JVM tell of themselves."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.application import (
    OldGeneration,
    application_problem,
    collect_garbage,
    heap_used,
    jvm_process,
)

pytestmark = pytest.mark.core


def test_an_application_that_works_has_no_problem(spark: SparkSession) -> None:
    assert application_problem(spark.sparkContext) is None


def test_the_memory_that_is_left_after_a_collection_is_known(spark: SparkSession) -> None:
    collect_garbage(spark.sparkContext)
    usage = OldGeneration(spark.sparkContext).usage()
    assert 0 < usage.used < usage.most
    assert 0 < heap_used(spark.sparkContext) < usage.most


def test_the_process_of_the_jvm_is_another_one_of_this_machine(spark: SparkSession) -> None:
    process = jvm_process(spark.sparkContext)
    assert process != os.getpid()
    os.kill(process, 0)
