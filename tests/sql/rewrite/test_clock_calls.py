"""Clock functions in the text of a query."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.rewrite.clock_calls import clock_edits
from airflow_pipelines.sql.syntax.edits import Edited

NOW = "(SELECT `__now` FROM `now$0`)"


@pytest.mark.parametrize(
    ("query", "rewritten"),
    [
        ("select now(), current_timestamp, CURRENT_TIMESTAMP()", f"select {NOW}, {NOW}, {NOW}"),
        ("select curdate() = current_date", f"select CAST({NOW} AS DATE) = CAST({NOW} AS DATE)"),
        ("select localtimestamp ( )", f"select {NOW}"),
        ("select unix_timestamp()", f"select UNIX_SECONDS(CAST({NOW} AS TIMESTAMP))"),
        # Arguments, names, strings and columns are left alone.
        ("select unix_timestamp(ts), now, t.now, x as now, `now`, 'now()' from t", None),
        ("select current_date from t", None),
    ],
)
def test_calls_become_reads_of_the_clock(query: str, rewritten: str | None) -> None:
    assert Edited(query).edit(clock_edits(query, {"current_date"} if " t" in query else set())).text == (rewritten or query)
