"""Rows, files and calls that are wrong, as a user meets it through the SDK: a clear error, at once, and nothing lost."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines import (
    Pipeline,
    PipelineAPIError,
    PipelineBuilder,
    PipelineClient,
    PipelineFailedError,
    PipelineStatus,
    PipelineTimeoutError,
    RuntimeConfig,
)
from airflow_pipelines.sdk.wire import path_of
from tests.fixtures.sdk import eventually
from tests.integration.bad_input import INTERNALS, T, file_connector

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


@dataclass
class Spoilt:
    """A running pipeline whose files have malformed rows, and of which one file is missing."""

    pipeline: Pipeline
    client: PipelineClient
    folder: Path

    def push(self, table: str, body: str | bytes, **params: Any) -> Any:
        path = path_of("pipelines", self.pipeline.name, "ingress", table)
        return self.client.post(path, params=params, content=body, headers={"Content-Type": "application/octet-stream"})

    def ids(self, condition: str) -> list[int]:
        return [row["id"] for row in self.pipeline.query(f"select id from t where {condition} order by id")]


@pytest.fixture(scope="module")
def spoilt(embedded_client: PipelineClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spoilt]:
    folder = tmp_path_factory.mktemp("spoilt")
    (folder / "rows.csv").write_text('1,1.5,a\nnonsense,2,b\n2,2.5\n3,3.5,"c\nc"\n,1,d\n')
    (folder / "rows.json").write_text(
        '{"insert": {"id": 10, "v": 1}}\n{"insert": {"id": "x"}}\n{"insert": {"v": 1}}\n{"inser": {"id": 11}}\n'
        '{"insert": {"id": 12, \n{"insert": {"id": 13, "v": 123456}}\n{"insert": {"id": 14, "v": 2}}\n'
    )
    connectors = [
        file_connector("csv", folder / "rows.csv"),
        file_connector("json", folder / "rows.json", "json"),
        file_connector("missing", folder / "late" / "rows.csv"),
    ]
    program = (
        f"create table t (id bigint not null, v decimal(6, 2), s varchar) with ('materialized' = 'true', "
        f"'connectors' = '{json.dumps(connectors)}');\n"
        "create table hidden_table (id bigint not null);\n"
        "create view hidden as select id from t;\n"
        "create materialized view doubled as select id, v * 2 as w from t;\n"
    )
    pipeline = PipelineBuilder(embedded_client, "bad-input", program).create(timeout_s=60)
    pipeline.start(timeout_s=60)
    found = Spoilt(pipeline, embedded_client, folder)
    yield found
    pipeline.stop(force=True, timeout_s=60)
    pipeline.delete(clear_storage=True)


@pytest.mark.core
def test_malformed_rows_are_counted_kept_and_left_out(spoilt: Spoilt) -> None:
    pipeline = spoilt.pipeline
    eventually(lambda: bool(pipeline.input_connector_stats("t", "json").metrics.end_of_input))  # type: ignore[union-attr]
    eventually(lambda: bool(pipeline.input_connector_stats("t", "csv").metrics.end_of_input))  # type: ignore[union-attr]
    eventually(lambda: pipeline.stats().global_metrics.total_completed_records == 4)  # type: ignore[union-attr]
    assert spoilt.ids("id < 20") == [1, 3, 10, 14]
    for name, places in {
        "csv": [
            ("rows.csv: line 2: column 'id'", "nonsense,2,b"),
            ("rows.csv: line 3: 2 fields, but column 's' is number 3", "2,2.5"),
            ("rows.csv: line 6: column 'id'", ",1,d"),
        ],
        "json": [
            ("rows.json: record 1: column 'id'", '"x"'),
            ("rows.json: record 2: column 'id' is missing", '{"v": 1}'),
            ("rows.json: record 3: 'inser' is not a change", '"id": 11'),
            ("rows.json: record 4: malformed JSON", '"id": 12'),
            ("rows.json: record 5: column 'v'", "123456"),
        ],
    }.items():
        stats = pipeline.input_connector_stats("t", name)
        assert stats.metrics is not None
        assert stats.fatal_error is None
        assert (stats.metrics.total_records, stats.metrics.num_parse_errors) == (2, len(places))
        messages = [error.message or "" for error in stats.parse_errors or []]
        for message, (place, sample) in zip(messages, places, strict=True):
            assert message.startswith(place), message
            assert sample in message


def test_a_missing_file_stops_its_connector_only(spoilt: Spoilt) -> None:
    pipeline = spoilt.pipeline
    missing = spoilt.folder / "late" / "rows.csv"
    eventually(lambda: pipeline.input_connector_stats("t", "missing").fatal_error is not None)
    stats = pipeline.input_connector_stats("t", "missing")
    assert f"there is no file or folder {missing}" in (stats.fatal_error or "")
    assert stats.health is not None
    assert stats.health.status == "Unhealthy"
    assert pipeline.status() is PipelineStatus.RUNNING
    with pytest.raises(PipelineTimeoutError, match=r"to complete its inputs; last seen: 4 records received.*status Running"):
        pipeline.wait_for_completion(timeout_s=0.3)
    missing.parent.mkdir()
    missing.write_text("19,9.5,late\n")
    pipeline.stop(force=False, timeout_s=60)
    pipeline.start(timeout_s=60)
    pipeline.wait_for_completion(timeout_s=60)
    assert spoilt.ids("id < 20") == [1, 3, 10, 14, 19]
    stats = pipeline.input_connector_stats("t", "missing")
    assert stats.fatal_error is None
    # What happened before the restart is still told.
    assert stats.transport_errors
    assert len(pipeline.input_connector_stats("t", "csv").parse_errors or []) == 3


@pytest.mark.core
@pytest.mark.parametrize(
    ("options", "body", "errors", "loaded"),
    [
        (
            {"format": "json"},
            '{"insert":{"id":20}}\n{"insert":{"id":"q"}}\n{"insert":{"v":1}}\n{"insert":{"id":21}}',
            ["record 1: column 'id': \"q\"", "record 2: column 'id' is missing and NOT NULL"],
            [20, 21],
        ),
        ({"format": "csv"}, "30,1,a\nx,1,a\n31,1\n32,1,b\n", ["line 2: column 'id': 'x'", "line 3: 2 fields"], [30, 32]),
        ({"format": "csv"}, b"33,1,a\n\xff\xfe,2,b\n", ["line 2: column 'id'"], [33]),
        ({"format": "json", "array": True}, '[{"insert":{"id":40}},{"insert":{"id":"q"}}]', ["record 1: .*whole array"], []),
        ({"format": "json"}, '{"insert":{"id":50}}\n{"insert":{"id":51}', ["record 1: malformed JSON"], [50]),
        ({"format": "json"}, "hello", ["record 0: malformed JSON"], []),
        ({"format": "parquet"}, b"hello", ["not a Parquet file"], []),
    ],
)
def test_ingress_of_bad_rows(
    spoilt: Spoilt, options: dict[str, Any], body: str | bytes, errors: list[str], loaded: list[int]
) -> None:
    with pytest.raises(PipelineAPIError) as caught:
        spoilt.push("t", body, **options)
    error = caught.value
    assert (error.status_code, error.error_code) == (400, "ParseErrors")
    assert error.details["num_errors"] == len(errors) == len(error.details["errors"])
    lines = error.message.splitlines()
    assert lines[0] == f"Errors parsing input data ({len(errors)} errors):"
    for line, expected in zip(lines[1:], errors, strict=True):
        assert re.match(expected, line), line
    for number in loaded:
        eventually(lambda number=number: spoilt.ids(f"id = {number}") == [number])  # type: ignore[misc]
    assert not set(spoilt.ids("id between 20 and 60")) & ({40, 51} | set(range(20, 60, 1)) - {20, 21, 30, 32, 33, 50})


@pytest.mark.core
@pytest.mark.parametrize(
    ("table", "options", "status", "code", "message"),
    [
        ("nope", {"format": "csv"}, 404, "ConfigError.UnknownInputStream", "no table nope; tables: hidden_table, t"),
        ("doubled", {"format": "csv"}, 404, "ConfigError.UnknownInputStream", "no table doubled"),
        (
            "t",
            {"format": "xml"},
            400,
            "InvalidParam",
            "unknown format 'xml'; known formats: avro, csv, json, orc, parquet, protobuf",
        ),
        (
            "t",
            {"format": "json", "update_format": "foo"},
            400,
            "InvalidParam",
            "should be 'insert_delete', 'raw', 'weighted', 'debezium' or 'snowflake'",
        ),
        ("t", {"format": "json", "force": "perhaps"}, 400, "InvalidParam", "force"),
    ],
)
def test_ingress_that_makes_no_sense(
    spoilt: Spoilt, table: str, options: dict[str, Any], status: int, code: str, message: str
) -> None:
    with pytest.raises(PipelineAPIError, match=re.escape(message)) as caught:
        spoilt.push(table, "1,1,a\n", **options)
    assert (caught.value.status_code, caught.value.error_code) == (status, code)


@pytest.mark.core
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", "line 1, column 1: .*Expected SELECT, INSERT, DELETE, PREPARE or EXECUTE; found 'selec'"),
        ("select id from\n  )", r"line 2, column 3: .*found '\)'"),
        ("select id from\n  where", "Relation where does not exist; there are: doubled, hidden, hidden_table, t"),
        ("select id,\n nope from t", "line 2, column 2: .*`nope` cannot be resolved"),
        ("select nofn(id) from t", "Function `nofn` does not exist"),
        ("select * from nowhere", "Relation nowhere does not exist; there are: doubled, hidden, hidden_table, t"),
        ("select * from hidden", "Tried to SELECT from a non-materialized source hidden: .*CREATE MATERIALIZED VIEW"),
        ("select * from hidden_table", r"Tried to SELECT from a non-materialized source hidden_table: .*'materialized' = 'true'"),
        ("select 1 / (id - id) as x from t", r"Division by zero.* in 1 / \(id - id\)"),
        ("select cast('x' as int) from t", '\'x\' of the type "STRING" cannot be cast to "INT"'),
        ("insert into t values (null, 1, 'a')", "Column id of table t must not be NULL"),
        ("insert into t values (1, 2)", "INSERT into t gives 2 values for 3 columns"),
        ("insert into t values (999, 123456789, 'a')", "123456789 cannot be represented"),
        ("insert into doubled values (1, 2)", "doubled is a view; only tables can be changed"),
        ("insert into t (id, nope) values (1, 2)", "Table t has no column nope"),
        ("create table x (i int)", "cannot create or change tables and views: change the pipeline's program"),
        ("drop table t", "cannot create or change tables and views"),
        ("update t set id = 1", "UPDATE is not allowed in an ad-hoc request"),
        ("set spark.sql.ansi.enabled = false", "Expected SELECT, INSERT, DELETE, PREPARE or EXECUTE"),
        ("select * from text.`/etc/passwd`", "does not exist"),
        ("", "The request has no statement"),
    ],
)
def test_ad_hoc_mistakes(spoilt: Spoilt, sql: str, message: str) -> None:
    with pytest.raises(PipelineAPIError) as caught:
        spoilt.pipeline.execute(sql)
    # What Spark understands fails while it runs.
    status = 200 if sql.startswith(("select 1 /", "select cast")) else 400
    assert (caught.value.status_code, caught.value.error_code) == (status, "AdHocQueryError")
    assert re.search(message, caught.value.message, re.DOTALL), caught.value.message
    assert not INTERNALS.search(caught.value.message.replace(sql, ""))
    assert spoilt.pipeline.status() is PipelineStatus.RUNNING


@pytest.mark.core
def test_calls_in_the_wrong_state(spoilt: Spoilt) -> None:
    pipeline, client = spoilt.pipeline, spoilt.client

    def refused(call: Callable[[], Any], status: int, code: str, *words: str) -> None:
        def whole() -> None:
            result = call()
            if isinstance(result, Iterator):
                list(result)

        with pytest.raises(PipelineAPIError) as caught:
            whole()
        assert (caught.value.status_code, caught.value.error_code) == (status, code), caught.value
        for word in words:
            assert word in caught.value.message, caught.value.message

    up = ("bad-input", "Running", "Stop it")
    refused(lambda: pipeline.modify(sql=T), 400, "UpdateRestrictedToStopped", *up)
    refused(lambda: pipeline.clear_storage(), 400, "StorageStatusImmutableUnlessStopped", *up)
    refused(lambda: pipeline.delete(), 400, "DeleteRestrictedToFullyStopped", *up)
    refused(lambda: pipeline.completion_token_status("garbage"), 400, "InvalidParam", "not a completion token")
    refused(lambda: pipeline.pause_connector("t", "nope"), 404, "UnknownInputEndpoint", "t.csv")
    with pytest.raises(PipelineFailedError, match="status Running; it must be STOPPED"):
        pipeline.start()

    pipeline.pause(timeout_s=30)
    with pytest.raises(PipelineFailedError, match="PAUSED: resume it, or send rows with force=True"):
        pipeline.input_json("t", {"id": 1})
    token = spoilt.push("t", '{"insert": {"id": 70}}', format="json", force=True)["token"]
    pipeline.resume(timeout_s=30)
    pipeline.wait_for_token(token, timeout_s=30)
    pipeline.checkpoint(wait=True, timeout_s=30)
    pipeline.stop(force=True, timeout_s=60)

    down = ("bad-input", "'Stopped'", "Start it")
    for call in (
        pipeline.pause,
        pipeline.resume,
        pipeline.stats,
        pipeline.checkpoint,
        lambda: pipeline.query("select 1"),
        lambda: pipeline.execute("insert into t values (1, 1, 'a')"),
        lambda: pipeline.input_json("t", {"id": 1}),
        lambda: pipeline.listen("doubled"),
        lambda: pipeline.generate_completion_token("t", "csv"),
    ):
        refused(call, 503, "PipelineInteractionNotDeployed", *down)
    for wait in (lambda: pipeline.wait_for_idle(0.3, 5), lambda: pipeline.wait_for_completion(timeout_s=5)):
        with pytest.raises(PipelineFailedError, match=r"is stopped.*start it first"):
            wait()
    refused(lambda: pipeline.delete(), 400, "DeleteRestrictedToClearedStorage", "bad-input", "InUse", "Clear the storage")
    refused(lambda: pipeline.set_runtime_config(RuntimeConfig(workers=3)), 400, "EditRestrictedToClearedStorage", "workers")
    refused(lambda: client.patch(pipeline._path(), json={"name": "other"}), 400, "EditRestrictedToClearedStorage", "`name`")
    assert spoilt.pipeline.program_code().startswith("create table t")

    with pytest.raises(PipelineTimeoutError, match="timed out after 0 s waiting for pipeline 'bad-input' to become RUNNING; last"):
        pipeline.start(timeout_s=0)
    pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=60)
    assert 70 in spoilt.ids("id >= 70")


def test_waits_that_time_out(spoilt: Spoilt) -> None:
    pipeline = spoilt.pipeline
    name = "pipeline 'bad-input'"
    with pytest.raises(TimeoutError, match=f"0.1 s waiting for {name} to become PAUSED; last seen: status Running"):
        pipeline.wait_for_status(PipelineStatus.PAUSED, timeout=0.1)
    fed_enough = threading.Event()

    def feed() -> None:
        while not fed_enough.is_set():
            spoilt.push("t", "79,1,a\n", format="csv")

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        with pytest.raises(
            TimeoutError, match=f"waiting for {name} to be idle for 2 s; last seen: .* records received, .* processed"
        ):
            pipeline.wait_for_idle(2, 2.5, 0.1)
    finally:
        fed_enough.set()
        feeder.join(20)
    pipeline.execute("delete from t where id = 79")
    pipeline.pause(timeout_s=30)
    # With the connector switched off, what is forced in waits for nobody; without force it waits for the pipeline.
    blocked = threading.Thread(target=lambda: spoilt.push("t", "80,1,a\n", format="csv"), daemon=True)
    blocked.start()
    with pytest.raises(PipelineFailedError, match="cannot come to completion in status PAUSED"):
        pipeline.wait_for_completion(timeout_s=1)
    pipeline.resume(timeout_s=30)
    blocked.join(20)
    assert not blocked.is_alive()
    eventually(lambda: spoilt.ids("id = 80") == [80])
    with pytest.raises(TimeoutError, match=f"0 s waiting for {name} to stop; last seen: status Running .desired Suspended."):
        pipeline.stop(force=False, timeout_s=0)
    with pytest.raises((PipelineFailedError, PipelineAPIError), match=r"(?i)stop"):
        pipeline.start()
    pipeline.wait_for_status(PipelineStatus.STOPPED, timeout=60)
    pipeline.start(timeout_s=60)
    assert 80 in spoilt.ids("id >= 80")
