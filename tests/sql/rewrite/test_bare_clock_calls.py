"""LOCALTIMESTAMP and LOCALTIME without parentheses are calls, unless a column has the name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.rewrite.bare_clock_calls import bare_clock_calls
from airflow_pipelines.sql.syntax.edits import Edited


class Columns:
    """Knows that the relation ``named`` has a column ``localtime``, and nothing else."""

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None: ...

    def columns(self, query: str) -> ColumnTypes:
        if "SELECT localtime AS" not in query or "named" not in query:
            raise AnalysisFailed(query)
        return (("p0", "int"),)

    def same_plan(self, one: str, other: str) -> bool:
        return one == other


@pytest.mark.parametrize(
    ("query", "rewritten"),
    [
        ("select localtimestamp, localtime as t from t", "select LOCALTIMESTAMP(), CURRENT_TIME() as t from t"),
        ("select 1 from t where ts < localtimestamp", "select 1 from t where ts < LOCALTIMESTAMP()"),
        ("select localtime, localtimestamp from named", "select localtime, LOCALTIMESTAMP() from named"),
        # The column of a query around it.
        ("select (select max(localtime) from t) from named", "select (select max(localtime) from t) from named"),
        ("select localtimestamp(), t.localtime, `localtime`, 1 as localtime, 2 localtime, 'localtime' from t", None),
    ],
)
def test_calls_are_told_from_columns(query: str, rewritten: str | None) -> None:
    assert bare_clock_calls(Edited(query), Columns()).text == (rewritten or query)
