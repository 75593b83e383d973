"""The interface through which the planner asks Spark's analyzer, without importing Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from airflow_pipelines.sql.plan.ir.node import ColumnTypes


class AnalysisFailed(Exception):
    """Spark's analyzer refuses a query that the planner printed."""


class Analyzer(Protocol):
    """Answers about queries over a set of relations."""

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None:
        """Let queries read these relations from now on."""

    def columns(self, query: str) -> ColumnTypes:
        """Names and types of a query's columns. Raises AnalysisFailed."""

    def same(self, one: str, other: str) -> bool:
        """Whether Spark surely reads two queries as the same."""

    def complaint(self, query: str) -> str | None:
        """Why Spark cannot plan a query that it understands, such as a constant that cannot be evaluated; None when it can."""
