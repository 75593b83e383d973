"""Bad input as a user meets it through the SDK: a clear error, at once, and nothing lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines import (
    BootstrapPolicy,
    Pipeline,
    PipelineAPIError,
    PipelineBuilder,
    PipelineClient,
    PipelineFailedError,
    PipelineStatus,
    PipelineTimeoutError,
    ProgramCompilationError,
    RuntimeConfig,
    Storage,
)
from airflow_pipelines.service.control import Control
from airflow_pipelines.settings import Settings
from airflow_pipelines.wire import path_of
from tests.fixtures.sdk import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

INTERNALS = re.compile(
    r"Traceback|sqlglot|org\.apache|at java|JVM|SQLSTATE|spark\.sql|'?(Project|LocalRelation|SubqueryAlias)\b|<class"
)
"""What no user should have to read."""


def file_connector(name: str, path: Path, format_name: str = "csv") -> dict[str, Any]:
    transport = {"name": "file_input", "config": {"path": str(path)}}
    return {"name": name, "transport": transport, "format": {"name": format_name}}


def table_with(connectors: list[dict[str, Any]] | str) -> str:
    text = connectors if isinstance(connectors, str) else json.dumps(connectors)
    return f"create table t (id bigint not null, v decimal(6, 2), s varchar) with (\n'connectors' = '{text}');"


def named(client: PipelineClient, name: str) -> Pipeline:
    return Pipeline.get(name, client)


# --- programs ---------------------------------------------------------------------------------------------------------------------

T = "create table t (i int);\n"
PLACE = '"transport": {"name": "file_input", "config": {"path": "/x"}}'

# The marks show what the error has to point at.
WRONG_PROGRAMS = {
    "no-statement": ("«import» os", "Expected CREATE TABLE, VIEW, TYPE or FUNCTION; found 'import'"),
    "misspelt-word": (T + "create view v as\n  «selec» * from t;", "Expected a query after AS; found 'selec'"),
    "unfinished": (T + "create view v as select i + «from» t;", "Incomplete expression; found 'from'"),
    "open-bracket": ("create table t (i «int»;", "Expected ); found the end of the statement"),
    "unknown-table": (
        T + "create view v as\n select * from «blah»;",
        "From line 3, column 16 to line 3, column 19: Object 'blah' not found",
    ),
    "unknown-column": (T + "create view v as select «nope» from t;", "with name `nope` cannot be resolved"),
    "unknown-function": (T + "create view v as select «nofn(i)» as x from t;", "Function `nofn` does not exist"),
    "unknown-type": ("create table t (i int,\n  j «blob_type»);", "Unknown type 'blob_type'. Known types: ARRAY, BIGINT"),
    "cycle": ("create view «a» as select * from b;\ncreate view b as select * from a;", "in a cycle: a -> b -> a"),
    "transport": (
        table_with('[{"name": "c", "transport": {"name": «"file_inptu"»}}]'),
        "Connector 't.c': unknown transport 'file_inptu'; known transports: file_input; did you mean 'file_input'",
    ),
    "transport-option": (
        table_with('[{"transport": {"name": "file_input", "config": {«"pth"»: "/x"}}, "format": {"name": "csv"}}]'),
        "unknown option 'pth' of transport 'file_input'; known options: buffer_size_bytes, follow, path; did you mean 'path'",
    ),
    "format": (
        table_with("[{" + PLACE + ', "format": {"name": «"cvs"»}}]'),
        "unknown format 'cvs'; known formats: csv, json, parquet; did you mean 'csv'",
    ),
    "format-option": (
        table_with("[{" + PLACE + ', "format": {"name": "csv", "config": {«"header"»: true}}}]'),
        "unknown option 'header' of format 'csv'; known options: delimiter, headers, quote; did you mean 'headers'",
    ),
    "connector-option": (
        table_with('[{«"pause"»: true, ' + PLACE + ', "format": {"name": "csv"}}]'),
        "unknown option 'pause'; known options: labels, max_batch_size",
    ),
    "missing-option": (
        table_with('[«{"name": "c", "transport": {"name": "file_input"}, "format": {"name": "csv"}}»]'),
        "option 'path' of transport 'file_input' is missing",
    ),
    "connector-json": (table_with('[{"name": "c",«]»'), "The connectors are not valid JSON"),
    "property": (
        "create table t (i int) with (\n «'materialised'» = 'true');",
        "Unknown property 'materialised'. Known properties: ",
    ),
}


@pytest.mark.parametrize("which", WRONG_PROGRAMS)
def test_a_wrong_program_says_where_and_why(embedded_client: PipelineClient, pipeline_name: str, which: str) -> None:
    marked, reason = WRONG_PROGRAMS[which]
    program = marked.replace("«", "").replace("»", "")
    before, _, rest = marked.partition("«")
    width = rest.index("»")
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    with pytest.raises(RuntimeError) as caught:
        PipelineBuilder(embedded_client, pipeline_name, program).create(timeout_s=60)
    assert isinstance(caught.value, ProgramCompilationError)
    text = str(caught.value)
    assert f"\n{line}:{column}: " in text, text
    assert reason in text
    quoted = text.splitlines()
    shown = next(at for at, each in enumerate(quoted) if each.startswith(f"{line:5}|"))
    assert quoted[shown] == f"{line:5}|{program.splitlines()[line - 1]}"
    assert quoted[shown + 1] == " " * (5 + column) + "^" * width
    assert not INTERNALS.search(text)
    assert named(embedded_client, pipeline_name).program_status().get_error()


def test_a_wrong_program_can_be_corrected(embedded_client: PipelineClient, pipeline_name: str) -> None:
    with pytest.raises(ProgramCompilationError):
        PipelineBuilder(embedded_client, pipeline_name, T + "create view v as select nope from t;").create(timeout_s=60)
    pipeline = named(embedded_client, pipeline_name)
    with pytest.raises(PipelineAPIError, match=r"did not compile.*line 2, column 25: .*`nope`.*correct the program") as caught:
        pipeline.start()
    assert (caught.value.status_code, caught.value.error_code) == (400, "CannotStartWithCompilationError")
    pipeline.modify(sql=T + "create materialized view v as select i from t;")
    pipeline.start(timeout_s=60)
    pipeline.input_json("t", {"i": 7})
    # The view has been run, so a program that does not compile may not take what it holds away.
    pipeline.stop(force=True, timeout_s=60)
    pipeline.modify(sql=T + "create materialized view v as select nope from t;")
    # Whether it is found before the start or on the way makes no difference.
    with pytest.raises((PipelineFailedError, PipelineAPIError), match=r"`nope` cannot be resolved"):
        pipeline.start(timeout_s=60)
    pipeline.modify(sql=T + "create materialized view v as select i from t;")
    pipeline.start(timeout_s=60)
    assert list(pipeline.query("select * from v")) == [{"i": 7}]


# --- names ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["create", "create_or_replace"])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "EmptyName"),
        ("a b", "NameDoesNotMatchPattern"),
        ("-a", "NameDoesNotMatchPattern"),
        ("a/b", "NameDoesNotMatchPattern"),
        ("..", "NameDoesNotMatchPattern"),
        ("../../etc", "NameDoesNotMatchPattern"),
        ("é", "NameDoesNotMatchPattern"),
        ("x" * 64, "TooLongName"),
    ],
)
def test_invalid_names_are_refused(embedded_client: PipelineClient, name: str, code: str, method: str) -> None:
    before = {pipeline.name for pipeline in Pipeline.all(embedded_client)}
    with pytest.raises(PipelineAPIError) as caught:
        getattr(PipelineBuilder(embedded_client, name, T), method)()
    assert (caught.value.status_code, caught.value.error_code) == (400, code)
    assert "name" in caught.value.message
    assert {pipeline.name for pipeline in Pipeline.all(embedded_client)} == before


def test_a_name_that_is_taken(embedded_client: PipelineClient, pipeline_name: str) -> None:
    PipelineBuilder(embedded_client, pipeline_name, T).create(timeout_s=60)
    with pytest.raises(RuntimeError, match="exists already: use create_or_replace"):
        PipelineBuilder(embedded_client, pipeline_name, "").create()
    with pytest.raises(PipelineAPIError, match=f"'{pipeline_name}' already exists") as caught:
        embedded_client.post("/v0/pipelines", json={"name": pipeline_name, "program_code": ""})
    assert (caught.value.status_code, caught.value.error_code) == (409, "DuplicateName")
    assert named(embedded_client, pipeline_name).program_code() == T


def test_a_pipeline_that_is_not_there(embedded_client: PipelineClient) -> None:
    with pytest.raises(PipelineAPIError, match="no pipeline named 'nobody'") as caught:
        named(embedded_client, "nobody")
    assert (caught.value.status_code, caught.value.error_code) == (404, "UnknownPipelineName")


# --- one pipeline with bad files, and everything that one can do wrong with it ------------------------------------------------


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


def test_malformed_rows_are_counted_kept_and_left_out(spoilt: Spoilt) -> None:
    pipeline = spoilt.pipeline
    eventually(lambda: bool(pipeline.input_connector_stats("t", "json").metrics.end_of_input))  # type: ignore[union-attr]
    eventually(lambda: bool(pipeline.input_connector_stats("t", "csv").metrics.end_of_input))  # type: ignore[union-attr]
    eventually(lambda: pipeline.stats().global_metrics.total_completed_records == 4)  # type: ignore[union-attr]
    assert spoilt.ids("id < 20") == [1, 3, 10, 14]
    for name, places in {
        "csv": [
            ("rows.csv: line 2: column 'id'", "nonsense,2,b"),
            ("rows.csv: line 3: 2 fields, but the table has 3", "2,2.5"),
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


@pytest.mark.parametrize(
    ("table", "options", "status", "code", "message"),
    [
        ("nope", {"format": "csv"}, 404, "ConfigError.UnknownInputStream", "no table nope; tables: hidden_table, t"),
        ("doubled", {"format": "csv"}, 404, "ConfigError.UnknownInputStream", "no table doubled"),
        ("t", {"format": "xml"}, 400, "InvalidParam", "unknown format 'xml'; known formats: csv, json, parquet"),
        ("t", {"format": "json", "update_format": "foo"}, 400, "InvalidParam", "'insert_delete' or 'raw'"),
        ("t", {"format": "json", "force": "perhaps"}, 400, "InvalidParam", "force"),
    ],
)
def test_ingress_that_makes_no_sense(
    spoilt: Spoilt, table: str, options: dict[str, Any], status: int, code: str, message: str
) -> None:
    with pytest.raises(PipelineAPIError, match=re.escape(message)) as caught:
        spoilt.push(table, "1,1,a\n", **options)
    assert (caught.value.status_code, caught.value.error_code) == (status, code)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", "line 1, column 1: .*Expected SELECT, INSERT or DELETE; found 'selec'"),
        ("select id from\n  where", "line 2, column 3: .*found 'where'"),
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
        ("set spark.sql.ansi.enabled = false", "Expected SELECT, INSERT or DELETE"),
        ("select * from text.`/etc/passwd`", "does not exist"),
        ("", "The request has no statement"),
    ],
)
def test_ad_hoc_mistakes(spoilt: Spoilt, sql: str, message: str) -> None:
    with pytest.raises(PipelineAPIError) as caught:
        spoilt.pipeline.execute(sql)
    assert (caught.value.status_code, caught.value.error_code) == (400, "AdHocQueryError")
    assert re.search(message, caught.value.message, re.DOTALL), caught.value.message
    assert not INTERNALS.search(caught.value.message.replace(sql, ""))
    assert spoilt.pipeline.status() is PipelineStatus.RUNNING


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


# --- steps that fail ----------------------------------------------------------------------------------------------------------


FAILING = """create table t (id bigint not null primary key, v bigint, s varchar) with ('materialized' = 'true');
create materialized view shares as select id, 100 / v as share from t;
create materialized view larger as select id, v + 9223372036854775800 as sum from t;
create materialized view numbers as select id, cast(s as int) as n from t;
"""
REPAIRED = """create table t (id bigint not null primary key, v bigint, s varchar) with ('materialized' = 'true');
create materialized view shares as select id, try_divide(100, v) as share from t;
create materialized view larger as select id, try_add(v, 9223372036854775800) as sum from t;
create materialized view numbers as select id, try_cast(s as int) as n from t;
"""


def test_a_step_that_fails_takes_nothing_along(embedded_client: PipelineClient, pipeline_name: str) -> None:
    pipeline = PipelineBuilder(embedded_client, pipeline_name, FAILING).create(timeout_s=60)
    pipeline.start(timeout_s=60)
    pipeline.input_json("t", {"id": 1, "v": 4, "s": "1"})
    pipeline.checkpoint(wait=True, timeout_s=60)
    pipeline.input_json("t", {"id": 2, "v": 5, "s": "2"})
    for row, view, condition, cause in (
        ({"id": 3, "v": 0, "s": "3"}, "shares", "DIVIDE_BY_ZERO", "Division by zero"),
        ({"id": 3, "v": 8, "s": "3"}, "larger", "ARITHMETIC_OVERFLOW", "overflow"),
        ({"id": 3, "v": 1, "s": "three"}, "numbers", "CAST_INVALID_INPUT", "'three'"),
    ):
        listener = pipeline.listen("shares")
        began = time.monotonic()
        with pytest.raises(PipelineFailedError) as caught:
            pipeline.input_json("t", row)
        assert time.monotonic() - began < 20
        error = pipeline.deployment_error()
        assert caught.value.deployment_error == error
        assert error is not None
        assert error["error_code"] == "RuntimeError.WorkerPanic"
        assert (error["details"]["view"], error["details"]["condition"]) == (view, condition)
        assert (error["details"]["relation"], error["details"]["row"]) == ("t", row)
        for text in (str(caught.value), error["message"]):
            assert view in text
            assert cause in text
            assert not INTERNALS.search(text)
        assert pipeline.status() is PipelineStatus.STOPPED
        # Whoever polls the listener for more hears of it, too.
        assert listener.join(10)
        with pytest.raises(PipelineFailedError, match=cause):
            listener.to_dict()
        # Not even what came after the checkpoint is lost.
        pipeline.start(timeout_s=60)
        assert [row["id"] for row in pipeline.query("select id from t order by id")] == [1, 2]
    with pytest.raises(PipelineFailedError):
        pipeline.input_json("t", {"id": 3, "v": 0, "s": "three"})
    with pytest.raises(PipelineAPIError, match=r"before its last error is dismissed.*dismiss_error") as refused:
        pipeline.start(dismiss_error=False)
    assert refused.value.error_code == "CannotStartWithUndismissedError"
    pipeline.modify(sql=REPAIRED)
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW, timeout_s=60)
    pipeline.input_json("t", {"id": 3, "v": 0, "s": "three"})
    assert list(pipeline.query("select * from numbers order by id")) == [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 3, "n": None}]
    shares = {row["id"]: row["share"] for row in pipeline.query("select * from shares")}
    assert shares == {1: Decimal(25), 2: Decimal(20), 3: None}


# --- what is missing on the machine -------------------------------------------------------------------------------------------


def test_no_java_reaches_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    client = PipelineClient(home=tmp_path / "home")
    with pytest.raises(RuntimeError, match=r"JAVA_HOME is .*nowhere.*apt-get install openjdk-17-jre-headless"):
        PipelineBuilder(client, "p", T).create(timeout_s=20)
    pipeline = named(client, "p")
    with pytest.raises(PipelineAPIError, match="put that right, send the program again") as caught:
        pipeline.start()
    assert caught.value.error_code == "CannotStartWithCompilationError"
    # The same program given again is compiled again.
    folder = tmp_path / "java"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    (folder / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    pipeline.modify(sql=T)
    with pytest.raises((PipelineFailedError, PipelineAPIError)):
        pipeline.start(timeout_s=20)
    eventually(lambda: "is Java 11, but Spark 4.2.0 needs Java 17 or 21" in str(pipeline.program_error()))
    client.close()


def test_a_wrong_pair_of_packages_reaches_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.pins._version", {"pyspark": "4.3.0", "pyspark-client": "4.2.0"}.get)
    with pytest.raises(RuntimeError, match=r"pyspark 4\.3\.0 and pyspark-client 4\.2\.0.*Fix: pip uninstall"):
        PipelineBuilder(PipelineClient(home=tmp_path), "p", T).create(timeout_s=20)


@pytest.mark.parametrize("variable", ["home", "AIRFLOW_PIPELINES_STORAGE"])
def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    (tmp_path / "file").write_text("")
    folder, home = tmp_path / "file" / "sub", tmp_path / "home"
    if variable == "home":
        home = folder
    else:
        monkeypatch.setenv(variable, str(folder))
    with pytest.raises(PipelineAPIError, match=f"{folder}.*(Not a directory|cannot be created)") as caught:
        PipelineClient(home=home).version()
    assert (caught.value.status_code, caught.value.error_code) == (503, "StoreUnavailable")
    assert (tmp_path / "file").read_text() == ""


FORBIDDEN = """
import os, sys
from airflow_pipelines import PipelineClient
from airflow_pipelines.errors import PipelineAPIError
allowed, forbidden = sys.argv[1:]
# Everything is imported as the one who may read it.
PipelineClient(home=allowed).version()
os.setgid(65534)
os.setuid(65534)
try:
    PipelineClient(home=forbidden).post("/v0/pipelines", json={"name": "p", "program_code": ""})
