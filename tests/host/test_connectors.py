"""Declared connectors of a running pipeline: files in and out."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from airflow_pipelines.connectors.transports.files import line_output
from airflow_pipelines.engine.limits import DEFAULT_LIMITS
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


@pytest.mark.core
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


@pytest.mark.core
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


def connectors(*declared: dict[str, object]) -> str:
    return f"WITH ('materialized' = 'true', 'connectors' = '{json.dumps(declared)}')"


def made_up(name: str, plan: list[dict[str, object]], **options: object) -> dict[str, object]:
    return {"name": name, "transport": {"name": "datagen", "config": {"plan": plan}}, **options}


def test_made_up_rows_come_once_over_kills(make: Make) -> None:
    plan: list[dict[str, object]] = [
        {"limit": 40_000, "fields": {"r": {"strategy": "uniform", "range": [0, 10**9]}, "s": {"strategy": "name"}}}
    ]
    # A format is not needed, and passed over.
    declared = made_up("c", plan, max_batch_size=2000, format={"name": "json"})
    pipeline = make(f"CREATE TABLE t (id BIGINT, r INT, s VARCHAR NOT NULL) {connectors(declared)};")
    pipeline.start()
    for _ in range(2):
        deadline = time.monotonic() + 60
        before = pipeline.stats()["global_metrics"]["total_processed_records"]
        while pipeline.stats()["global_metrics"]["total_processed_records"] == before < 40_000:
            assert time.monotonic() < deadline
        pipeline.kill()
        pipeline.start()
    stats = pipeline.await_complete()
    assert stats["global_metrics"]["total_completed_records"] == 40_000
    [wire] = stats["inputs"]
    assert wire["metrics"]["end_of_input"]
    [counts] = pipeline.query("SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS ids, MAX(id) AS most, COUNT(DISTINCT r) AS rs FROM t")
    assert (counts["n"], counts["ids"], counts["most"]) == (40_000, 40_000, 39_999)
    # The same seed after each start: another one would do so too, but not give distinct numbers by chance alone.
    assert counts["rs"] > 39_900


def test_a_rate_holds_while_a_pipeline_runs(make: Make) -> None:
    pipeline = make(f"CREATE TABLE t (id BIGINT) {connectors(made_up('c', [{'rate': 20, 'worker_chunk_size': 2}]))};")
    pipeline.start()
    begun = time.monotonic()
    while not pipeline.query("SELECT id FROM t WHERE id >= 10"):
        assert time.monotonic() < begun + 60
    assert time.monotonic() - begun > 0.4
    stats = pipeline.stats()
    assert not stats["inputs"][0]["metrics"]["end_of_input"]
    assert not stats["global_metrics"]["pipeline_complete"]


def test_declarations_that_compile_and_cannot_start(make: Make) -> None:
    kafka = {"name": "k", "transport": {"name": "nats_input", "config": {"subject": "x"}}, "format": {"name": "avro"}}
    for declared, code, text in (
        (kafka, "ConfigError.UnknownInputTransport", "Connector 't.k' cannot start: transport 'nats_input' is not part of"),
        (made_up("c", [{"fields": {"nope": {}}}]), "ConfigError.InvalidTransportConfig", "table 't' has no column or field 'nope'"),
        (made_up("c", [], start_after=[]), "ConfigError.EmptyStartAfter", "'start_after' of t.c is an empty list"),
    ):
        pipeline = make(f"CREATE TABLE t (id BIGINT) {connectors(declared)};")
        stopped = pipeline.start("Stopped")
        assert stopped.error is not None
        assert stopped.error["error_code"] == code
        assert text in stopped.error["message"]


class Data(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path == "/data.csv"
        self.send_response(200 if found else 404)
        self.end_headers()
        if found:
            self.wfile.write(b"1\n2\nthree\n")

    def log_message(self, *_: object) -> None:
        """Not into the test's output."""


@pytest.fixture
def web() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Data) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def from_url(name: str, url: str, **options: object) -> dict[str, object]:
    return {"name": name, "transport": {"name": "url_input", "config": {"path": url}}, "format": {"name": "csv"}, **options}


