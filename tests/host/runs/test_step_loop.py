"""Steps of a running pipeline: rows in, answers out."""

from __future__ import annotations

import pytest

from tests.host.driver import ROWS, TOTALS, Pipeline, totals

pytestmark = pytest.mark.core


def test_rows_are_processed_and_queried(running: Pipeline) -> None:
    assert running.statuses() == ["Initializing", "Running"]
    assert running.transitions()[-1].details == {"connector_stats": {"num_errors": 0}}
    running.insert("t", *ROWS)
    assert totals(running) == TOTALS
    running.ingest("t", {"delete": {"id": 1}}, {"insert": {"id": 3, "v": 30, "name": "b"}})
    assert totals(running) == [{"name": "a", "total": 15, "n": 1}, {"name": "b", "total": 30, "n": 1}]
    metrics = running.stats()["global_metrics"]
    assert metrics["total_input_records"] == metrics["total_processed_records"] == metrics["total_completed_records"] == 5
    steps = running.get("steps").json()
    assert [step["input_rows"] > 0 for step in steps] == [True, True]
    assert {figure["view"] for figure in steps[-1]["operators"]} >= {"totals"}


def test_ad_hoc_changes_are_visible_at_once(running: Pipeline) -> None:
    assert running.query("INSERT INTO t VALUES (1, 5, 'a'), (2, 7, 'a')") == [{"count": 2}]
    assert totals(running) == [{"name": "a", "total": 12, "n": 2}]
    running.query("DELETE FROM t WHERE v < 6")
    assert totals(running) == [{"name": "a", "total": 7, "n": 1}]
