"""Spark's logical plans: its knowledge of a query before anything runs."""

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
        """True if equal inputs give equal results."""
        return bool(self._plan.deterministic())

    @property
    def text(self) -> str:
        """The plan as Spark prints it."""
        return str(self._plan.toString())

    def same_result(self, other: LogicalPlan) -> bool:
        """Return True if Spark knows that both plans return the same rows. False says nothing."""
        return bool(self._plan.sameResult(other._plan))


def analyzed_plan(frame: DataFrame) -> LogicalPlan:
    """Return the plan with all names resolved."""
    return LogicalPlan(query_execution(frame).analyzed())


def optimized_plan(frame: DataFrame) -> LogicalPlan:
    """Return the plan after Spark's optimizer.

    :raises pyspark.errors.PySparkException: if a constant of the query cannot be evaluated
    :raises py4j.protocol.Py4JJavaError: in the same case, if PySpark does not translate the error; see ``java_errors.SPARK_ERRORS``
    """
    return LogicalPlan(query_execution(frame).optimizedPlan())
