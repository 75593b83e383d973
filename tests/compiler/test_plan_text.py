"""When the texts of two optimised plans count as one."""

from __future__ import annotations

import re

import pytest

from airflow_pipelines.compiler.plan_text import normalise_text

ROWS = """Project [id#1, w#2]
+- Join Inner, (k#3 = k#4)
   :- Project [{one}]
   :  +- Join Inner, (k#3 = k#5)
   :     :- LogicalRDD [id#1, k#3], false
   :     +- LogicalRDD [k#5], false
   +- LogicalRDD [k#4, w#2], false
"""
OUTER = """Aggregate [g#9], [g#9 AS week#10, count(u#1) AS a#11, count(u#2) AS b#12]
+- Project [{one}]
   +- Join LeftOuter, (u#3 = u#2)
      :- Join LeftOuter, (u#3 = u#1)
      :  :- LogicalRDD [u#3, at#4], false
      :  +- LogicalRDD [u#1], false
      +- LogicalRDD [u#2], false
"""
DISTINCT = """Aggregate [g#1], [g#1, sum(t.a#2) FILTER (WHERE (gid#4 = {a})) AS x, max(t.b#3) FILTER (WHERE (gid#4 = {b})) AS y]
+- Aggregate [{keys}], [{keys}]
   +- Expand [{rows}], [{keys}]
      +- LogicalRDD [g#1, a#7, b#8], false
"""
A_FIRST = DISTINCT.format(a=1, b=2, keys="g#1, t.a#2, t.b#3, gid#4", rows="[g#1, a#7, null, 1], [g#1, null, b#8, 2]")
B_FIRST = DISTINCT.format(a=2, b=1, keys="g#1, t.b#3, t.a#2, gid#4", rows="[g#1, b#8, null, 1], [g#1, null, a#7, 2]")


@pytest.mark.parametrize(
    ("plan", "one", "other"),
    [
        (ROWS, "id#1, k#3", "k#3, id#1"),
        # Columns of one name, and one that is computed, which groups read.
        (OUTER, "u#1, u#2, date_trunc(week, at#4) AS g#9", "u#2, u#1, date_trunc(week, at#4) AS g#9"),
        (OUTER, "u#1, u#2, date_trunc(week, at#4) AS g#9", "date_trunc(week, at#4) AS g#9, u#2, u#1"),
    ],
)
def test_the_order_of_columns_does_not_matter_where_they_are_read_by_number(plan: str, one: str, other: str) -> None:
    assert normalise_text(plan.format(one=one)) == normalise_text(plan.format(one=other))


def test_columns_that_are_read_as_others_differ() -> None:
    one = OUTER.format(one="u#1, u#2, date_trunc(week, at#4) AS g#9")
    assert normalise_text(one) != normalise_text(one.replace("count(u#1) AS a#11, count(u#2)", "count(u#2) AS a#11, count(u#1)"))


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
    assert normalise_text(above + below.format("id#1, k#3")) != normalise_text(above + below.format("k#3, id#1"))


def test_a_struct_is_the_same_under_the_names_of_both_functions() -> None:
    plan = "Generate inline(array({}(k, k#1, n, n#2))), [0, 1], false, [k#3, n#4]\n+- LogicalRDD [k#1, n#2], false\n"
    assert normalise_text(plan.format("struct")) == normalise_text(plan.format("named_struct"))
    other = plan.replace("(k, k#1, n, n#2)", "(k, k#1, m, n#2)")
    assert normalise_text(plan.format("struct")) != normalise_text(other.format("named_struct"))


def test_the_order_of_groups_of_distinct_aggregates_does_not_matter() -> None:
    assert normalise_text(A_FIRST) == normalise_text(B_FIRST)
    # The columns have the name of the source, which is another one where a query reads a table twice.
    assert normalise_text(A_FIRST) == normalise_text(re.sub(r"t\.(?=[ab]#)", "t_2.", B_FIRST))
    # Numbers of which one begins with another.
    numbers = {"#2": "#11", "#3": "#1", "#1": "#111"}
    assert normalise_text(A_FIRST) == normalise_text(re.sub(r"#[123]\b", lambda found: numbers[found[0]], B_FIRST))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Another argument, arguments and groups exchanged, a group of something else, another row of columns.
        ("(gid#4 = 1)) AS x, max(t.b#3)", "(gid#4 = 1)) AS x, max(t.a#2)"),
        ("[g#1, a#7, null, 1], [g#1, null, b#8, 2]", "[g#1, b#8, null, 1], [g#1, null, a#7, 2]"),
        ("[g#1, null, b#8, 2]", "[g#1, null, a#7, 2]"),
        ("[g#1, a#7, null, 1], [g#1, null, b#8, 2]", "[g#1, a#7, null, 2], [g#1, null, b#8, 1]"),
        ("[g#1, a#7, b#8]", "[g#1, b#8, a#7]"),
    ],
)
def test_other_distinct_aggregates_differ(old: str, new: str) -> None:
    assert old in A_FIRST
    assert normalise_text(A_FIRST.replace(old, new)) != normalise_text(A_FIRST)


def test_groups_that_cannot_be_taken_apart_are_left_as_they_are() -> None:
    odd = [plan.replace("null", "a (text") for plan in (A_FIRST, B_FIRST)]
    assert normalise_text(odd[0]) != normalise_text(odd[1])
