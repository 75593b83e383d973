"""Which expressions look at representations, which hand them on, and which do neither."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.expressions import NotIncremental
from airflow_pipelines.sql.plan.properties.representation import propagates_representation
from airflow_pipelines.sql.syntax.dialect import parse_query


@pytest.mark.parametrize(
    "text",
    [
        "x", "-x", "x + 1", "x * y", "x / 2", "x / y", "x / x", "try_divide(x, y)", "x % 2",
        "coalesce(x, 0)", "max(x)", "max(x) filter (where y)", "cast(x as double)",
        "case when y then x end", "array(x)", "x['a']", "max(x) over (order by y)", "abs(x)", "round(x, 2)", "explode(x)",
        "(select max(x) from t)", "array_sort(x, (a, b) -> a.k - b.k)", "sort_array(x)", "filter(x, e -> e > 1)",
        "transform(x, e -> e.k + 1)", "transform(y, e -> e + x)",
    ],
)  # fmt: skip
def test_these_hand_a_representation_on(text: str) -> None:
    assert propagates_representation(parse_query(f"SELECT {text}").expressions[0], {"x"})


@pytest.mark.parametrize(
    "text",
    [
        "y", "x = 1", "x <=> y", "x is null", "x in (1, 2)", "x between 1 and 2", "sum(x)", "avg(x)", "count(distinct x)",
        "cast(x as int)", "2 / x", "(y - 1) / nullif(x, 0)", "try_divide(y, x)",
        "case when x > 0 then 1 end", "row_number() over (partition by x order by x)", "isnan(x)", "size(x)",
        "sum(x) over (partition by y order by x)", "exists (select 1 from t where t.x = a.y)",
        "exists(x, e -> e > 1)", "forall(x, e -> e.k = 1)", "transform(x, e -> y)", "transform(y, x -> cast(x as string))",
    ],
)  # fmt: skip
def test_these_are_the_same_for_all_representations(text: str) -> None:
    assert not propagates_representation(parse_query(f"SELECT {text}").expressions[0], {"x"})


@pytest.mark.parametrize(
    "text",
    [
        "cast(x as string)", "to_json(x)", "concat(x, 'a')", "x || 'a'", "2 div x", "map_keys(x)", "f(x)", "x like '-%'",
        "schema_of_variant(x)", "cast(max(x) as string)", "sum(cast(x as string) = '-0.0')",
        "exists(x, e -> cast(e as string) = '-0.0')", "filter(x, e -> to_json(e.k) = '')", "array_sort(x, (a, b) -> f(a))",
        "transform(y, e -> transform(x, x -> f(x)))", "f(x) / 2", "1 / f(x)", "aggregate(x, 0, (a, e) -> a + e)",
    ],
)  # fmt: skip
def test_these_may_look(text: str) -> None:
    with pytest.raises(NotIncremental, match="may distinguish representations"):
        propagates_representation(parse_query(f"SELECT {text}").expressions[0], {"x"})


def test_columns_of_derived_tables_are_followed() -> None:
    assert propagates_representation(parse_query("select a.z from (select -x as z from t) as a"), {"x"})
    with pytest.raises(NotIncremental, match="CAST"):
        propagates_representation(parse_query("with a as (select -x as z from t) select cast(a.z as string) from a"), {"x"})


def test_what_reads_other_columns_is_free_to_look() -> None:
    assert not propagates_representation(parse_query("select cast(y as string), to_json(z) from t where x > 1"), {"x"})
