"""Going on from what another release saved, with the program as it was and with a changed one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.another_release import another_release, release_without_canonical_form
from tests.host.driver import Pipeline

Make = Callable[..., Pipeline]
EXACTLY_ONCE = {"model": "exactly_once", "checkpoint_interval_secs": 60}


def program(sink: Path) -> str:
    out = [{"name": "out", "transport": {"name": "file_output", "config": {"path": str(sink)}}, "format": {"name": "csv"}}]
    return f"""
CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT, name VARCHAR) WITH ('materialized' = 'true');
CREATE MATERIALIZED VIEW totals WITH ('connectors' = '{json.dumps(out)}') AS SELECT name, SUM(v) AS total FROM t GROUP BY name;
CREATE VIEW large AS SELECT id, v FROM t WHERE v > 10;
"""


def totals(pipeline: Pipeline) -> dict[str, int]:
    return {row["name"]: row["total"] for row in pipeline.query("SELECT * FROM totals")}


def saved_by_another_release(make: Make, sink: Path) -> Pipeline:
    """A pipeline with a checkpoint and a step after it."""
    with another_release():
        pipeline = make(program(sink) + "-- of another release", fault_tolerance=EXACTLY_ONCE)
        pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 5, "name": "a"}, {"id": 2, "v": 7, "name": "b"})
    pipeline.checkpoint()
    pipeline.insert("t", {"id": 3, "v": 20, "name": "a"})
    pipeline.kill()
    pipeline.program = program(sink)
    return pipeline


@pytest.mark.core
def test_views_that_are_kept_in_another_way_are_evaluated_anew_unseen(make: Make, tmp_path: Path) -> None:
    sink = tmp_path / "out.csv"
    pipeline = saved_by_another_release(make, sink)
    before = sink.read_text().splitlines()
    # Nothing changes for anybody, so that there is nothing to reject.
    pipeline.start(bootstrap_policy="reject")
    assert pipeline.statuses() == ["Initializing", "Replaying", "Running"]
    assert "view totals is evaluated anew from the tables" in pipeline.log
    assert "totals was saved in another layout" in pipeline.log
    assert totals(pipeline) == {"a": 25, "b": 7}
    pipeline.ingest("t", {"delete": {"id": 1}}, {"insert": {"id": 4, "v": 1, "name": "b"}})
    assert totals(pipeline) == {"a": 20, "b": 8}
    lines = sink.read_text().splitlines()
    assert lines[: len(before)] == before
    assert sorted(lines[len(before) :]) == ["a,20,1", "a,25,-1", "b,7,-1", "b,8,1"]
    pipeline.suspend()
    pipeline.start()
    assert pipeline.log.count("evaluated anew") == 1, "what this release saved it knows"
    assert totals(pipeline) == {"a": 20, "b": 8}


def test_views_to_be_evaluated_anew_are_shown_beside_the_change_to_approve(make: Make, tmp_path: Path) -> None:
    pipeline = saved_by_another_release(make, tmp_path / "out.csv")
    pipeline.program = pipeline.program.replace("v > 10", "v > 6")
    waiting = pipeline.start("AwaitingApproval")
    assert waiting.details is not None
    assert waiting.details["approval_diff"]["program_diff"]["modified_views"] == ["large"]
    assert waiting.details["views_evaluated_anew"] == {"totals": "totals was saved in another layout"}
    pipeline.post("approve")
    pipeline.wait_for("Running")
    assert totals(pipeline) == {"a": 25, "b": 7}
    pipeline.insert("t", {"id": 2, "v": 9, "name": "b"})
    assert totals(pipeline) == {"a": 25, "b": 9}


def test_rows_of_a_release_without_a_canonical_form_go_as_they_came(make: Make, tmp_path: Path) -> None:
    text = """
CREATE TABLE t (id BIGINT, x DOUBLE, m MAP<VARCHAR, INT>) WITH ('materialized' = 'true');
CREATE MATERIALIZED VIEW seen AS SELECT id, CAST(x AS VARCHAR) AS x, TO_JSON(m) AS m FROM t;
"""
    row = {"x": -0.0, "m": {"b": 1, "a": 2}}
    with release_without_canonical_form():
        pipeline = make(text, fault_tolerance=EXACTLY_ONCE)
        pipeline.start()
        pipeline.insert("t", {"id": 1, **row})
        pipeline.checkpoint()
        pipeline.insert("t", {"id": 2, **row})
        assert [row["x"] for row in pipeline.query("SELECT * FROM seen")] == ["-0.0", "-0.0"], "as it came"
        pipeline.kill()
    pipeline.start()
    shown = {"x": "0.0", "m": '{"a":2,"b":1}'}
    assert pipeline.query("SELECT * FROM seen ORDER BY id") == [{"id": 1, **shown}, {"id": 2, **shown}]
    pipeline.ingest("t", {"delete": {"id": 1, **row}}, {"delete": {"id": 2, **row}})
    assert pipeline.query("SELECT * FROM seen") == []


def test_views_are_bootstrapped_concurrently_and_tables_are_not(make: Make, tmp_path: Path) -> None:
    sink = tmp_path / "out.csv"
    pipeline = make(program(sink).replace("CREATE VIEW large", "CREATE TABLE plain (x INT); CREATE VIEW large"))
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 5, "name": "a"}, {"id": 2, "v": 7, "name": "b"})
    pipeline.suspend()
    before, shown = pipeline.program, sink.read_text()
    changes = {
        "cannot be bootstrapped concurrently: t2": before + "CREATE TABLE t2 (x INT);",
        "is no replay source for them": before + "CREATE VIEW v AS SELECT x FROM plain;",
    }
    for reason, changed in changes.items():
        pipeline.program = changed
        refused = pipeline.start("Stopped", bootstrap_policy="allow", concurrent_bootstrap=True)
        assert refused.error is not None
        assert refused.error["error_code"] == "BootstrapNotAllowed"
        assert reason in refused.error["message"]
        pipeline.kill()

    pipeline.program = before.replace("SUM(v)", "MAX(v)")
    pipeline.start("AwaitingApproval")
    assert pipeline.post("approve", concurrent_bootstrap=True).status_code == 200
    pipeline.wait_for("Running")
    assert pipeline.statuses()[-3:] == ["ConcurrentBootstrapping", "Synchronizing", "Running"]
    assert totals(pipeline) == {"a": 5, "b": 7}
    assert sorted(sink.read_text()[len(shown) :].splitlines()) == ["a,5,1", "b,7,1"]

    pipeline.suspend()
    pipeline.program += "CREATE TABLE t2 (x INT);"
    pipeline.start("AwaitingApproval")
    refusal = pipeline.post("approve", concurrent_bootstrap=True)
    assert (refusal.status_code, refusal.json()["error_code"]) == (400, "BootstrapNotAllowed")
    assert pipeline.statuses()[-1] == "AwaitingApproval", "nothing was approved"
    assert pipeline.post("approve").status_code == 200
    pipeline.wait_for("Running")