except PipelineAPIError as error:
    print(error.error_code, error.message)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("what", ["folder", "database"])
def test_a_folder_without_permission(tmp_path: Path, what: str) -> None:
    forbidden = tmp_path / "forbidden"
    PipelineClient(home=forbidden).version()
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder != Path("/") and str(folder).startswith("/tmp/"):
            folder.chmod(0o711)
    forbidden.chmod(0o700 if what == "folder" else 0o755)
    done = subprocess.run(
        [sys.executable, "-c", FORBIDDEN, str(tmp_path / "allowed"), str(forbidden)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("StoreUnavailable "), done.stdout + done.stderr
    assert str(forbidden) in done.stdout
    assert re.search(r"let this user write|user may write", done.stdout), done.stdout


# --- a real host dies -----------------------------------------------------------------------------------------------------------

ACCESS_KEY, SECRET_KEY, API_KEY = "ak-2f9c11d7", "sk-8e41ba07", "key-77d0c3aa"


@dataclass
class Outcome:
    """What became of a call in a thread of its own."""

    call: Callable[[], Any]
    error: Exception | None = None
    ended_at: float = 0.0
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.call()
        except Exception as error:  # noqa: BLE001 - it is looked at afterwards
            self.error = error
        self.ended_at = time.monotonic()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PipelineClient, Control]]:
    """A store of its own, whose first use starts a real shared host."""
    home = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_PIPELINES_MASTER", "local[2]")
        patch.setenv("AIRFLOW_PIPELINES_DRIVER_MEMORY", "1g")
        client = PipelineClient(home=home, api_key=API_KEY)
    control = Control(Settings.load(home))
    yield client, control
    for host in control.registry.live_hosts():
        control.hosts.end(host)
    control.close()
    client.close()


