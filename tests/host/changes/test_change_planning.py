"""What a change of the program would do: found out from a running pipeline, and shown again when it awaits approval."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_pipelines.host.changes.evaluation_times import UNMEASURED, EvaluationTimes, Factors
from tests.host.driver import Pipeline

Make = Callable[..., Pipeline]

SOURCE = [{"name": "in", "transport": {"name": "file_input", "config": {"path": "/dev/null"}}, "format": {"name": "csv"}}]
BEFORE = f"""
CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT) WITH ('materialized' = 'true', 'connectors' = '{json.dumps(SOURCE)}');
CREATE TABLE plain (x INT);
CREATE MATERIALIZED VIEW totals AS SELECT v, COUNT(*) AS n FROM t GROUP BY v;
CREATE MATERIALIZED VIEW counts AS SELECT x, COUNT(*) AS n FROM plain GROUP BY x;
CREATE VIEW gone AS SELECT v FROM totals WHERE n > 1;
"""


def ask(pipeline: Pipeline, verb: str, body: dict[str, Any]) -> httpx.Response:
    return pipeline.http.post(f"/deployments/{pipeline.deployment_id}/{verb}", json=body)


def planned(pipeline: Pipeline, program: str) -> dict[str, Any]:
    answer = ask(pipeline, "plan", {"program_code": program})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_plan_is_what_approval_shows_and_does_not_touch_the_running_pipeline(make: Make) -> None:
    pipeline = make(BEFORE)
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 5}, {"id": 2, "v": 5}, {"id": 3, "v": 7})
    pipeline.insert("plain", {"x": 1}, {"x": 1})
    steps = pipeline.stats()["global_metrics"]["total_completed_steps"]
    assert planned(pipeline, BEFORE + "-- a comment")["plan"]["evaluated"] == {}

    changed = BEFORE.replace("COUNT(*) AS n FROM t ", "COUNT(*) AS n, MAX(id) AS last FROM t ").replace("VIEW gone", "VIEW kept")
    changed = changed.replace("VIEW counts", "VIEW renamed").replace("n > 1", "n > 0").replace("/dev/null", "/dev/zero")
    started = time.monotonic()
    found = planned(pipeline, changed)
    assert time.monotonic() - started < 5, "it takes a second on a machine that does nothing else"
    assert pipeline.stats()["global_metrics"]["total_completed_steps"] == steps
    assert found["approval_diff"]["program_diff"] == {
        "added_tables": [],
        "removed_tables": [],
        "modified_tables": [],
        "added_views": ["kept", "renamed"],
        "removed_views": ["counts", "gone"],
        "modified_views": ["totals"],
    }
    plan = found["plan"]
    assert plan["refusals"] == []
    assert plan["evaluated"].keys() == {"totals", "kept"}, "the renamed view has its contents already"
    assert plan["evaluated"]["totals"]["reads"] == {"t": 3}
    assert plan["rows"] == 3
    assert 0 < plan["seconds"] < 5
    assert plan["seconds_at_most"] == pytest.approx(25 * plan["seconds"]), "nothing was measured yet"
    assert plan["dropped"].keys() == {"totals"}, "the view that was only renamed loses nothing"
    changes = {name: (change["kind"], change["change"]) for name, change in plan["relations"].items()}
    assert changes == {
        "t": ("table", "connectors"),
        "totals": ("view", "modified"),
        "counts": ("view", "removed"),
        "renamed": ("view", "added"),
        "gone": ("view", "removed"),
        "kept": ("view", "added"),
    }
    totals = plan["relations"]["totals"]
    assert totals["saved"]["sql"] == "CREATE MATERIALIZED VIEW totals AS SELECT v, COUNT(*) AS n FROM t GROUP BY v"
    assert "MAX(id) AS last" in totals["new"]["sql"]
    assert totals["saved"]["hash"] != totals["new"]["hash"]
    assert plan["relations"]["renamed"]["new"]["hash"] == plan["relations"]["counts"]["saved"]["hash"]

    pipeline.suspend()
    pipeline.program = changed
    waiting = pipeline.start("AwaitingApproval")
    assert waiting.details is not None
    assert {name: waiting.details[name] for name in found} == found
    assert ask(pipeline, "approve", {"programs": found["programs"]}).status_code == 200
    pipeline.wait_for("Running")
    assert pipeline.query("SELECT * FROM renamed") == [{"x": 1, "n": 2}]
    pipeline.insert("plain", {"x": 1}, {"x": 2})
    assert pipeline.query("SELECT * FROM renamed ORDER BY x") == [{"x": 1, "n": 3}, {"x": 2, "n": 1}]
    assert "view renamed took over the contents of counts" in pipeline.log


@pytest.mark.core
def test_a_plan_names_all_that_refuses_a_change(make: Make) -> None:
    pipeline = make(BEFORE)
    pipeline.start()
    pipeline.insert("plain", {"x": 1})
    changed = BEFORE.replace("SELECT x, COUNT(*)", "SELECT x, 1 + COUNT(*)") + "CREATE TABLE late (y INT LATENESS 1);"
    lateness, unreadable = planned(pipeline, changed)["plan"]["refusals"]
    assert lateness["error_code"] == unreadable["error_code"] == "BootstrapNotAllowed"
    assert "relations with lateness" in lateness["message"]
    assert "view counts reads table plain" in unreadable["message"]
    assert "not materialized" in unreadable["message"]
    wrong = ask(pipeline, "plan", {"program_code": "CREATE VIEW v AS SELECT * FROM nowhere;"})
    assert wrong.status_code == 400
    assert wrong.json()["error_code"] == "SqlError"
    assert pipeline.query("SELECT * FROM counts") == [{"x": 1, "n": 1}]


def test_a_view_that_is_renamed_sends_its_contents_to_its_outputs(make: Make, tmp_path: Any) -> None:
    sink = tmp_path / "out.csv"
    out = [{"name": "out", "transport": {"name": "file_output", "config": {"path": str(sink)}}, "format": {"name": "csv"}}]
    pipeline = make(BEFORE)
    pipeline.start()
    pipeline.insert("plain", {"x": 1}, {"x": 1})
    pipeline.suspend()
    pipeline.program = BEFORE.replace("VIEW counts", f"VIEW renamed WITH ('connectors' = '{json.dumps(out)}')")
    pipeline.start("Running", bootstrap_policy="allow")
    pipeline.insert("plain", {"x": 1})
    assert sink.read_text().splitlines() == ["1,2,1", "1,2,-1", "1,3,1"]


CHAIN = """
CREATE TABLE events (x INT, y INT) WITH ('append_only' = 'true');
CREATE VIEW passing AS SELECT x, y + 1 AS y FROM events WHERE y >= 0;
CREATE VIEW counted AS SELECT x, COUNT(*) AS n FROM events GROUP BY x;
CREATE VIEW pairs AS SELECT a.x, b.x AS other FROM counted a JOIN counted b ON a.n = b.n;
CREATE MATERIALIZED VIEW kept AS SELECT x, y FROM events;
CREATE MATERIALIZED VIEW top AS SELECT x, y * 2 AS y FROM passing;
"""
SUMMIT = CHAIN.replace("VIEW top", "VIEW summit")


@pytest.mark.core(slow_because="a program is changed several times")
def test_a_view_is_not_evaluated_through_views_without_contents_from_rows_that_are_gone(make: Make) -> None:
    pipeline = make(CHAIN)
    pipeline.start()
    pipeline.insert("events", {"x": 1, "y": 1}, {"x": 1, "y": 2}, {"x": 2, "y": 1})
    refused = {
        CHAIN + "CREATE VIEW more AS SELECT x, SUM(y) AS s FROM passing GROUP BY x;": "view more reads table events",
        # What has no contents of its own can be taken over, but nothing can be read from it.
        CHAIN.replace("passing", "through"): "view top reads table events",
        CHAIN.replace("y + 1 AS y", "y + 2 AS y"): "view passing reads table events",
    }
    for changed, reason in refused.items():
        (problem,) = planned(pipeline, changed)["plan"]["refusals"]
        assert reason in problem["message"]
        answer = pipeline.http.post("/diff", json={"old": {"program_code": CHAIN}, "new": {"program_code": changed}})
        assert (answer.status_code, answer.json()["error_code"]) == (400, "BootstrapNotAllowed")
        assert reason in answer.json()["message"]

    changed = (
        SUMMIT
        + """
