"""Tables that a subquery reads from outside get a name of which it has no column."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.rewrite.hidden_tables import hidden_table_edits
from airflow_pipelines.sql.syntax.edits import Edited


@pytest.mark.parametrize(
    ("query", "rewritten"),
    [
        (
            "select id from part where not exists (select 1 from price where price.part = part.id)",
            "select id from part AS `__outer_part` where not exists (select 1 from price where price.part = `__outer_part`.id)",
        ),
        (
            "select part.* from x join t as part on x.i = part.i where part.a in (select part from price where b = part.b)",
            "select `__outer_part`.* from x join t as `__outer_part` on x.i = `__outer_part`.i "
            "where `__outer_part`.a in (select part from price where b = `__outer_part`.b)",
        ),
        # Read where it is declared, or not declared at all.
        ("select part.id from part where part.id in (select part.id from part)", None),
        ("select price.part.id from price where part.id > 1", None),
    ],
)
def test_only_what_is_read_from_outside_is_renamed(query: str, rewritten: str | None) -> None:
    assert Edited(query).edit(hidden_table_edits(query, "part")).text == (rewritten or query)