def followed(pipeline: Pipeline) -> str:
    """The log as it is followed, up to the end of the host."""
    lines = []
    for line in pipeline.logs():
        lines.append(line)
        if "lost" in line:
            break
    return "\n".join(lines)


def test_a_host_that_dies_is_heard_of_at_once_and_no_secret_is(
    real: tuple[PipelineClient, Control], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    client, control = real
    home = control.settings.home
    sync = {"bucket": f"file://{home}/bucket", "access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
    config = RuntimeConfig(storage=Storage({"backend": {"name": "file", "config": {"sync": sync}}}))
    program = "create table t (id bigint not null) with ('materialized' = 'true'); create view v as select id from t;"
    pipeline = PipelineBuilder(client, "mortal", program, runtime_config=config).create(timeout_s=200)
    pipeline.start_paused(timeout_s=60)
    pipeline.wait_for_token(pipeline.input_json("t", {"id": 1}, force=True, wait=False), timeout_s=60)
    pipeline.checkpoint(wait=True, timeout_s=60)
    pipeline.sync_checkpoint(wait=True, timeout_s=60)
    listener = pipeline.listen("v")
    waiting = {
        "query": Outcome(lambda: pipeline.execute("insert into t values (3)")),
        "ingress": Outcome(lambda: client.post(pipeline._path("ingress", "t"), params={"format": "csv"}, content="4\n")),
        "idle": Outcome(lambda: pipeline.wait_for_idle(60, 120)),
        "status": Outcome(lambda: pipeline.wait_for_status(PipelineStatus.RUNNING, 120)),
        "listener": Outcome(lambda: listener.join(120)),
    }
    time.sleep(1)
    assert all(outcome.thread.is_alive() for outcome in waiting.values())
    [host] = control.registry.live_hosts("shared")
    assert host.pid is not None
    os.kill(host.pid, signal.SIGKILL)
    killed = time.monotonic()
    for name, outcome in waiting.items():
        outcome.thread.join(20)
        assert not outcome.thread.is_alive(), f"{name} hangs"
        assert outcome.ended_at - killed < 10, name
        if name != "listener":
            assert isinstance(outcome.error, PipelineAPIError if name in ("query", "ingress") else PipelineFailedError), name
            assert f"serving at {host.url}" in str(outcome.error), f"{name}: no last lines of the log"
    with pytest.raises(PipelineFailedError, match="The host of the pipeline was lost"):
        listener.to_dict()
    assert pipeline.status() is PipelineStatus.STOPPED
    error = pipeline.deployment_error()
    assert error is not None
    assert error["error_code"] == "RuntimeError.HostLost"

    # Everything that was said and written, and none of the secrets in it.
    texts = {
        "errors": "\n".join(f"{outcome.error!r} {outcome.error}" for outcome in waiting.values()),
        "reprs": f"{client!r} {pipeline!r} {control.settings!r} {vars(listener)} {host!r}",
        "deployment error": repr((error, pipeline.errors())),
        "events": repr([pipeline.event(each["event_id"]) for each in pipeline.events()]),
        "logs": followed(pipeline),
        "python's logging": caplog.text,
        "output": "".join(capfd.readouterr()),
        "bucket": "\n".join(path.read_text(errors="replace") for path in (home / "bucket").rglob("*.json")),
        **{str(path): path.read_text(errors="replace") for path in (home / "logs").glob("*.log")},
    }
    assert "now Paused" in texts["logs"]
    assert texts["bucket"]
    for where, text in texts.items():
        for secret in (ACCESS_KEY, SECRET_KEY, API_KEY, host.token):
            assert secret not in text, where

    # What was committed is still there for the next start.
    assert len((pipeline.storage_status_details() or {})["checkpoints"]) == 1


def test_a_database_password_is_never_told(tmp_path: Path) -> None:
    environment = {**os.environ, "AIRFLOW_PIPELINES_DATABASE_URL": "postgresql://me:pw-5d1c@127.0.0.1:1/store"}
    command = [sys.executable, "-m", "airflow_pipelines.cli", "serve", "--port", "0", "--home", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 1
    assert "127.0.0.1:1/store" in done.stderr
    assert "Traceback" not in done.stderr
    assert "pw-5d1c" not in done.stdout + done.stderr
