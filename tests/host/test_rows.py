"""Rows over HTTP: ingress, egress, queries, tokens."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.contract.problems import READ_ONLY_HEADER
from airflow_pipelines.host.inputs.tokens import CompletionToken
from airflow_pipelines.host.outputs import listeners
from tests.host.driver import Pipeline

pytestmark = pytest.mark.core


def test_bad_records_are_reported_and_the_rest_is_taken(running: Pipeline) -> None:
    body = '{"insert": {"id": 1, "v": 1}}\n{"insert": {"id": "x"}}\n{"insert": {"id": 2, "v": 2}}'
    answer = running.post("ingress/t", body, format="json")
    assert answer.status_code == 400
    problem = answer.json()
    assert problem["error_code"] == "ParseErrors"
    assert problem["message"].startswith("Errors parsing input data (1 errors):")
    assert problem["details"]["num_errors"] == len(problem["details"]["errors"]) == 1
    token = running.post("ingress/t", '{"insert": {"id": 3, "v": 3}}', format="json").json()["token"]
    running.await_token(token)
    assert running.query("SELECT id FROM t ORDER BY id") == [{"id": 1}, {"id": 2}, {"id": 3}]
    stats = running.stats(include_connector_errors=True)
    [endpoint] = stats["inputs"]
    assert endpoint["endpoint_name"].startswith("t.api-ingress-")
    assert endpoint["metrics"]["num_parse_errors"] == len(endpoint["parse_errors"]) == 1
    metrics = stats["global_metrics"]
    assert metrics["total_input_records"] == metrics["total_processed_records"] == 3
    assert metrics["pipeline_complete"]

    unknown = running.post("ingress/nowhere", "1", format="csv")
    assert (unknown.status_code, unknown.json()["error_code"]) == (404, "ConfigError.UnknownInputStream")
    assert "t" in unknown.json()["message"]
    assert running.post("ingress/t", "1", format="xml").json()["error_code"] == "InvalidParam"
    assert running.post("ingress/t", "7,70,csv\n").status_code == 200
    assert running.post("ingress/T", "8,80,csv\n").status_code == 200

    # For a client that may only read.
    path = f"/deployments/{running.deployment_id}/query"
    for sql, status in (("insert into t values (9, 9, 'x')", 403), ("delete from t", 403), ("select count(*) from t", 200)):
        assert running.http.get(path, params={"sql": sql}, headers={READ_ONLY_HEADER: "true"}).status_code == status
        assert running.http.post(path, json={"sql": sql}, headers={READ_ONLY_HEADER: "true"}).status_code == status


def test_rows_may_be_compressed(running: Pipeline) -> None:
    path, rows = f"/deployments/{running.deployment_id}/ingress/t", gzip.compress(b'{"insert": {"id": 1, "v": 1}}')
    answer = running.http.post(path, params={"format": "json"}, content=rows, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 200, answer.text
    running.await_token(answer.json()["token"])
    assert running.query("SELECT id FROM t") == [{"id": 1}]
    answer = running.http.post(path, params={"format": "json"}, content=rows, headers={"Content-Encoding": "br"})
    assert (answer.status_code, answer.json()["error_code"]) == (415, "UnsupportedMediaType")


@pytest.mark.rest
def test_all_bad_elements_of_an_array_are_listed_and_none_is_taken(running: Pipeline) -> None:
    rows = [{"id": 1}, {"id": "x"}, {"id": 2}, {"v": 5}]
    # A client sends what it knows of all formats.
    options = {"array": True, "update_format": "raw", "json_flavor": "default", "mode": "lines", "delimiter": ","}
    answer = running.post("ingress/t", json.dumps(rows), format="json", **options)
    assert answer.status_code == 400
    assert answer.json()["details"]["num_errors"] == 2
    assert [error["index"] for error in answer.json()["details"]["errors"]] == [1, 3]
    assert running.post("ingress/t", "1,10,csv\n", format="csv", **options).status_code == 200
    running.insert("t", {"id": 5})
    assert running.query("SELECT id FROM t ORDER BY id") == [{"id": 1}, {"id": 5}]


def test_a_slash_in_a_name(make: Callable[..., Pipeline]) -> None:
    pipeline = make("CREATE TABLE \"a/b\" (\"x\" INT) WITH ('materialized' = 'true');")
    pipeline.start()
    pipeline.insert("%22a%2Fb%22", {"x": 1})
    assert pipeline.query('SELECT x FROM "a/b"') == [{"x": 1}]
    assert pipeline.post('ingress/"a/b"', "2", format="csv").status_code == 404


def test_inputs_of_requests_to_a_table_that_changed_are_forgotten(make: Callable[..., Pipeline]) -> None:
    pipeline = make("CREATE TABLE t (x INT); CREATE TABLE u (x INT);")
    pipeline.start()
    pipeline.insert("t", {"x": 1})
    pipeline.insert("u", {"x": 1})
    assert len(pipeline.stats()["inputs"]) == 2
    pipeline.suspend()
    pipeline.program = "CREATE TABLE t (x INT, y INT); CREATE TABLE u (x INT);"
    pipeline.start(bootstrap_policy="allow")
    assert [wire["endpoint_name"].split(".")[0] for wire in pipeline.stats()["inputs"]] == ["u"]


def test_tokens_of_others_are_refused(running: Pipeline) -> None:
    token = running.insert("t", {"id": 1, "v": 1})
    done = running.get("completion_status", token=token)
    assert (done.status_code, done.json()["status"]) == (200, "complete")
    foreign = CompletionToken(uuid4(), "t.x", 1).encode()
    assert running.get("completion_status", token=foreign).status_code == 410
    assert running.deployment_id is not None
    gone = CompletionToken(running.deployment_id, "t.nowhere", 1).encode()
    answer = running.get("completion_status", token=gone)
    assert (answer.status_code, answer.json()["error_code"]) == (410, "UnknownEndpointInCompletionToken")
    ahead = CompletionToken(running.deployment_id, CompletionToken.decode(token).endpoint, 99).encode()
    answer = running.get("completion_status", token=ahead)
    assert (answer.status_code, answer.json()["status"]) == (202, "inprogress")
    assert running.get("completion_status", token="nonsense").status_code == 400
    missing = running.get("tables/t/connectors/none/completion_token")
    assert (missing.status_code, missing.json()["error_code"]) == (404, "UnknownInputEndpoint")


def test_a_listener_gets_each_steps_changes(running: Pipeline) -> None:
    running.insert("t", {"id": 1, "v": 11})
    with running.listen("large") as chunks, running.listen("totals", send_snapshot=True) as snapshots:
        first = next(chunks)
        assert first == {"snapshot": False, "json_data": []}
        assert next(snapshots) == {"snapshot": True, "json_data": []}
        assert next(snapshots)["json_data"] == [{"insert": {"name": None, "total": 11, "n": 1}}]
        running.ingest("t", {"insert": {"id": 1, "v": 12}}, {"insert": {"id": 2, "v": 3}})
        changed = next(chunk for chunk in chunks if chunk["json_data"])
        assert changed["json_data"] == [{"delete": {"id": 1, "v": 11}}, {"insert": {"id": 1, "v": 12}}]
        assert (changed["snapshot"], changed["sequence_number"]) == (False, 0)
        running.kill()
        assert not any(chunk["json_data"] for chunk in chunks)


def test_large_changes_come_in_chunks_and_in_order(
    make: Callable[..., Pipeline], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = tmp_path / "sink.csv"
    out = [{"name": "out", "transport": {"name": "file_output", "config": {"path": str(sink)}}, "format": {"name": "csv"}}]
    pipeline = make(
        "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, n INT);"
        f"CREATE MATERIALIZED VIEW many WITH ('connectors' = '{json.dumps(out)}') "
        "AS SELECT id, x FROM t LATERAL VIEW explode(sequence(1, n)) e AS x;"
    )
    pipeline.start()

    def rows(chunks: Iterator[dict[str, Any]], count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            data = next(chunks).get("json_data", [])
            assert len(data) <= 10_000
            found += data
        return found

    with pipeline.listen("many", backpressure=True) as chunks:
        pipeline.insert("t", {"id": 1, "n": 60_000})
        expected = [{"insert": {"id": 1, "x": x}} for x in range(1, 60_001)]
        assert rows(chunks, 60_000) == expected
        with pipeline.listen("many", backpressure=True, send_snapshot=True) as snapshot:
            assert rows(snapshot, 60_000) == expected
        pipeline.ingest("t", {"insert": {"id": 1, "n": 59_999}})
        assert rows(chunks, 1) == [{"delete": {"id": 1, "x": 60_000}}]
        # Contents that are larger than the queue wait for their reader, and a reader who goes frees the pipeline.
        monkeypatch.setattr(listeners, "QUEUED_CHARACTERS", 1000)
        with pipeline.listen("many", backpressure=True, send_snapshot=True) as snapshot:
            assert rows(snapshot, 59_999) == expected[:-1]
        with pipeline.listen("many", backpressure=True, send_snapshot=True) as snapshot:
            assert len(rows(snapshot, 1)) == 10_000
        pipeline.ingest("t", {"insert": {"id": 2, "n": 1}})
        assert rows(chunks, 1) == [{"insert": {"id": 2, "x": 1}}]
    written = sink.read_text().splitlines()
    assert written == [*(f"1,{x},1" for x in range(1, 60_001)), "1,60000,-1", "2,1,1"]
    with pipeline.listen("many", backpressure=True, send_snapshot=True):
        pipeline.kill()


def test_a_table_without_contents_has_listeners_of_its_changes(make: Callable[..., Pipeline]) -> None:
    pipeline = make("CREATE TABLE log (id INT, note STRING); CREATE LOCAL VIEW n AS SELECT count(*) AS n FROM log;")
    pipeline.start()
    pipeline.insert("log", {"id": 1, "note": "before"})
    with pipeline.listen("LOG") as chunks:
        assert next(chunks) == {"snapshot": False, "json_data": []}
        pipeline.ingest("log", {"insert": {"id": 3, "note": "c"}}, {"insert": {"id": 2, "note": "b"}})
        changed = next(chunk for chunk in chunks if chunk["json_data"])
        assert changed["json_data"] == [{"insert": {"id": 2, "note": "b"}}, {"insert": {"id": 3, "note": "c"}}]
    refused = pipeline.post("egress/log", send_snapshot=True)
    assert (refused.status_code, refused.json()["error_code"]) == (400, "InvalidParam")
    reason = "The table log is not materialized, so there is no snapshot of it: declare it with 'materialized' = 'true', or leave"
    assert reason in refused.json()["message"]
    assert "The table log is not materialized, so its changes cannot be" in pipeline.get("changes/log").json()["message"]
    assert pipeline.post("egress/n").json()["error_code"] == "ConfigError.UnknownOutputStream"


def test_unknown_and_local_views_have_no_listeners(running: Pipeline) -> None:
    answer = running.post("egress/nowhere")
    assert (answer.status_code, answer.json()["error_code"]) == (404, "ConfigError.UnknownOutputStream")
    assert running.post("egress/large", format="avro").status_code == 400


def test_a_stream_may_be_asked_for_with_a_body_like_a_connector(running: Pipeline) -> None:
    running.insert("t", {"id": 1, "v": 11})
    array = {"name": "json", "config": {"array": True}}
    body = {"transport": {"name": "http_output", "config": {"backpressure": True}}, "format": array, "send_snapshot": True}
    with running.listen("totals", body=body) as chunks:
        assert next(chunks) == {"snapshot": True, "json_data": []}
        assert next(chunks)["json_data"] == [{"insert": {"name": None, "total": 11, "n": 1}}]
    weighted = {"name": "json", "config": {"array": True, "update_format": "weighted", "json_flavor": "snowflake"}}
    with running.listen("totals", body={"format": weighted, "send_snapshot": True}) as chunks:
        next(chunks)
        assert next(chunks)["json_data"] == [{"weight": 1, "data": {"name": None, "total": 11, "n": 1}}]
    # The address may say so, too.
    with running.listen("totals", send_snapshot=True, update_format="debezium", json_flavor="default") as chunks:
        next(chunks)
        [change] = next(chunks)["json_data"]
        assert change["payload"] == {"op": "c", "before": None, "after": {"name": None, "total": 11, "n": 1}}
    with running.listen("totals", send_snapshot=True, update_format="snowflake") as chunks:
        next(chunks)
        [row] = next(chunks)["json_data"]
        assert (row["total"], row["__action"], row["__seq_number"]) == (11, "insert", 1)
    assert running.post("egress/totals", update_format="raw").json()["error_code"] == "InvalidParam"
    for wrong, text, options in (
        ({"format": {"name": "json", "config": {"array": True, "update_format": "raw"}}}, "update_format", {}),
        ({"format": {"name": "json"}}, "Chunks of JSON are arrays", {}),
        ({"format": {"name": "avro"}}, "format.name", {}),
        ({"format": array}, "leave out format, json_flavor", {"format": "json", "json_flavor": "default"}),
        ({"format": array, "index": "i"}, "large has no index 'i'", {}),
        ([1], "like a connector, such as .*: it is no object", {}),
        (body, "not materialized", {}),
    ):
        answer = running.post("egress/large", json.dumps(wrong), **options)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "InvalidParam")
        assert re.search(text, answer.json()["message"])


@pytest.mark.rest
def test_updates_need_a_primary_key_and_metrics_count(make: Callable[..., Pipeline]) -> None:
    pipeline = make("CREATE TABLE bag (x INT) WITH ('materialized' = 'true');")
    pipeline.start()
    body = '{"insert": {"x": 1}}\n{"update": {"x": 2}}'
    answer = pipeline.post("ingress/bag", body, format="json")
    assert (answer.status_code, answer.json()["details"]["num_errors"]) == (400, 1)
    assert "primary key" in answer.json()["message"]
    pipeline.insert("bag", {"x": 1})
    assert pipeline.query("SELECT * FROM bag") == [{"x": 1}, {"x": 1}]
    text = pipeline.get("metrics").text
    assert "# TYPE records_processed_total counter" in text
    assert 'records_processed_total{pipeline_name="tested"} 2' in text
    assert "max_rss_bytes" in [metric["key"] for metric in pipeline.get("metrics", format="json").json()]
    assert pipeline.get("metrics", format="xml").status_code == 400


@pytest.mark.rest
def test_changes_of_keys_that_are_not_there_are_ignored(running: Pipeline) -> None:
    answer = running.post("ingress/t", '{"delete": {"v": 1}}\n{"update": {"name": "x"}}\n{"insert": {"id": 1}}', format="json")
    assert (answer.status_code, answer.json()["details"]["num_errors"]) == (400, 2)
    assert "record 0: column 'id' is missing: a delete must give the whole primary key" in answer.json()["message"]
    assert "record 1: column 'id' is missing: an update must" in answer.json()["message"]
    running.ingest("t", {"insert": {"id": 2, "v": 2}}, {"update": {"id": 2, "v": 3}})
    running.ingest("t", {"update": {"id": 9, "v": 1}}, {"delete": {"id": 8}}, {"update": {"id": 2, "v": 4}})
    assert running.query("SELECT id, v FROM t ORDER BY id") == [{"id": 1, "v": None}, {"id": 2, "v": 4}]
    [endpoint] = running.stats()["inputs"]
    assert (endpoint["metrics"]["num_parse_errors"], endpoint["metrics"]["total_records"]) == (2, 6)


def test_changes_that_find_no_row_are_counted_where_they_came_in(make: Callable[..., Pipeline]) -> None:
    pipeline = make("CREATE TABLE bag (x INT) WITH ('materialized' = 'true');", fault_tolerance={"model": "exactly_once"})
    pipeline.start()
    pipeline.insert("bag", {"x": 2})
    # Two inputs of one table: only the first has a delete that finds nothing.
    pipeline.await_token(pipeline.post("ingress/bag", "3\n").json()["token"])
    pipeline.ingest("bag", {"delete": {"x": 2}}, {"delete": {"x": 9}}, {"insert": {"x": 4}})
    assert pipeline.query("SELECT x FROM bag ORDER BY x") == [{"x": 3}, {"x": 4}]

    def errors() -> list[tuple[int, list[str]]]:
        inputs = pipeline.stats(include_connector_errors=True)["inputs"]
        assert {key for endpoint in inputs for key in endpoint["metrics"]} == {
            "total_bytes", "total_records", "buffered_records", "buffered_bytes", "num_transport_errors", "num_parse_errors",
            "end_of_input", "processing_latency_p99_micros", "lag",
        }  # fmt: skip
        return [(one["metrics"]["num_parse_errors"], [error["message"] for error in one["parse_errors"]]) for one in inputs]

    (with_errors, messages), (without, _) = errors()
    assert (with_errors, without) == (1, 0)
    assert messages[0].startswith("row 2: 1 changes of table bag were left out: the deleted row is not in the table, for")
    assert "'x': 9" in messages[0]
    assert messages[0] in pipeline.log
    # A kill forgets nothing of it: the step that left the row out is in the journal with what was counted.
    pipeline.kill()
    pipeline.start()
    assert errors()[0] == (with_errors, messages)


def test_random_defaults_are_evaluated_once(make: Callable[..., Pipeline]) -> None:
    program = """CREATE TABLE t (
        x INT, id UUID DEFAULT uuid(), until TIMESTAMP DEFAULT now() + INTERVAL 1 DAY, at TIMESTAMP DEFAULT now()
        ) WITH ('materialized' = 'true');"""
    pipeline = make(program, fault_tolerance={"model": "exactly_once"})
    pipeline.start()
    pipeline.insert("t", {"x": 1}, {"x": 2})
    pipeline.query("INSERT INTO t (x) VALUES (3), (4)")
    contents = pipeline.query("SELECT * FROM t ORDER BY x")
    assert len({row["id"] for row in contents}) == 4
    assert pipeline.query("SELECT COUNT(*) AS n FROM t WHERE until = at + INTERVAL 1 DAY") == [{"n": 4}]
    # What is replayed is what was committed.
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT * FROM t ORDER BY x") == contents


def test_query_formats(running: Pipeline) -> None:
    running.insert("t", {"id": 1, "v": 1, "name": "a"}, {"id": 2, "v": None, "name": None})
    sql = "SELECT id, name FROM t ORDER BY id"
    text = running.get("query", sql=sql)
    assert text.headers["content-type"].startswith("text/plain")
    assert text.text.splitlines() == [
        "+----+------+",
        "| id | name |",
        "+----+------+",
        "| 1  | a    |",
        "| 2  |      |",
        "+----+------+",
    ]
    assert running.query(sql) == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    parquet = running.get("query", sql=sql, format="parquet").content
    assert pq.read_table(io.BytesIO(parquet)).to_pylist() == running.query(sql)
    arrow = running.get("query", sql=sql, format="arrow_ipc").content
    assert pa.ipc.open_stream(arrow).read_all().to_pylist() == running.query(sql)
    one = running.get("query", sql="SELECT id FROM t ORDER BY id", format="hash").text
    other = running.get("query", sql="SELECT id FROM t ORDER BY id DESC", format="hash").text
    assert one == other == one.upper()
    assert one != running.get("query", sql="SELECT id + 1 AS id FROM t", format="hash").text
    intervals = "SELECT INTERVAL '1-2' YEAR TO MONTH AS y, ARRAY(INTERVAL '-1 02' DAY TO HOUR) AS d"
    assert running.query(intervals) == [{"y": "P1Y2M", "d": ["-P1DT2H"]}]
    parquet = running.get("query", sql=intervals, format="parquet").content
    assert pq.read_table(io.BytesIO(parquet)).to_pylist() == running.query(intervals)
    assert '| P1Y2M | ["-P1DT2H"] |' in running.get("query", sql=intervals).text


def test_query_errors_are_problems_without_stacks(running: Pipeline) -> None:
    for sql, expected in (
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT nothing FROM t", "nothing"),
        ("SELEC 1", "SELEC"),
        ("DROP TABLE t", "program"),
        ("SELECT * FROM large", "Tried to SELECT from a non-materialized source"),
        ("INSERT INTO t VALUES (NULL, 1, 'x')", "NULL"),
    ):
        answer = running.get("query", sql=sql)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "AdHocQueryError"), sql
        assert expected in answer.json()["message"]
        assert "\tat org." not in answer.json()["message"]
    failed = running.get("query", sql="SELECT 1 DIV 0")
    assert (failed.status_code, failed.text.splitlines()) == (200, [failed.text.strip()])
    assert failed.text.startswith("ERROR: Division by zero")
    assert "\tat org." not in failed.text
    assert running.get("query", sql="SELECT 1", format="xml").json()["error_code"] == "InvalidParam"
    assert json.loads(running.get("query", sql="SELECT 1 AS x", format="json").text) == {"x": 1}


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("CREATE TABLE t (id BIGINT) WITH ('append_only' = 'true', 'materialized' = 'true');", "append-only"),
        ("CREATE TABLE t (id BIGINT, at TIMESTAMP LATENESS INTERVAL 1 HOURS) WITH ('materialized' = 'true');", "LATENESS"),
    ],
)
def test_a_table_that_cannot_be_truncated_refuses_it_and_the_pipeline_goes_on(
    make: Callable[..., Pipeline], definition: str, reason: str
) -> None:
    pipeline = make(definition)
    pipeline.start()
    pipeline.insert("t", {"id": 1, "at": "2026-01-01 00:00:00"} if reason == "LATENESS" else {"id": 1})
    row = {"payload": {"op": "c", "before": None, "after": {"id": 7}}}
    body = f'{{"payload": {{"op": "t"}}}}\n{json.dumps(row)}'
    answer = pipeline.post("ingress/t", body, format="json", update_format="debezium")
    assert (answer.status_code, answer.json()["details"]["num_errors"]) == (400, 1)
    assert re.search(f"table 't' cannot be truncated: .*{reason}", answer.json()["message"])
    assert pipeline.query("SELECT id FROM t") == [{"id": 1}]
    pipeline.insert("t", {"id": 2, "at": "2026-01-01 00:00:00"} if reason == "LATENESS" else {"id": 2})
    assert pipeline.query("SELECT id FROM t ORDER BY id") == [{"id": 1}, {"id": 2}]


def test_deletes_of_an_append_only_table_are_refused(make: Callable[..., Pipeline]) -> None:
    pipeline = make("CREATE TABLE t (id BIGINT) WITH ('append_only' = 'true', 'materialized' = 'true');")
    pipeline.start()
    body = '{"insert": {"id": 1}} {"delete": {"id": 1}} {"insert": {"id": 2}}'
    answer = pipeline.post("ingress/t", body, format="json")
    assert answer.status_code == 400
    assert "append-only" in answer.json()["message"]
    pipeline.insert("t", {"id": 3})
    assert pipeline.query("SELECT id FROM t ORDER BY id") == [{"id": 1}, {"id": 2}, {"id": 3}]
    metrics = pipeline.stats()["global_metrics"]
    assert metrics["total_input_records"] == metrics["total_processed_records"] == 3