def test_urls_and_inputs_without_rows_and_what_waits_for_them(make: Make, web: str) -> None:
    empty = {"name": "empty", "transport": {"name": "empty_input"}, "labels": "first", "paused": True}
    good = from_url("good", f"{web}/data.csv", start_after="first", labels=["second"])
    bad = from_url("bad", f"{web}/other.csv", start_after=["second"])
    pipeline = make(f"CREATE TABLE t (x INT) {connectors(empty, good, bad)};")
    pipeline.start()
    assert [wire["paused"] for wire in pipeline.stats()["inputs"]] == [True, True, True]
    assert pipeline.post("tables/t/connectors/empty/start").status_code == 200
    deadline = time.monotonic() + 30
    while (wire := pipeline.get("tables/t/connectors/bad/stats").json())["fatal_error"] is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert "/other.csv answered 404 Not Found" in wire["fatal_error"]
    assert not wire["paused"]
    assert pipeline.query("SELECT x FROM t ORDER BY x") == [{"x": 1}, {"x": 2}]
    read = pipeline.get("tables/t/connectors/good/stats").json()
    assert read["metrics"]["end_of_input"]
    assert read["metrics"]["num_parse_errors"] == 1
    assert read["health"]["status"] == "Healthy"


@pytest.mark.core
def test_deletes_that_are_taken_as_inserts(make: Make, tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text('{"insert": {"x": 1}}\n{"delete": {"x": 1}}\n')
    declared = {**source("c", data), "format": {"name": "json"}, "soft_delete": True}
    pipeline = make(f"CREATE TABLE t (x INT) {connectors(declared)};")
    pipeline.start()
    pipeline.await_complete()
    assert pipeline.query("SELECT x FROM t") == [{"x": 1}, {"x": 1}]


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


def output(path: Path, **options: object) -> dict[str, object]:
    transport = {"name": "file_output", "config": {"path": str(path)}}
    return {"name": path.stem, "transport": transport, "format": {"name": "csv"}, **options}


def views(*outputs: dict[str, object], query: str = "SELECT x + 1 AS y FROM t") -> str:
    return f"""CREATE TABLE t (x INT) WITH ('materialized' = 'true');
CREATE MATERIALIZED VIEW v WITH ('connectors' = '{json.dumps(outputs)}') AS {query};"""


def wait_for_lines(path: Path, count: int) -> None:
    """Wait until an output has written so many lines."""
    deadline = time.monotonic() + 30
    while len(path.read_text().splitlines()) < count:
        assert time.monotonic() < deadline


def test_a_buffer_is_written_as_one_batch(make: Make, tmp_path: Path) -> None:
    soon, late = tmp_path / "soon.csv", tmp_path / "late.csv"
    buffered = {"enable_output_buffer": True, "max_output_buffer_size_records": 4}
    pipeline = make(views(output(soon), output(late, **buffered)))
    pipeline.start()
    for count, change in enumerate(({"insert": {"x": 1}}, {"insert": {"x": 2}}, {"delete": {"x": 1}}), 1):
        assert pipeline.post("ingress/t", json.dumps(change), format="json").status_code == 200
        wait_for_lines(soon, count)
    assert soon.read_text() == "2,1\n3,1\n2,-1\n"
    assert late.read_text() == ""
    stats = pipeline.stats()
    assert stats["global_metrics"]["total_completed_records"] == 0, "not delivered to all outputs"
    assert not stats["global_metrics"]["pipeline_complete"]
    wire = pipeline.get("views/v/connectors/late/stats").json()["metrics"]
    assert (wire["buffered_records"], wire["buffered_batches"], wire["transmitted_records"]) == (3, 3, 0)
    pipeline.insert("t", {"x": 3})
    # What came and went is not written; all of it is one step's changes to the file.
    assert late.read_text() == "3,1\n4,1\n"
    stats = pipeline.stats()
    assert stats["global_metrics"]["total_completed_records"] == 4
    assert pipeline.get("views/v/connectors/late/stats").json()["metrics"]["buffered_records"] == 0
    # A checkpoint holds nothing back: what is in it is not evaluated again.
    token = pipeline.post("ingress/t", '{"insert": {"x": 4}}', format="json").json()["token"]
    pipeline.suspend()
    assert late.read_text() == "3,1\n4,1\n5,1\n"
    pipeline.start()
    assert pipeline.get("completion_status", token=token).status_code == 410
    assert late.read_text() == "3,1\n4,1\n5,1\n"
    assert pipeline.query("SELECT COUNT(*) AS n FROM v") == [{"n": 3}]


@pytest.mark.core
def test_what_a_buffer_kept_is_written_once_over_kills(make: Make, tmp_path: Path) -> None:
    soon, late = tmp_path / "soon.csv", tmp_path / "late.csv"
    buffered = {"enable_output_buffer": True, "max_output_buffer_size_records": 3}
    fault_tolerance = {"model": "exactly_once", "checkpoint_interval_secs": None}
    pipeline = make(views(output(soon), output(late, **buffered)), fault_tolerance=fault_tolerance)
    pipeline.start()

    def push(*numbers: int) -> None:
        for x in numbers:
            assert pipeline.post("ingress/t", json.dumps({"insert": {"x": x}}), format="json").status_code == 200
            wait_for_lines(soon, x)

    push(1, 2)
    pipeline.kill()
    pipeline.start()
    assert pipeline.stats()["global_metrics"]["total_completed_records"] == 2
    assert late.read_text() == "2,1\n3,1\n", "what is replayed is not kept again"
    push(3, 4)
    pipeline.insert("t", {"x": 5})
    assert len(late.read_text().splitlines()) == 5
    push(6)
    pipeline.kill()
    # What was committed under the earlier query is sent, then come the contents under the new one. A new output gets only these.
    new = tmp_path / "new.csv"
    pipeline.program = views(output(soon), output(late, **buffered), output(new), query="SELECT x, 'a' AS name FROM t WHERE x > 4")
    pipeline.start(bootstrap_policy="allow")
    pipeline.suspend()
    sent, contents = [f"{y},1" for y in range(2, 8)], ["5,a,1", "6,a,1"]
    for path in (soon, late):
        lines = path.read_text().splitlines()
        assert (sorted(lines[:6]), lines[6:]) == (sent, contents)
    assert new.read_text().splitlines() == contents


@pytest.mark.core(slow_because="a pipeline is killed and started again")
def test_what_a_target_has_of_a_buffer_does_not_come_again_after_a_kill(make: Make, tmp_path: Path) -> None:
    """Less time passes between steps that are replayed: in one batch would be what the first run has written in parts."""
    folder = tmp_path / "log"
    buffered = {"enable_output_buffer": True, "max_output_buffer_time_millis": 3000}
    log = {
        "name": "log",
        "transport": {"name": "file_output", "config": {"path": f"{folder}/"}},
        "format": {"name": "csv"},
        **buffered,
    }
    fault_tolerance = {"model": "exactly_once", "checkpoint_interval_secs": None}
    pipeline = make(views(log, query="SELECT x % 2 AS g, COUNT(*) AS n FROM t GROUP BY x % 2"), fault_tolerance=fault_tolerance)

    def rows() -> Counter[str]:
        """What the changes add up to that the folder's manifest names."""
        found: Counter[str] = Counter()
        for commit in folder.glob("_commits/*.json"):
            for file in json.loads(commit.read_text())["files"]:
                for line in (folder / file["name"]).read_text().splitlines():
                    row, _, weight = line.rpartition(",")
                    found[row] += int(weight)
        return +found

    pipeline.start()
    pipeline.insert("t", {"x": 2})
    assert rows() == {"0,1": 1}
    assert pipeline.post("ingress/t", '{"insert": {"x": 2}}', format="json").status_code == 200
    deadline = time.monotonic() + 30
    while pipeline.query("SELECT n FROM v") != [{"n": 2}]:
        assert time.monotonic() < deadline
    pipeline.kill()
    assert rows() == {"0,1": 1}
    pipeline.start()
    pipeline.suspend()
    assert rows() == {"0,2": 1}


def test_a_buffer_waits_no_longer_than_it_may(make: Make, tmp_path: Path) -> None:
    path, data = tmp_path / "out.csv", tmp_path / "data.csv"
    buffered = {"enable_output_buffer": True, "max_output_buffer_time_millis": 300}
    pipeline = make(views(output(path, **buffered)))
    pipeline.start()
    begun = time.monotonic()
    pipeline.insert("t", {"x": 1})
    assert time.monotonic() - begun >= 0.3
    assert path.read_text() == "2,1\n"
    # At the end of all inputs nothing is waited for.
    data.write_text("1\n2\n")
    waits = output(tmp_path / "end.csv", enable_output_buffer=True)
    ended = make(
        f"CREATE TABLE t (x INT) {connectors(source('c', data))};"
        f"CREATE VIEW v WITH ('connectors' = '{json.dumps([waits])}') AS SELECT x FROM t;"
    )
    ended.start()
    ended.await_complete()
    assert (tmp_path / "end.csv").read_text() == "1,1\n2,1\n"


def test_a_large_step_is_written_at_once_and_after_what_the_buffer_has(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    pipeline = make(views(output(path, enable_output_buffer=True)))
    pipeline.start()
    assert pipeline.post("ingress/t", '{"insert": {"x": 0}}', format="json").status_code == 200
    deadline = time.monotonic() + 30
    while pipeline.query("SELECT COUNT(*) AS n FROM v") != [{"n": 1}]:
        assert time.monotonic() < deadline
    assert path.read_text() == ""
    many = DEFAULT_LIMITS.small_rows + 1
    answer = pipeline.post("ingress/t", "\n".join(map(str, range(1, many + 1))), format="csv")
    pipeline.await_token(answer.json()["token"])
    lines = path.read_text().splitlines()
    assert lines[0] == "1,1"
    assert sorted(lines[1:]) == sorted(f"{x + 1},1" for x in range(1, many + 1))


@pytest.mark.core
def test_an_output_may_begin_with_the_contents_of_its_view(make: Make, tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{name}.csv" for name in ("first", "second", "third"))
    pipeline = make(views(output(first, send_snapshot=True)))
    pipeline.start()
    pipeline.insert("t", {"x": 1}, {"x": 2})
    assert first.read_text() == "2,1\n3,1\n"
    # Without a checkpoint the journal has all steps; an output that is there since then gets nothing besides these.
    pipeline.kill()
    pipeline.program = views(output(first, send_snapshot=True), output(third))
    pipeline.start(bootstrap_policy="allow")
    assert first.read_text() == "2,1\n3,1\n"
    pipeline.suspend()
    pipeline.program = views(output(first, send_snapshot=True), output(second, send_snapshot=True), output(third))
    pipeline.start(bootstrap_policy="allow")
    assert first.read_text() == "2,1\n3,1\n", "it had them"
    assert second.read_text() == "2,1\n3,1\n"
    assert third.read_text() == ""
    pipeline.insert("t", {"x": 3})
    assert second.read_text() == "2,1\n3,1\n4,1\n"
    pipeline.kill()
    pipeline.start(bootstrap_policy="allow")
    assert second.read_text() == "2,1\n3,1\n", "the checkpoint does not know it, so it begins once more"
    pipeline.suspend()
    # Of a view that is evaluated anew they come once.
    pipeline.program = views(
        output(first, send_snapshot=True), output(tmp_path / "new.csv", send_snapshot=True), query="SELECT x FROM t"
    )
    pipeline.start(bootstrap_policy="allow")
    assert sorted((tmp_path / "new.csv").read_text().splitlines()) == ["1,1", "2,1"]
    pipeline.suspend()
    pipeline.program = pipeline.program.replace("CREATE MATERIALIZED VIEW", "CREATE VIEW")
    stopped = pipeline.start("Stopped", bootstrap_policy="allow")
    assert stopped.error is not None
    assert "'send_snapshot' needs a view whose contents are kept" in stopped.error["message"]


@pytest.mark.core
def test_what_a_file_misses_is_known_after_the_next_start(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.json"
    declared = [{"name": "out", "transport": {"name": "file_output", "config": {"path": str(path)}}, "format": {"name": "json"}}]
    pipeline = make(f"CREATE TABLE t (x INT); CREATE VIEW v WITH ('connectors' = '{json.dumps(declared)}') AS SELECT x FROM t;")
    pipeline.start()
    pipeline.insert("t", {"x": 1})

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(line_output, "_append", full)
    pipeline.await_failed(pipeline.push("t", {"insert": {"x": 2}}))
    [output] = pipeline.stats()["outputs"]
    assert "v.json: No space left on device. The output has ended" in output["fatal_error"]
    monkeypatch.undo()
    assert "the target misses changes from step 2 on" in output["health"]["description"]
    pipeline.suspend()
    pipeline.start()
    pipeline.insert("t", {"x": 3})
    [output] = pipeline.stats()["outputs"]
    # What came while it could not be written is not in the file, and nobody is left in the dark about that.
    assert "the target misses changes from step 2 on" in output["health"]["description"]
    assert output["fatal_error"] is None
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"insert": {"x": 1}}, {"insert": {"x": 3}}]


@pytest.mark.core
def test_two_pipelines_do_not_write_one_file(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    first, second = make(program(sink=path)), make(program(sink=path))
    first.start()
    first.insert("t", {"x": 1})
    second.start()
    second.await_failed(second.push("t", {"insert": {"x": 5}}))
    wire = second.get("views/v/connectors/out/stats").json()
    assert wire["health"]["status"] == "Unhealthy"
    assert f"{path}: another output writes this file" in wire["fatal_error"]
    assert second.query("SELECT * FROM t") == [{"x": 5}]
    first.insert("t", {"x": 2})
    assert path.read_text() == "2,1\n3,1\n"
    assert first.get("views/v/connectors/out/stats").json()["health"]["status"] == "Healthy"
