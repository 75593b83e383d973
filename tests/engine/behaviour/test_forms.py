"""PIVOT, UNPIVOT, chained USING, LATERAL VIEW without an alias and HAVING of any type, against Spark's answers after every step."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared

TABLES = """
create table t (id int, k int, v int, d decimal(10,2), s varchar, o boolean, a date, f double, tags varchar array,
    m map<varchar, int>);
create table u (k int, w int, s varchar);
create table x (k int, w int, z int);
"""
THREE = "(select s, v, d from t)"
LINEAR = {
    "tagged": "select id, tag from t lateral view explode(tags) as tag",
    "entries": "select id, name, number from t lateral view outer explode(m) as name, number where v > 0",
    "twice": "select id, tag, c from t lateral view explode(tags) as tag lateral view outer posexplode(array(tag, s)) as p, c",
    "unpivoted": "select * from (select id, k, v from t) unpivot (number for name in (k, v))",
    "unpivoted_nulls": "select id, name, n from (select id, k, v, d from t) unpivot include nulls (n for name in (k as one, d, v))",
    "unpivoted_pairs": "select * from (select id, k, v, d from t) unpivot ((n, w) for name in ((k, v) as one, (v, d)))",
    "unpivoted_kinds": "select * from (select id, k, o, s from t) unpivot include nulls ((n, w) for name in ((k, s), (id, s)))",
    "unpivoted_table": "select p.name, p.n + 1 as n from x unpivot (n for name in (w, z)) as p where p.k > 1",
    "unpivoted_union": "select * from (select k, w from u union all select k, w from x) unpivot (n for name in (k, w))",
}
GROUPED = {
    "pivoted": f"select * from {THREE} pivot (sum(d) for v in (1 as one, 2 as two))",
    "pivoted_counts": f"select * from {THREE} pivot (count(*) as n, sum(d) as x for v in (1, 2, null as none))",
    "pivoted_over_all": "select * from (select v, d from t) pivot (count(d) for v in (1, 2))",
    "pivoted_pairs": "select * from (select s, k, v, o from t) pivot (count(o) for (k, v) in ((1, 1) as a, (1, null) as b))",
    "pivoted_words": "select k, a + 1 as a, b from (select k, s, v from t) pivot (sum(v) for s in ('a', 'b')) as p where k > 0",
    "pivoted_dates": "select * from (select k, a, v from t) pivot (avg(v) for a in (date '2024-01-01' as one))",
    "pivoted_flags": "select * from (select s, o, v from t) pivot (sum(v) for o in (true as y, false as n))",
    "pivoted_join": "select p.one, u.w from (select k, v, d from t) pivot (sum(d) for v in (1 as one)) p join u on u.k = p.k",
    "unpivoted_groups": "select name, count(*) as n, sum(number) as x from (select k, v from t) unpivot (number for name in (k, v))"
    " group by name",
    "having_count": "select s from t group by s having count(v)",
    "having_sum": "select s, count(*) as n from t group by s having sum(v) + sum(k)",
    "having_one": "select s, sum(d) as x from t group by s having 1",
    "having_null": "select count(*) as n from t having null",
    "having_key": "select k, count(*) as n from t group by k having k",
    "having_both": "select o, s, count(*) as n from t group by o, s having o and sum(v) > 0",
}
TOUCHED = {
    "pivoted_extremes": f"select * from {THREE} pivot (max(d) as m, min(d) as n for v in (1, 2))",
    "pivoted_texts": "select * from (select k, v, s, d from t) pivot (max(s) as m, count(*) as n, sum(d) as x for v in (1, 2))",
    "having_flag": "select s from t group by s having max(o)",
}
JOINS = {
    "chain": "select k, t.id, u.w, x.z from t join u using (k) join x using (k)",
    "chain_all": "select * from u join (select k, z from x) as x using (k) join (select k, id from t) as t using (k)",
    "chain_pairs": "select k, w, t.id, x.z from t join u using (k) join x using (k, w)",
    "chain_left": "select k, u.w, x.z from t left join u using (k) left join x using (k) where t.v > 0",
    "chain_right": "select k, t.id, x.z from t right join u using (k) right join x using (k)",
    "chain_mixed": "select k, t.id, u.w, x.z from t right join u using (k) join x using (k)",
    "chain_groups": "select k, count(*) as n, sum(x.z) as z from t left join u using (k) join x using (k) group by k",
    "chain_full": "select k, t.id, x.z from t full join u using (k) full join x using (k) where t.v > 0 or t.v is null",
    "chain_full_left": "select k, count(*) as n from t full join u using (k) left join x using (k) group by k",
    "chain_natural": "select k, s, id, z from t natural join u join x using (k)",
}
FULL = {
    "pivoted_floats": "select * from (select k, f, v from t) pivot (sum(v) for f in (1.5D as x))",
    "pivoted_cast": "select * from (select k, s, v from t) pivot (sum(v) for s in (1))",
    "pivoted_others": "select * from (select k, s, v from t) pivot (max_by(s, k) as m for v in (1, 2))",
}
"""Those that Spark reads in a way of its own."""


def _t(draw: random.Random) -> tuple[Any, ...]:
    words = [None, "a", "a", "b", "1"]
    return (
        draw.choice([1, 2, 3]),
        draw.choice([None, 1, 1, 2, 3]),
        draw.choice([None, 0, 1, 1, 2]),
        draw.choice([None, Decimal("1.50"), Decimal("-2.25"), Decimal("0.00")]),
        draw.choice(words),
        draw.choice([None, True, False]),
        draw.choice([None, datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]),
        draw.choice([None, 1.5, 2.0]),
        draw.choice([None, [], ["x"], ["x", None, "x"]]),
        draw.choice([None, {}, {"p": 1}, {"p": None, "q": 2}]),
    )


def _u(draw: random.Random) -> tuple[Any, ...]:
    return draw.choice([None, 1, 2, 3]), draw.choice([None, 1, 2]), draw.choice([None, "a", "b"])


def _x(draw: random.Random) -> tuple[Any, ...]:
    return draw.choice([None, 1, 2, 4]), draw.choice([None, 1, 2]), draw.choice([5, 6])


def test_forms_equal_the_batch_answer(sessions: SparkSessions) -> None:
    queries = {**LINEAR, **GROUPED, **TOUCHED, **JOINS, **FULL}
    views = "".join(f"create view {name} as {query};\n" for name, query in queries.items())
    compared = Compared(TABLES + views, sessions, {"t": _t, "u": _u, "x": _x}, seed=3)
    for inserts, deletes in ((8, 0), (3, 4), (0, 100)):
        compared.step(inserts, deletes)
    strategies = {name: set(compared.strategies(name)) for name in queries}
    for name in LINEAR:
        assert strategies[name] <= {"linear", "union"}, name
    for name in GROUPED:
        assert "accumulators" in strategies[name], name
        assert strategies[name] <= {"linear", "accumulators", "join"}, name
    for name in TOUCHED:
        assert strategies[name] <= {"linear", "accumulators", "touched groups"}, name
    for name in JOINS:
        assert strategies[name] <= {"linear", "join", "join by touched keys", "accumulators"}, name
    for name in FULL:
        assert strategies[name] == {"full"}, name
