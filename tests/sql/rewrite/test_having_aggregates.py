"""The aggregates of HAVING become columns of a SELECT that another one surrounds."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.rewrite.having_aggregates import select_having_aggregates
from airflow_pipelines.sql.syntax.edits import Edited


@pytest.mark.parametrize(
    ("query", "rewritten"),
    [
        (
            "select a from t group by a having sum(b) > 0",
            "SELECT `a` FROM (SELECT a AS `a`, SUM(b) AS __h0 FROM t GROUP BY a HAVING __h0 > 0) AS __h",
        ),
        # Equal aggregates are one column, an aggregate alone is a condition, and a FILTER belongs to its aggregate.
        (
            "select a as x from t group by a having bool_or(b) and (count(*) > 1 or count(*) filter (where c > 0) = count(*))",
            "SELECT `x` FROM (SELECT a AS `x`, BOOL_OR(b) AS __h0, COUNT(*) AS __h1, COUNT(*) FILTER(WHERE c > 0) AS __h2 "
            "FROM t GROUP BY a HAVING __h0 AND (__h1 > 1 OR __h2 = __h1)) AS __h",
        ),
        ("select 1 as x from t having max(b)", "SELECT `x` FROM (SELECT 1 AS `x`, MAX(b) AS __h0 FROM t HAVING __h0) AS __h"),
        # The order and the limit of one SELECT stay with it; those of a set operation are left where they are.
        (
            "select a from t group by a having sum(b) > 0 order by sum(b) limit 3",
            "SELECT `a` FROM (SELECT a AS `a`, SUM(b) AS __h0 FROM t GROUP BY a HAVING __h0 > 0 ORDER BY SUM(b) LIMIT 3) AS __h",
        ),
        (
            "select a from t union select a from t group by a having sum(b) > 0 order by a limit 3",
            "select a from t union SELECT `a` FROM (SELECT a AS `a`, SUM(b) AS __h0 FROM t GROUP BY a HAVING __h0 > 0) AS __h "
            "order by a limit 3",
        ),
        (
            "select distinct a from t group by a, c having sum(b) > 0",
            "SELECT DISTINCT `a` FROM (SELECT a AS `a`, SUM(b) AS __h0 FROM t GROUP BY a, c HAVING __h0 > 0) AS __h",
        ),
        (
            "select k > (select max(i) from u having sum(i) > 0) as g, exists (select 1 from u having sum(i) > 0) as e from t",
            "select k > (SELECT `__c0` FROM (SELECT MAX(i) AS `__c0`, SUM(i) AS __h0 FROM u HAVING __h0 > 0) AS __h) as g, "
            "exists (SELECT `__c0` FROM (SELECT 1 AS `__c0`, SUM(i) AS __h0 FROM u HAVING __h0 > 0) AS __h) as e from t",
        ),
        # In subqueries, whose columns nobody names; an aggregate of a subquery in HAVING is not one of the query.
        (
            "select k from t where k in (select max(i) from u having sum(i) > 0)",
            "select k from t where k in "
            "(SELECT `__c0` FROM (SELECT MAX(i) AS `__c0`, SUM(i) AS __h0 FROM u HAVING __h0 > 0) AS __h)",
        ),
        (
            "select a from t group by a having sum(b) > (select sum(b) from u)",
            "SELECT `a` FROM (SELECT a AS `a`, SUM(b) AS __h0 FROM t GROUP BY a HAVING __h0 > (SELECT SUM(b) FROM u)) AS __h",
        ),
        (
            "with c as (select a from t group by a having count(b) > 1) select * from c",
            "with c as (SELECT `a` FROM (SELECT a AS `a`, COUNT(b) AS __h0 FROM t GROUP BY a HAVING __h0 > 1) AS __h) "
            "select * from c",
        ),
        # Nothing to do, or columns whose names are not known.
        ("select a from t group by a having a > 0", None),
        ("select sum(a) from t having sum(a) > 0", None),
        ("(select sum(a) from t having sum(a) > 0)", None),
        ("select * from (select sum(a) from t having sum(a) > 0)", None),
        ("select * from u, (select sum(a) from t having sum(a) > 0) as s", None),
        ("select * from (select a, b from t) having sum(a) > 0", None),
        ("select distinct a from t group by a, c having sum(b) > 0 limit 3", None),
        ("select a, b as a from t group by a, b having sum(b) > 0", None),
        ("select 'having', `having` from t", None),
    ],
)
def test_rewrite(query: str, rewritten: str | None) -> None:
    assert select_having_aggregates(Edited(query)).text == (rewritten or query)
    again = select_having_aggregates(Edited(rewritten or query))
    assert again.text == (rewritten or query)


def test_one_within_another() -> None:
    query = "select a from (select a, b from t group by a, b having count(*) > 1) group by a having sum(b) > 0"
    inner = "SELECT `a`, `b` FROM (SELECT a AS `a`, b AS `b`, COUNT(*) AS __h0 FROM t GROUP BY a, b HAVING __h0 > 1) AS __h"
    assert select_having_aggregates(Edited(query)).text == (
        f"SELECT `a` FROM (SELECT a AS `a`, SUM(b) AS __h0 FROM ({inner}) GROUP BY a HAVING __h0 > 0) AS __h"
    )
