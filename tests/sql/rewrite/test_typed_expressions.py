"""Expressions whose meaning depends on types."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.typed_expressions import typed_expressions
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.values.float_division import quotient, with_plain_quotients

RELATIONS = {
    "t": (
        ("k", "int"),
        ("d", "decimal(5,2)"),
        ("f", "double"),
        ("r", "float"),
        ("i", "interval day to second"),
        ("l", "array<int>"),
    ),
    "u": (("v", "variant"), ("s", "string"), ("f", "double")),
}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("select f / k as a, d / k as b, k / 2 as c, 1 / r as e from t",
         f"select {quotient('f', 'k')} as a, d / k as b, k / 2 as c, {quotient('1', 'r')} as e from t"),
        ("select f * 2 / k / r as a from t", f"select {quotient(quotient('f * 2', 'k'), 'r')} as a from t"),
        ("select k / (d / f) as a from t", f"select {quotient('k', '(' + quotient('d', 'f') + ')')} as a from t"),
        # What is never zero needs nothing.
        ("select f / 100 as a, f / nullif(k, 0) as b, i / 2e0 as c from t", None),
        ("select f / 0 as a, i / f as b from t", f"select {quotient('f', '0')} as a, i / f as b from t"),
        ("select k, sum(f) / count(*) as a from t group by k having max(k) / max(f) > 1",
         f"select k, {quotient('sum(f)', 'count(*)')} as a from t group by k having {quotient('max(k)', 'max(f)')} > 1"),
        ("with c as (select f / k as q from t) select q / (select max(f) from u) as a from c where q / 3 > 0",
         f"with c as (select {quotient('f', 'k')} as q from t) select {quotient('q', '(select max(f) from u)')} as a from c"
         " where q / 3 > 0"),
        # Nobody knows the type of a lambda function's parameter.
        ("select transform(l, x -> x / f) as a, transform(l, x -> x / k) as b from t", None),
        ("select k from t join u on t.f / u.f > 1", f"select k from t join u on {quotient('t.f', 'u.f')} > 1"),
        ("select '/' as a, typeof(s) as b, typeof(f + 1) as c from u", None),
    ],
)  # fmt: skip
def test_floating_point_numbers_are_divided_by_zero(analyzer: Analyzer, query: str, wanted: str | None) -> None:
    text = typed_expressions(Edited(query), analyzer).text
    assert text == (query if wanted is None else wanted)
    assert with_plain_quotients(text) == query, "layouts are what they were"


def test_typeof_looks_into_variants(analyzer: Analyzer) -> None:
    text = typed_expressions(Edited("select typeof(v) as a, typeof(s) as b from u"), analyzer).text
    assert text.startswith("select COALESCE(CASE REGEXP_EXTRACT(SCHEMA_OF_VARIANT(v)")
    assert text.endswith("END, 'NULL') as a, typeof(s) as b from u")
