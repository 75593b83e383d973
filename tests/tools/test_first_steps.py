"""The first step of a pipeline with many views, over fresh sessions; ``python -m tools.first_steps`` does it a thousand times."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tools.first_steps import run


def test_first_steps_of_a_healthy_pipeline_succeed(spark: SparkSession) -> None:
    assert len(list(run(spark, rounds=2, views=20))) == 2
