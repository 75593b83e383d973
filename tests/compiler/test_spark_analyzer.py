"""When two optimised plans count as one."""

from __future__ import annotations

import pytest

from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer, _renumbered
from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

ROWS = """Project [id#1, w#2]
+- Join Inner, (k#3 = k#4)
   :- Project [{one}]
   :  +- Join Inner, (k#3 = k#5)
   :     :- LogicalRDD [id#1, k#3], false
   :     +- LogicalRDD [k#5], false
   +- LogicalRDD [k#4, w#2], false
"""


def test_the_order_of_columns_does_not_matter_below_joins_that_a_projection_reads() -> None:
    one, other = (ROWS.format(one=columns) for columns in ("id#1, k#3", "k#3, id#1"))
    assert _renumbered(one) == _renumbered(other)


@pytest.mark.parametrize(
    "above",
    [
        # These take columns by their places.
        "Union false, false\n",
        "Project [id#9]\n+- Union false, false\n",
        "Project [id#9]\n+- Filter exists#1 [k#3]\n   :  +- Filter true\n   ",
    ],
)
def test_the_order_of_columns_matters_where_places_count(above: str) -> None:
    depth = "   " * above.count("\n")
    below = f"{depth}:- Join Inner, (k#3 = k#4)\n{depth}:  :- Project [{{}}]\n{depth}:  +- LogicalRDD [k#4], false\n"
    assert _renumbered(above + below.format("id#1, k#3")) != _renumbered(above + below.format("k#3, id#1"))


def test_a_struct_is_the_same_under_the_names_of_both_functions() -> None:
    plan = "Generate inline(array({}(k, k#1, n, n#2))), [0, 1], false, [k#3, n#4]\n+- LogicalRDD [k#1, n#2], false\n"
    assert _renumbered(plan.format("struct")) == _renumbered(plan.format("named_struct"))
    other = plan.replace("(k, k#1, n, n#2)", "(k, k#1, m, n#2)")
    assert _renumbered(plan.format("struct")) != _renumbered(other.format("named_struct"))


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
