"""LEFT JOIN UNNEST of a MAP becomes a generator with NULLs for no entries; of an array it stays."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.rewrite.outer_unnest import outer_unnests_of_maps
from airflow_pipelines.sql.syntax.edits import Edited


class Types:
    """Takes ``t.m`` for a MAP, and anything else for an array."""

    def declare(self, relations: Mapping[str, ColumnTypes]) -> None: ...

    def columns(self, query: str) -> ColumnTypes:
        return (("p0", "map<string,int>" if query.startswith("SELECT t.m AS") else "array<int>"),)

    def same_plan(self, one: str, other: str) -> bool:
        return one == other


@pytest.mark.parametrize(
    ("join", "rewritten"),
    [
        ("left join LATERAL EXPLODE(t.m) as e(k, v) on true", "CROSS JOIN LATERAL EXPLODE_OUTER(t.m) as e(k, v)"),
        (
            "left join LATERAL INLINE(TRANSFORM(MAP_ENTRIES(t.m), (x, i) -> STRUCT(x.key, i))) as e(k, v) on true",
            "CROSS JOIN LATERAL INLINE_OUTER(TRANSFORM(MAP_ENTRIES(t.m), (x, i) -> STRUCT(x.key, i))) as e(k, v)",
        ),
        ("left join LATERAL INLINE(t.a) as e(k, v) on true", None),
        ("left outer join LATERAL EXPLODE(t.m) e(k, v) on true where k", "CROSS JOIN LATERAL EXPLODE_OUTER(t.m) e(k, v) where k"),
        ("left join LATERAL EXPLODE(t.a) as e(x) on true", None),
        # The condition decides which entries there are.
        ("left join LATERAL EXPLODE(t.m) as e(k, v) on k = 'a'", None),
        ("left join LATERAL EXPLODE(t.m) as e(k, v) on true = (v > 1)", None),
        ("join LATERAL EXPLODE(t.m) as e(k, v) on true", None),
    ],
)
def test_outer_joins_with_what_a_map_holds(join: str, rewritten: str | None) -> None:
    found = outer_unnests_of_maps(Edited(f"select 1 from t {join}"), Types()).text
    assert " ".join(found.split()) == f"select 1 from t {rewritten or join}"
