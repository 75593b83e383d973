"""Declared connectors of a running pipeline: files in and out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from tests.host.driver import Pipeline

Make = Callable[..., Pipeline]


def source(name: str, path: Path, **options: object) -> dict[str, object]:
    transport = {"name": "file_input", "config": {"path": str(path)}}
    return {"name": name, "transport": transport, "format": {"name": "csv"}, **options}


def program(*connectors: dict[str, object], sink: Path | None = None) -> str:
    out = ""
    if sink is not None:
        declared = [{"name": "out", "transport": {"name": "file_output", "config": {"path": str(sink)}}, "format": {"name": "csv"}}]
        out = f" WITH ('connectors' = '{json.dumps(declared)}')"
    return (
        f"CREATE TABLE t (x INT) WITH ('materialized' = 'true', 'connectors' = '{json.dumps(connectors)}');"
        f"CREATE VIEW v{out} AS SELECT x + 1 AS y FROM t;"
    )


def test_files_are_read_to_their_end_and_not_again(make: Make, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("1\n2\nthree\n4\n")
    # A reference stands for what the configuration says, before the host's own environment.
    pipeline = make(program(source("c", Path("${env:HOME}") / "data.csv")), env={"HOME": str(tmp_path)})
    pipeline.start()
    stats = pipeline.await_complete()
    assert stats["global_metrics"]["total_completed_records"] == 3
    wire = pipeline.get("tables/t/connectors/c/stats").json()
    assert wire["endpoint_name"] == "t.c"
    assert wire["config"]["stream"] == "t"
    assert wire["metrics"]["end_of_input"]
    assert wire["metrics"]["num_parse_errors"] == 1
    assert wire["parse_errors"][0]["index"] == 3
    assert "three" in wire["parse_errors"][0]["message"]
    token = pipeline.get("tables/t/connectors/c/completion_token").json()["token"]
    assert pipeline.get("completion_status", token=token).json()["status"] == "complete"
    pipeline.kill()
    pipeline.start()
    stats = pipeline.await_complete()
    assert stats["global_metrics"]["total_completed_records"] == 3
    assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 3}]
    assert pipeline.get("tables/t/connectors/c/stats").json()["metrics"]["num_parse_errors"] == 1


def test_a_missing_file_kills_the_connector_and_not_the_pipeline(make: Make, tmp_path: Path) -> None:
    good = tmp_path / "good.csv"
    good.write_text("1\n")
    pipeline = make(program(source("bad", tmp_path / "missing.csv"), source("good", good)))
    pipeline.start()
    deadline = time.monotonic() + 30
    while (wire := pipeline.get("tables/t/connectors/bad/stats").json())["fatal_error"] is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "missing.csv" in wire["fatal_error"]
    assert wire["health"]["status"] == "Unhealthy"
    assert "missing.csv" in pipeline.log
    while pipeline.query("SELECT * FROM t") != [{"x": 1}]:
        assert time.monotonic() < deadline
    assert not pipeline.stats()["global_metrics"]["pipeline_complete"]


def test_paused_connectors_and_start_after(make: Make, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first.csv", "second.csv", "third.csv"))
    first.write_text("1\n")
    second.write_text("2\n")
    third.write_text("3\n")
    paused, waiting = source("a", first, paused=True, labels=["start"]), source("b", second, start_after="start")
    pipeline = make(program(paused, waiting, source("c", third)))
    pipeline.start()
    deadline = time.monotonic() + 30
    while not (rows := pipeline.query("SELECT * FROM t")):
        assert time.monotonic() < deadline, "no input has been read"
    assert rows == [{"x": 3}]
    assert pipeline.post("tables/t/connectors/nope/start").status_code == 404
    assert pipeline.post("tables/t/connectors/a/start").status_code == 200
    pipeline.await_complete()
    assert pipeline.query("SELECT x FROM t ORDER BY x") == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_an_output_file_has_every_step_once_over_kills(make: Make, tmp_path: Path) -> None:
    data, sink = tmp_path / "data.csv", tmp_path / "out.csv"
    data.write_text("1\n2\n")
    pipeline = make(program(source("c", data), sink=sink))
    pipeline.start()
    pipeline.await_complete()
    assert sorted(sink.read_text().split()) == ["2,1", "3,1"]
    pipeline.kill()
    pipeline.start()
    pipeline.ingest("t", {"insert": {"x": 5}})
    assert sorted(sink.read_text().split()) == ["2,1", "3,1", "6,1"]
    wire = pipeline.get("views/v/connectors/out/stats").json()
    assert wire["endpoint_name"] == "v.out"
    assert wire["fatal_error"] is None
    pipeline.suspend()
    pipeline.start()
    pipeline.ingest("t", {"insert": {"x": 6}})
    pipeline.kill()
    # Back at the checkpoint, so is the file.
    pipeline.start()
    assert sorted(sink.read_text().split()) == ["2,1", "3,1", "6,1"]
    assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 3}]


def test_two_pipelines_do_not_write_one_file(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    first, second = make(program(sink=path)), make(program(sink=path))
    first.start()
    first.insert("t", {"x": 1})
    second.start()
    second.insert("t", {"x": 5})
    wire = second.get("views/v/connectors/out/stats").json()
    assert wire["health"]["status"] == "Unhealthy"
    assert f"{path}: another output writes this file" in wire["fatal_error"]
    assert second.query("SELECT * FROM t") == [{"x": 5}]
    first.insert("t", {"x": 2})
    assert path.read_text() == "2,1\n3,1\n"
    assert first.get("views/v/connectors/out/stats").json()["health"]["status"] == "Healthy"
