"""The planner's analyzer on Spark: column types, and whether two queries have the same optimized plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.failures import spark_complaint
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.logical_plans import LogicalPlan, optimized_plan
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, sibling
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.ir.node import ColumnTypes

_EXPRESSION_ID = re.compile(r"#(\d+)L?")
_RENAMED = re.compile(r"([^\s,\[\]()#]+)#(\d+)L? AS \1#(\d+)L?")
"""A column that is renumbered under its own name, which Spark does for some queries with UNION ALL."""
_COMMON = re.compile(r"_common_expr_\d+")
_WINDOW_INPUT = re.compile(r"_w\d+(?=#)")
_INNER_PROJECT = re.compile(r"(?<=\n)([\s:+-]*Project )\[(.*)\](?=\n)")
_GENERATE = re.compile(r"(Generate .*, (?:true|false)), [^,\[\]()]+(?=, \[)")
"""A Generate node (LATERAL VIEW) with the table alias of its columns."""
_PROJECTION = re.compile(r"([ :+-]*Project )\[(.*)\]")
_PLAIN_COLUMN = re.compile(r"[^\s,\[\]()#]+#\d+L?")


class SessionAnalyzer:
    """Analyzes queries over the relations that a session knows. Runs no Spark job."""

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
        """The names and types of a query's columns.

        :raises AnalysisFailed: when Spark refuses the query
        """
        try:
            schema = self.session.sql(query).schema
        except SPARK_ERRORS as error:
            raise AnalysisFailed(spark_complaint(error)) from error
        return tuple((column.name, type_text(column.dataType)) for column in schema.fields)

    def same_plan(self, one: str, other: str) -> bool:
        """Whether Spark optimises both queries to one plan, but for the names and numbers that it gives to expressions."""
        try:
            mine, yours = self._optimised(one), self._optimised(other)
            return mine.same_result(yours) or _renumbered(mine.text) == _renumbered(yours.text)
        except SPARK_ERRORS:
            # A constant cannot be evaluated, or the optimizer has a bug: then it is unknown.
            return False

    def planning_error(self, query: str) -> str | None:
        """Why Spark cannot plan a query that it understands, such as a constant that cannot be evaluated; None when it can."""
        try:
            self._optimised(query)
        except SPARK_ERRORS as error:
            return spark_complaint(error)
        return None

    def _optimised(self, query: str) -> LogicalPlan:
        return optimized_plan(self.session.sql(query))


class SparkAnalyzer(SessionAnalyzer):
    """Analyzes queries over declared relations in a session of its own."""

    def __init__(self, spark: SparkSession) -> None:
        """Open a session beside ``spark``."""
        # Plans are compared by their texts, from which Spark leaves out columns when there are many.
        # Projections of lateral column aliases are always merged, so that plans with and without them are equal.
        settings = {"spark.sql.debug.maxToStringFields": "1000000", "spark.sql.optimizer.collapseProjectAlwaysInline": "true"}
        super().__init__(sibling(spark, {**SMALL_CONF, **settings}))


def _renumbered(plan: str) -> str:
    """A plan's text with its expressions numbered in order of appearance."""
    # A comma in FROM is an inner join in Spark's plan, and a cross join when it is written as one.
    plan = _COMMON.sub("_common_expr", plan).replace("Join Cross", "Join Inner")
    # Both functions make the same expression, which prints its fields' names, under the name that was written.
    plan = plan.replace("named_struct(", "struct(")
    plan = _sorted_below_joins(_GENERATE.sub(r"\1", plan))
    plan = _INNER_PROJECT.sub(_without_repetitions, _WINDOW_INPUT.sub("_w", plan))
    # Renumbering goes from higher to lower numbers only, so that the loop below ends.
    same = {new: old for _, old, new in _RENAMED.findall(plan) if int(old) < int(new)}
    plan = _RENAMED.sub(r"\1#\2", plan)
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        known = found[1]
        while known in same:
            known = same[known]
        return f"#{numbers.setdefault(known, len(numbers))}"

    return _EXPRESSION_ID.sub(number, plan)


def _sorted_below_joins(plan: str) -> str:
    """Sort the columns of projections that have columns only and are read by name: those below joins below a projection.

    JOIN USING leaves such projections, in an order of its own.
    """
    lines = plan.split("\n")
    for at, line in enumerate(lines):
        found = _PROJECTION.fullmatch(line)
        if found is None or not _is_read_by_name(lines, at):
            continue
        columns = found[2].split(", ")
        if all(map(_PLAIN_COLUMN.fullmatch, columns)):
            lines[at] = f"{found[1]}[{', '.join(sorted(columns, key=lambda column: column.partition('#')[0]))}]"
    return "\n".join(lines)


def _is_read_by_name(lines: list[str], at: int) -> bool:
    """Whether the operators above a line are joins and filters, up to a projection or an aggregate."""
    depth, joined = _depth(lines[at]), False
    for line in reversed(lines[:at]):
        if _depth(line) >= depth:
            continue
        operator = line.lstrip(" :+-").partition(" ")[0]
        # The plan of a subquery is indented more than the children of an operator.
        if _depth(line) != depth - 1 or operator not in {"Join", "Filter", "Project", "Aggregate"}:
            return False
        if operator in {"Project", "Aggregate"}:
            return joined
        joined |= operator == "Join"
        depth -= 1
    return False


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip(" :+-"))) // 3


def _without_repetitions(project: re.Match[str]) -> str:
    """Remove repeated columns from an inner projection: Spark may list the input of a window function twice."""
    kept: dict[str, None] = {}
    for number, item in enumerate(project[2].split(", ")):
        kept[item if _PLAIN_COLUMN.fullmatch(item) else f"{item}\0{number}"] = None
    return f"{project[1]}[{', '.join(item.partition(chr(0))[0] for item in kept)}]"
