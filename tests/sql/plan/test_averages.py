"""AVG of a DECIMAL(p,s) is a DECIMAL(p,s) wherever it stands."""

from __future__ import annotations

import pytest

from airflow_pipelines.engine.analyzer import SparkAnalyzer
from airflow_pipelines.engine.sessions import SparkSessions
from airflow_pipelines.sql.plan.averages import keep_decimal_scale


@pytest.fixture(scope="module")
def analyzer(sessions: SparkSessions) -> SparkAnalyzer:
    analyzer = SparkAnalyzer(sessions.small)
    analyzer.declare({"t": (("k", "int"), ("d", "decimal(5,2)"), ("w", "decimal(38,10)"), ("s", "string"))})
    return analyzer


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("select avg(d) from t", "decimal(5,2)"),
        ("select mean(d) from t", "decimal(5,2)"),
        ("select AVG ( ALL d ) from t", "decimal(5,2)"),
        ("select avg(distinct d) from t", "decimal(5,2)"),
        ("select avg(d) filter (where k > 1 and s = 'avg(d)') from t", "decimal(5,2)"),
        ("select avg(d) over (partition by k) from t", "decimal(5,2)"),
        ("select avg(d) over w from t window w as (order by k)", "decimal(5,2)"),
        ("select avg(w) from t", "decimal(38,10)"),
        ("select avg(x.a) from (select avg(d) as a from t group by k) x", "decimal(5,2)"),
        ("with c as (select avg(d) as a from t group by k) select avg(a) from c", "decimal(5,2)"),
        ("select (select avg(d) from t)", "decimal(5,2)"),
        ("select avg(d - (select avg(d) from t)) from t", "decimal(6,2)"),
        ("select avg(d) filter (where d > (select avg(d) from t)) from t", "decimal(5,2)"),
        ("select max(a) from (select avg(d) as a from t union all select avg(d + 1) from t)", "decimal(6,2)"),
        ("select avg(a.d) from t a join t b on a.k = b.k", "decimal(5,2)"),
        ("select avg(k) from t", "double"),
    ],
)
def test_the_scale_is_kept(analyzer: SparkAnalyzer, query: str, kind: str) -> None:
    assert analyzer.columns(keep_decimal_scale(query, analyzer))[0][1] == kind


def test_only_averages_are_rewritten(analyzer: SparkAnalyzer) -> None:
    query = "SELECT  k, AVG(d) /* avg(d) */ AS \"avg(d)\", 'avg(d)' AS s, avg(k) FROM t GROUP BY k HAVING avg(d) > 1"
    total = "CAST(SUM(d) / NULLIF(COUNT(d), 0) AS DECIMAL(5,2))"
    assert keep_decimal_scale(query, analyzer) == (
        f"SELECT  k, {total} /* avg(d) */ AS \"avg(d)\", 'avg(d)' AS s, avg(k) FROM t GROUP BY k HAVING {total} > 1"
    )
    plain = "select k from t"
    assert keep_decimal_scale(plain, analyzer) is plain
