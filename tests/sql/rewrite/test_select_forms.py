"""Forms of SELECT in other words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.refused import ADVICE, CallRefused
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("select * exclude (a), t.* exclude (b) from t", "select * EXCEPT (a), t.* EXCEPT (b) from t"),
        ("select a from t order by a limit 1, 2", "select a from t order by a LIMIT 2 OFFSET 1"),
        ("select limit, a from t limit 2", "select limit, a from t limit 2"),
        ("select limit a, b from t", "select limit a, b from t"),
        ("select a from t order by a fetch first 2 rows only", "select a from t order by a LIMIT 2"),
        ("select a from t fetch next row only", "select a from t LIMIT 1"),
        ("select a from t order by a offset 3 rows fetch next 2 rows only", "select a from t order by a LIMIT 2 OFFSET 3"),
        ("select a as 'My x', b as 'y' from t", "select a as `My x`, b as `y` from t"),
        ("select cast('1' as int) as x, 'a' as y from t", "select cast('1' as int) as x, 'a' as y from t"),
        ("select distinct on (a, f(b)) a, c from t where c limit 3",
         "select  a, c from t where c QUALIFY ROW_NUMBER() OVER (PARTITION BY a, f(b) ORDER BY a, f(b)) = 1 limit 3"),
        ("select * from (select distinct on (a) a, b from t order by a, b desc) x order by 1",
         "select * from (select  a, b from t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY a, b desc) = 1 order by a, b desc) "
         "x order by 1"),
        ("select distinct on (a) a from t qualify b or c fetch first 1 row only",
         "select  a from t qualify (b or c) AND ROW_NUMBER() OVER (PARTITION BY a ORDER BY a) = 1 LIMIT 1"),
        ("select distinct a, b from t", "select distinct a, b from t"),
        ("select * from t cross apply f(t.a) as x outer apply (select 1) as y (b) where c",
         "select * from t CROSS JOIN LATERAL f(t.a) as x LEFT JOIN LATERAL (select 1) as y (b) ON TRUE where c"),
        ("select * from t outer apply (select 1) where c", "select * from t LEFT JOIN LATERAL (select 1) ON TRUE where c"),
    ],
)  # fmt: skip
def test_texts(written: str, wanted: str) -> None:
    assert translate(Edited(written), Definitions()).text == wanted


def test_places_lead_back() -> None:
    edited = translate(Edited("select distinct on (a) a, zork from t limit 1, 2"), Definitions())
    start = edited.text.index("zork")
    first, last = edited.origin(start, start + 4)
    assert "select distinct on (a) a, zork from t limit 1, 2"[first:last] == "zork"


@pytest.mark.core
def test_values(sessions: SparkSessions) -> None:
    rows = "from values (1, 10, 'x'), (1, 20, 'y'), (2, 5, 'z') as t(a, b, c)"
    found = {
        query: sorted((tuple(row) for row in sessions.small.sql(translate(Edited(query), Definitions()).text).collect()), key=repr)
        for query in (
            f"select distinct on (a) a, c {rows} order by a, b desc",
            f"select distinct on (a) a, sum(b) as s {rows} group by a, c order by a, c desc",
            f"select * exclude (b) {rows} order by c limit 1, 1",
            f"select l.n {rows} outer apply (select t.b as n where t.a = 1) as l",
            f"select l.n {rows} cross apply (select t.b as n where t.a = 1) as l",
        )
    }
    assert list(found.values()) == [
        [(1, "y"), (2, "z")],
        [(1, 20), (2, 5)],
        [(1, "y")],
        [(10,), (20,), (None,)],
        [(10,), (20,)],
    ]


@pytest.mark.parametrize(
    ("written", "at", "says"),
    [
        *((f"select {name}(a, b) from t", f"{name}(a, b)", f"no function {name.upper()}") for name in ADVICE),
        ("select sum(a) within distinct (b) from t", "within distinct", "subquery"),
        ("select format_date('%Y %U', d) from t", "'%Y %U'", "does not know %U"),
        ("select parse_date('%e', d) from t", "'%e'", "does not know %e"),
        ("select format_date(f, d) from t", "f", "literal text"),
    ],
)
def test_what_is_refused_says_what_to_write(written: str, at: str, says: str) -> None:
    with pytest.raises(CallRefused, match=says) as refused:
        translate(Edited(written), Definitions())
    assert written[refused.value.start : refused.value.end] == at
