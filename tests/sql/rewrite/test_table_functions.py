"""VARIANT_EXPLODE is an expression that INLINE takes, wherever it stands; LATERAL is implied in FROM."""

from __future__ import annotations

import re

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited

PARTS = re.compile(
    r"\(COALESCE\(TRANSFORM\(TRY_CAST\((\S+) AS ARRAY<VARIANT>\), .* TRANSFORM\(MAP_ENTRIES\(TRY_CAST\(\1 AS "
    r"MAP<STRING, VARIANT>\)\), .* __e\.value AS value\)\)\)\)"
)


def translated(text: str) -> str:
    """A text in Spark's words, with ``(... x)`` for the parts of VARIANT ``x``."""
    return PARTS.sub(r"(... \1)", translate(Edited(text), Definitions({})).text)


@pytest.mark.parametrize(
    ("written", "rewritten"),
    [
        ("t lateral view variant_explode(v) e where x", "t lateral view INLINE(... v) e AS pos, key, value where x"),
        (
            "t lateral view explode(a) as c lateral view outer variant_explode(t.v) e as p, k, x group by p",
            "t lateral view explode(a) as c lateral view outer INLINE(... t.v) e as p, k, x group by p",
        ),
        ("t lateral view variant_explode_outer(v) limit 1", "t lateral view INLINE_OUTER(... v) AS pos, key, value limit 1"),
        ("t, lateral variant_explode(v) as e", "t, lateral INLINE(... v) as e(pos, key, value)"),
        ("t, lateral variant_explode(v)", "t, lateral INLINE(... v) AS variant_explode(pos, key, value)"),
        ("t left join lateral variant_explode(v) e(a, b, c) on true", "t left join lateral INLINE(... v) e(a, b, c) on true"),
        ("t, variant_explode(t.v) as e", "t, LATERAL INLINE(... t.v) as e(pos, key, value)"),
        ("t left join posexplode(a) as e(p, c) on p > 1", "t left join LATERAL posexplode(a) as e(p, c) on p > 1"),
        ("t, json_tuple(t.s, 'a', 'b') as e(a, b)", "t, LATERAL json_tuple(t.s, 'a', 'b') as e(a, b)"),
    ],
)
def test_generators_in_from(written: str, rewritten: str) -> None:
    assert translated(f"select 1 from {written}") == f"select 1 from {rewritten}"


def test_a_variant_in_the_list() -> None:
    assert translated("select a, variant_explode(v) from t") == "select a, INLINE(... v) from t"


@pytest.mark.parametrize(
    "text",
    [
        "select 1 from t lateral view explode(a) e as c",
        "select 1 from t, lateral explode(a) as x",
        "select a, explode(b), posexplode(c) from t",
        "select 1 from t, explode(array(1, null)) as e(c)",
        "select 1 from t where a in (b, stack(c))",
    ],
)
def test_other_generators_stay_as_they_are(text: str) -> None:
    assert translated(text) == text
