"""The interface through which the planner asks Spark's analyzer, without importing Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from airflow_pipelines.sql.plan.ir.node import ColumnTypes


class AnalysisFailed(Exception):
    """The error that Spark's analyzer refuses a query that the planner printed."""


class Analyzer(Protocol):
    """An analyzer of queries over a set of relations."""

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None:
        """Register relations, so that queries can read them.

        :param relations: the columns of each relation, by canonical name
        """

    def columns(self, query: str) -> ColumnTypes:
        """Return the names and types of a query's columns.

        :param query: Spark SQL
        :raises AnalysisFailed: if Spark refuses the query
        """

    def same_plan(self, one: str, other: str) -> bool:
        """Return True if Spark optimises two queries to the same plan, which proves that they are equivalent.

        :param one: Spark SQL
        :param other: Spark SQL
        """

    def planning_error(self, query: str) -> str | None:
        """Return the reason why Spark cannot plan a query that it has analyzed, such as a constant that cannot be evaluated.

        :param query: Spark SQL
        :returns: None if Spark can plan it
        """
