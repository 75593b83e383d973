"""Queries with ties, and what breaks them."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.exact_variance import exact_variance
from airflow_pipelines.sql.rewrite.make_deterministic import make_deterministic
from airflow_pipelines.sql.syntax.edits import Edited

RELATIONS = {
    "t": (("k", "int"), ("s", "string"), ("d", "decimal(5,2)"), ("f", "double")),
    "u": (("k", "int"), ("m", "map<string,int>")),
}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("select row_number() over (partition by s order by k) as r from t",
         "select row_number() over (partition by s order by k, `t`.`d`, `t`.`f`) as r from t"),
        ("select rank() over (order by k) as r, sum(k) over (order by d) as x from t", None),
        ("select sum(k) over (order by s rows between 1 preceding and current row) as x from u join t using (k)",
         "select sum(k) over (order by s, `u`.`k`, SORT_ARRAY(MAP_ENTRIES(`u`.`m`)), `t`.`k`, `t`.`d`, `t`.`f`"
         " rows between 1 preceding and current row) as x from u join t using (k)"),
        # The definition is written out for LAG; RANK keeps the one that it had.
        ("select lag(k) over w as l, rank() over w as r from u window w as (order by k)",
         "select lag(k) over (order by k, SORT_ARRAY(MAP_ENTRIES(`u`.`m`))) as l, rank() over w as r from u"
         " window w as (order by k)"),
        ("select s, row_number() over (order by count(*)) as r from t group by s",
         "select s, row_number() over (order by count(*), s) as r from t group by s"),
        ("select s as z, k + 1 as q, ntile(2) over (order by sum(d)) as r from t group by 1, q",
         "select s as z, k + 1 as q, ntile(2) over (order by sum(d), s, k + 1) as r from t group by 1, q"),
        ("select s, row_number() over (order by sum(k)) as r from t group by rollup(s)",
         "select s, row_number() over (order by sum(k), s, GROUPING_ID()) as r from t group by rollup(s)"),
        ("select last_value(k) over (partition by d, f order by s) as l from t",
         "select MAX_BY(k, STRUCT(s, `t`.`k`)) over (partition by d, f order by s) as l from t"),
        ("select first_value(k) over (partition by s) as l from t",
         "select first_value(k) over (partition by s ORDER BY `t`.`k`, `t`.`d`, `t`.`f`"
         " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) as l from t"),
        ("select k, s from t limit 2", "select k, s from t ORDER BY 1, 2 limit 2"),
        ("select * from u order by k desc limit 2 offset 1",
         "select * from u order by k desc, 1, SORT_ARRAY(MAP_ENTRIES(`m`)) limit 2 offset 1"),
        ("select k from t where exists (select 1 from u where u.k = t.k limit 1)", None),
        ("select k from t order by all limit 3", None),
        ("select k, (select s from t as b where b.k = u.k order by s limit 1) as x from u",
         "select k, (select s from t as b where b.k = u.k order by s, 1 limit 1) as x from u"),
        ("with c as (select k from t limit 1) select ntile(2) over (order by k) as r from c union all select k from u"
         " order by r limit 3",
         "with c as (select k from t ORDER BY 1 limit 1) select ntile(2) over (order by k) as r from c union all select k from u"
         " order by r, 1 limit 3"),
        ("select max_by(s, k) as m, mode(k) as o from t",
         "select max_by(s, CASE WHEN (k) IS NOT NULL THEN STRUCT(k, s) END) as m, mode(k, TRUE) as o from t"),
        ("select max_by(k, d) as a from t union all select min_by(m, k)['x'] from u",
         "select max_by(k, CASE WHEN (d) IS NOT NULL THEN STRUCT(d, k) END) as a from t"
         " union all select min_by(m, CASE WHEN (k) IS NOT NULL THEN STRUCT(k, SORT_ARRAY(MAP_ENTRIES(m))) END)['x'] from u"),
        ("select row_number() over (order by k) as n from (select k, s as x from t)",
         "select row_number() over (order by k, `x`) as n from (select k, s as x from t)"),
        ("select collect_list(k) as l, array_agg(distinct s) filter (where k > 1) as a, size(collect_set(s)) as n from t",
         "select SORT_ARRAY(COLLECT_LIST(k)) as l, SORT_ARRAY(ARRAY_AGG(DISTINCT s) filter (where k > 1)) as a,"
         " size(collect_set(s)) as n from t"),
        ("select first(k) as f, first(k, true) as i, last(k) ignore nulls as l, any_value(m ignore nulls) as a from u",
         "select CASE WHEN COUNT_IF((k) IS NULL) = 0 THEN MIN(k) END as f, MIN(k) as i, MAX(k) as l,"
         " MIN_BY(m, CASE WHEN (m) IS NOT NULL THEN SORT_ARRAY(MAP_ENTRIES(m)) END) as a from u"),
    ],
)  # fmt: skip
def test_ties_are_broken_by_all_columns(analyzer: Analyzer, query: str, wanted: str | None) -> None:
    text = make_deterministic(Edited(query), analyzer).text
    assert text == (query if wanted is None else wanted)
    analyzer.columns(text)


def test_values_of_a_range_are_picked_from_a_sorted_list(analyzer: Analyzer) -> None:
    text = make_deterministic(Edited("select nth_value(s, 2) ignore nulls over (order by k desc, d) as x from t"), analyzer).text
    element = "CASE WHEN (s) IS NOT NULL THEN STRUCT(k AS k0, d AS k1, `t`.`s` AS t0, `t`.`f` AS t1, s AS v) END"
    assert f"COLLECT_LIST({element}) over (order by k desc, d)" in text
    assert text.startswith("select GET(ARRAY_SORT(")
    assert analyzer.columns(text) == (("x", "string"),)
    every = "select collect_list(k) over (partition by s order by d) as x, last_value(k) over (order by s, d desc) as y from t"
    assert analyzer.columns(make_deterministic(Edited(every), analyzer).text) == (("x", "array<int>"), ("y", "int"))


def test_variances_of_exact_numbers_are_made_of_sums(analyzer: Analyzer) -> None:
    text = exact_variance(Edited("select stddev(k) filter (where s = 'a') as x from t"), analyzer).text
    assert text.startswith("select SQRT(")
    assert text.count("filter (where s = 'a')") > 3
    assert analyzer.columns(text) == (("x", "double"),)
    for left in ("stddev(f)", "stddev(distinct k)"):
        query = f"select {left} as x from t"
        assert exact_variance(Edited(query), analyzer).text == query
