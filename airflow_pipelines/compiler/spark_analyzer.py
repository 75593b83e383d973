"""The planner's analyzer on Spark: column types, and the comparison of optimized plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.compiler.plan_text import normalise_text
from airflow_pipelines.engine.spark.failures import spark_complaint
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.logical_plans import LogicalPlan, optimized_plan
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, sibling
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.ir.node import ColumnTypes


class SessionAnalyzer:
    """An analyzer of queries over the relations that a session knows. It runs no Spark job."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None:
        """Let queries read these relations from now on."""
        for name, columns in relations.items():
            ddl = ", ".join(f"{quote(column)} {kind}" for column, kind in columns)
            schema = cast(StructType, StructType.fromDDL(ddl))
            # Unlike an empty local relation, a scan of an (empty) RDD is not optimised away, so that plans can be compared.
            empty: Any = self.session.sparkContext.emptyRDD()
            self.session.createDataFrame(empty, schema).createOrReplaceTempView(quote(name))

    def columns(self, query: str) -> ColumnTypes:
        """Return the names and types of a query's columns.

        :raises AnalysisFailed: if Spark refuses the query
        """
        try:
            schema = self.session.sql(query).schema
        except SPARK_ERRORS as error:
            raise AnalysisFailed(spark_complaint(error)) from error
        return tuple((column.name, type_text(column.dataType)) for column in schema.fields)

    def same_plan(self, one: str, other: str) -> bool:
        """Return True if Spark optimises both queries to one plan, apart from the names and numbers of expressions."""
        try:
            mine, yours = self._optimise(one), self._optimise(other)
            return mine.same_result(yours) or normalise_text(mine.text) == normalise_text(yours.text)
        except SPARK_ERRORS:
            # A constant cannot be evaluated, or the optimizer has a bug: the plans are then not known to be equal.
            return False

    def planning_error(self, query: str) -> str | None:
        """Return the reason why Spark cannot plan a query that it understands, or None if it can.

        An example is a constant that cannot be evaluated.
        """
        try:
            self._optimise(query)
        except SPARK_ERRORS as error:
            return spark_complaint(error)
        return None

    def _optimise(self, query: str) -> LogicalPlan:
        return optimized_plan(self.session.sql(query))


class SparkAnalyzer(SessionAnalyzer):
    """An analyzer of queries over declared relations in a session of its own."""

    def __init__(self, spark: SparkSession) -> None:
        """Open a session beside ``spark``."""
        # Plans are compared by their texts, from which Spark omits columns if there are many.
        # Projections of lateral column aliases are always merged, so that plans with and without them are equal.
        settings = {"spark.sql.debug.maxToStringFields": "1000000", "spark.sql.optimizer.collapseProjectAlwaysInline": "true"}
        super().__init__(sibling(spark, {**SMALL_CONF, **settings}))
