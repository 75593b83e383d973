"""The interface through which the planner asks Spark's analyzer, without importing Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from airflow_pipelines.sql.plan.ir.node import ColumnTypes


class AnalysisFailed(Exception):
    """Spark's analyzer refuses a query that the planner printed."""


class Analyzer(Protocol):
    """Analyzes queries over a set of relations."""

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None:
        """Make relations known to queries.

        :param relations: their columns, by canonical name
        """

    def columns(self, query: str) -> ColumnTypes:
        """Names and types of a query's columns.

        :param query: Spark SQL
        :raises AnalysisFailed: when Spark refuses it
        """

    def same_plan(self, one: str, other: str) -> bool:
        """Whether Spark optimises two queries to the same plan, so that they surely mean the same.

        :param one: Spark SQL
        :param other: Spark SQL
        """

    def planning_error(self, query: str) -> str | None:
        """Why Spark cannot plan a query that it has analyzed, such as a constant that cannot be evaluated.

        :param query: Spark SQL
        :returns: None when Spark can plan it
        """
