"""Evaluation of queries for their number of rows alone."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import count, lit


def evaluate_and_count(frame: DataFrame) -> int:
    """Evaluate every row of a query without keeping any, and return their number.

    Unlike ``DataFrame.count`` this evaluates all columns, so that an error in one of them is raised.
    """
    observation = Observation()
    rows = frame.observe(observation, count(lit(1)).alias("rows"))
    rows.write.format("noop").mode("overwrite").save()
    return int(observation.get["rows"])
