"""Aggregates of values whose types Spark does not tell alone, such as those of a row outside of a subquery."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.rewrite.determinism.aggregates import deterministic_aggregates
from airflow_pipelines.sql.rewrite.determinism.choosing_aggregates import deterministic_choices
from airflow_pipelines.sql.syntax.edits import Edited


class NoTypes:
    """An analyzer that takes whole queries, and cannot tell the type of any part of one."""

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None:
        """Forget the relations."""

    def columns(self, query: str) -> ColumnTypes:
        if query.startswith("select"):
            return (("x", "int"),)
        raise AnalysisFailed(query)

    def same_plan(self, one: str, other: str) -> bool:
        return one == other


@pytest.mark.parametrize(
    ("call", "rewritten"),
    [
        ("first(o.a)", "CASE WHEN COUNT_IF((o.a) IS NULL) = 0 THEN MIN(o.a) END"),
        ("collect_list(o.a)", "SORT_ARRAY(COLLECT_LIST(o.a))"),
    ],
)
def test_aggregates_are_sorted_by_the_value_itself(call: str, rewritten: str) -> None:
    query = Edited(f"select {call} as x from t")
    assert deterministic_aggregates(query, NoTypes()).text == f"select {rewritten} as x from t"


def test_ties_are_decided_by_the_value_itself() -> None:
    query = Edited("select max_by(o.a, t.b) as x from t")
    key = "CASE WHEN (t.b) IS NOT NULL THEN STRUCT(t.b, o.a) END"
    assert deterministic_choices(query, NoTypes()).text == f"select max_by(o.a, {key}) as x from t"
