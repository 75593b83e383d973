"""MAPs are compared by their entries in the order of the keys."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.rewrite.map_comparisons import compare_maps
from airflow_pipelines.sql.syntax.edits import Edited

KIND = "MAP<STRING, INT>"


def compared(function: str, query: str, refused: str, kind: str = KIND) -> str:
    """A query after Spark has refused a part of it because it does not order a type."""
    start = query.index(refused)
    return Edited(query).edit(compare_maps(kind, function, query, start, start + len(refused))).text


@pytest.mark.parametrize(
    ("function", "query", "refused", "rewritten"),
    [
        ("=", "where m = n and x", "m = n", "where SORT_ARRAY(MAP_ENTRIES(m)) = SORT_ARRAY(MAP_ENTRIES(n)) and x"),
        ("=", "on t.m <> f(u.m, 1)", "t.m <> f(u.m, 1)", "on SORT_ARRAY(MAP_ENTRIES(t.m)) <> SORT_ARRAY(MAP_ENTRIES(f(u.m, 1)))"),
        ("<=>", "where m <=> n", "m <=> n", "where SORT_ARRAY(MAP_ENTRIES(m)) <=> SORT_ARRAY(MAP_ENTRIES(n))"),
        (
            "<=>",
            "where a.m is not distinct from n",
            "is not distinct from n",
            "where SORT_ARRAY(MAP_ENTRIES(a.m)) is not distinct from SORT_ARRAY(MAP_ENTRIES(n))",
        ),
        (
            "in",
            "where m not in (n, map(1, 2))",
            "not in (n, map(1, 2))",
            "where SORT_ARRAY(MAP_ENTRIES(m)) not in (SORT_ARRAY(MAP_ENTRIES(n)), SORT_ARRAY(MAP_ENTRIES(map(1, 2))))",
        ),
        (
            "sortorder",
            "order by i, m desc nulls last",
            "m desc nulls last",
            "order by i, SORT_ARRAY(MAP_ENTRIES(m)) desc nulls last",
        ),
        ("max_by", "select max_by(i, m) from t", "max_by(i, m)", "select max_by(i, SORT_ARRAY(MAP_ENTRIES(m))) from t"),
        ("min", "select min(m) over () from t", "min(m)", "select MIN_BY(m, SORT_ARRAY(MAP_ENTRIES(m))) over () from t"),
    ],
)
def test_what_compares_maps(function: str, query: str, refused: str, rewritten: str) -> None:
    assert compared(function, query, refused) == rewritten


def test_maps_within_maps_and_arrays() -> None:
    found = compared("=", "where a = b", "a = b", "ARRAY<MAP<STRING, INT>>")
    assert (
        found == "where TRANSFORM(a, __e0 -> SORT_ARRAY(MAP_ENTRIES(__e0))) = TRANSFORM(b, __e0 -> SORT_ARRAY(MAP_ENTRIES(__e0)))"
    )


@pytest.mark.parametrize(
    ("function", "query", "refused", "kind"),
    [
        ("greatest", "select greatest(m, n) from t", "greatest(m, n)", KIND),
        ("max", "select max(distinct m) from t", "max(distinct m)", KIND),
        ("=", "where r = s", "r = s", "STRUCT<m: MAP<STRING, INT>>"),
        ("=", "where v = w", "v = w", "VARIANT"),
        ("=", "where m = n", "m = n", "MAP<STRING, VARIANT>"),
        # Where the left side begins is not known.
        ("<=>", "where case when x then m end is distinct from n", "is distinct from n", KIND),
    ],
)
def test_what_stays_for_spark_to_refuse(function: str, query: str, refused: str, kind: str) -> None:
    assert compared(function, query, refused, kind) == query