CREATE MATERIALIZED VIEW most AS SELECT MAX(n) AS n FROM counted;
CREATE MATERIALIZED VIEW ys AS SELECT y, COUNT(*) AS n FROM kept GROUP BY y;
"""
    )
    plan = planned(pipeline, changed)["plan"]
    assert plan["refusals"] == []
    assert plan["evaluated"].keys() == {"most", "ys"}
    pipeline.suspend()
    pipeline.program = changed
    pipeline.start("Running", bootstrap_policy="allow")
    pipeline.insert("events", {"x": 2, "y": 0})
    assert pipeline.query("SELECT * FROM most") == [{"n": 2}]
    assert pipeline.query("SELECT * FROM ys ORDER BY y") == [{"y": 0, "n": 1}, {"y": 1, "n": 2}, {"y": 2, "n": 1}]
    summit = [{"x": 1, "y": 4}, {"x": 1, "y": 6}, {"x": 2, "y": 2}, {"x": 2, "y": 4}]
    assert pipeline.query("SELECT * FROM summit ORDER BY x, y") == summit


def test_two_programs_are_compared_without_a_pipeline(make: Make) -> None:
    pipeline = make(BEFORE)
    new = BEFORE.replace("n > 1", "n > 2")
    answer = pipeline.http.post("/diff", json={"old": {"program_code": BEFORE}, "new": {"program_code": new}})
    assert answer.json()["program_diff"]["modified_views"] == ["gone"]
    new = BEFORE.replace("SELECT x, COUNT(*)", "SELECT x, 1 + COUNT(*)")
    refused = pipeline.http.post("/diff", json={"old": {"program_code": BEFORE}, "new": {"program_code": new}})
    assert (refused.status_code, refused.json()["error_code"]) == (400, "BootstrapNotAllowed")


def test_estimates_are_in_the_range_of_what_evaluations_have_taken(tmp_path: Path) -> None:
    times = EvaluationTimes(tmp_path)
    assert times.factors() == UNMEASURED
    times.add(1.5, 33.0)
    times.add(0.0, 1.0)
    assert EvaluationTimes(tmp_path).factors() == Factors(11.0, 44.0)
    times.add(2.0, 4.0)
    assert times.factors() == Factors(1.0, 44.0)
    for _ in range(10):
        times.add(1.0, 3.0)
    assert times.factors() == Factors(1.5, 6.0), "only the newest count"
    assert EvaluationTimes(None).factors() == UNMEASURED
    EvaluationTimes(None).add(1.0, 1.0)


@pytest.mark.parametrize("damage", ["{", "[1]", "null", "{}", "[[1, 2, 3]]", "[[1, null]]", "[[1, NaN], [0, 1], [1, -1]]", "\xff"])
def test_a_damaged_file_of_evaluations_is_none(tmp_path: Path, damage: str) -> None:
    (tmp_path / "evaluations.json").write_bytes(damage.encode("latin-1"))
    times = EvaluationTimes(tmp_path)
    assert times.factors() == UNMEASURED
    times.add(1.0, 4.0)
    assert EvaluationTimes(tmp_path).factors() == Factors(2.0, 8.0)


def test_an_evaluation_corrects_the_next_estimate(make: Make) -> None:
    pipeline = make(BEFORE)
    pipeline.start()
    pipeline.insert("t", *({"id": n, "v": n % 7} for n in range(100)))
    pipeline.suspend()
    pipeline.program = BEFORE.replace("SELECT v, COUNT(*) AS n FROM t", "SELECT v, COUNT(*) AS n, MAX(id) AS last FROM t")
    pipeline.start(bootstrap_policy="allow")
    assert "changed views were evaluated in " in pipeline.log
    assert "s were expected" in pipeline.log
    factors = EvaluationTimes(pipeline.folder / "storage").factors()
    assert factors != UNMEASURED
    plan = planned(pipeline, BEFORE)["plan"]
    assert 0 < plan["seconds_at_most"] != pytest.approx(25 * plan["seconds"])
    # Each of the views is rounded to milliseconds.
    assert plan["seconds"] == pytest.approx(plan["seconds_at_most"] * factors.least / factors.most, abs=0.005)
