"""Which queries Spark optimises to one plan."""

from __future__ import annotations

import pytest

from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer
from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core


def test_unions_of_joins_with_other_columns_first_are_not_the_same(sessions: SparkSessions) -> None:
    analyzer = SparkAnalyzer(sessions.small)
    analyzer.declare({"p": (("k", "int"), ("i", "int")), "q": (("k", "int"), ("j", "int"))})
    text = "select * from (select {} from p join q using (k)) union all select 1, 2"
    assert analyzer.same_plan(text.format("k, i"), text.format("p.k, p.i"))
    assert not analyzer.same_plan(text.format("k, i"), text.format("i, k"))


def test_texts_that_differ_only_in_a_late_column_are_not_the_same(sessions: SparkSessions) -> None:
    analyzer = SparkAnalyzer(sessions.small)
    columns = [f"c{at}" for at in range(40)]
    analyzer.declare({"t": (("k", "int"), ("s", "string")), "wide": tuple((column, "int") for column in columns)})
    one = f"select {', '.join(columns)} from wide"
    other = f"select {', '.join([*columns[:38], 'c39 as c38', 'c38 as c39'])} from wide"
    assert analyzer.same_plan(one, one)
    assert not analyzer.same_plan(one, other)
    assert not analyzer.same_plan("select k from t where s = 'a'", "select k from t where s = 'b'")
    assert not analyzer.same_plan("select k from t", "select nothing from t")


def test_several_distinct_aggregates_are_the_same_each_time(sessions: SparkSessions) -> None:
    """Spark orders them by hashes of the numbers of columns, which are others each time where a column is computed."""
    analyzer = SparkAnalyzer(sessions.small)
    analyzer.declare({"t": (("k", "int"), ("a", "int"), ("b", "int"), ("c", "bigint"))})
    rows = "(select k, b as g, max(a) as a, max(b) as b, max(c) as c from t group by k, b)"
    text = (
        f"select count(distinct {{0}}a) as x, count(distinct {{0}}b) as y, count(distinct {{1}}) as z, sum({{0}}b) from {rows} as r"
    )
    one, other, wrong = (
        text.format(source, case) + f" group by {source}k"
        for source, case in [
            ("", "case when a < b then c end"),
            ("r.", "case when r.a < r.b then r.c end"),
            ("r.", "case when r.b < r.a then r.c end"),
        ]
    )
    assert [analyzer.same_plan(one, other) for _ in range(5)] == [True] * 5
    assert not any(analyzer.same_plan(one, wrong) for _ in range(5))
