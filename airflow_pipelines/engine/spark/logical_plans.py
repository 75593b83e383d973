"""Spark's logical plans: what it knows of a query before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.internals import JavaObject, query_execution


@dataclass(frozen=True, slots=True, eq=False)
class LogicalPlan:
    """A logical plan of Spark."""

    _plan: JavaObject

    @property
    def fields(self) -> tuple[Mapping[str, Any], ...]:
        """The columns in Spark's schema JSON, which has metadata that a DataFrame's schema leaves out."""
        return tuple(json.loads(self._plan.schema().json())["fields"])

    @property
    def deterministic(self) -> bool:
        """Whether equal inputs give equal results."""
        return bool(self._plan.deterministic())

    @property
    def text(self) -> str:
        """The plan as Spark prints it."""
        return str(self._plan.toString())

    def same_result(self, other: LogicalPlan) -> bool:
        """Whether Spark knows that both plans give the same rows. False says nothing."""
        return bool(self._plan.sameResult(other._plan))


def analyzed_plan(frame: DataFrame) -> LogicalPlan:
    """The plan with all names resolved."""
    return LogicalPlan(query_execution(frame).analyzed())


def optimized_plan(frame: DataFrame) -> LogicalPlan:
    """The plan after Spark's optimizer.

    :raises pyspark.errors.PySparkException: when a constant of the query cannot be evaluated
    :raises py4j.protocol.Py4JJavaError: the same, where PySpark does not translate it; see ``java_errors.SPARK_ERRORS``
    """
    return LogicalPlan(query_execution(frame).optimizedPlan())
