"""The SDK over the whole system, embedded and over the network: what the other integration tests do not touch."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pandas
import pyarrow.parquet
import pytest

from airflow_pipelines import (
    BootstrapPolicy,
    FaultToleranceModel,
    Pipeline,
    PipelineAPIError,
    PipelineBuilder,
    PipelineClient,
    PipelineFailedError,
    PipelineStatus,
    PipelineTimeoutError,
    ProgramCompilationError,
    ProgramStatus,
    RuntimeConfig,
)
from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = """create table readings (id bigint not null, value decimal(6, 2), at timestamp) with (
    'materialized' = 'true',
    'connectors' = '[{{
        "name": "file",
        "transport": {{"name": "file_input", "config": {{"path": "{path}"}}}},
        "format": {{"name": "csv"}}
    }}]'
);
create materialized view shares as select id, 100 / value as share, at from readings;
"""


@pytest.fixture(params=["embedded", "network"])
def client(request: pytest.FixtureRequest) -> PipelineClient:
    if request.param == "embedded":
        client: PipelineClient = request.getfixturevalue("embedded_client")
        return client
    return PipelineClient(request.getfixturevalue("served_url"))


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "readings.csv"
    path.write_text("1,4.00,2026-01-01 00:00:00\nnonsense,5.00,2026-01-01 00:00:00\n2,8.00,2026-01-02 00:00:00\n")
    return SQL.format(path=path)


@pytest.mark.core("embedded", slow_because="a whole life of a pipeline, to the step that fails")
def test_load_listen_query_and_fail(client: PipelineClient, pipeline_name: str, program: str, tmp_path: Path) -> None:
    pipeline = PipelineBuilder(client, pipeline_name, program).create(timeout_s=60)
    assert [event["program_status"] for event in pipeline.events()][-1] == "Pending"
    pipeline.start_paused(timeout_s=60)
    listener = pipeline.listen("shares")
    chunks: list[pandas.DataFrame] = []
    pipeline.foreach_chunk("shares", lambda frame, _: chunks.append(frame))
    with pytest.raises(PipelineTimeoutError, match="to become RUNNING; last seen: status Paused"):
        pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=0.2)
    pipeline.resume(timeout_s=60)
    pipeline.wait_for_completion(timeout_s=60)

    # The malformed row is counted and kept with its place; the rest of the file is there.
    source = pipeline.input_connector_stats("readings", "file")
    assert source.metrics is not None
    assert (source.metrics.total_records, source.metrics.num_parse_errors) == (2, 1)
    assert source.parse_errors
    assert "nonsense" in (source.parse_errors[0].message or "")
    eventually(lambda: len(listener.to_dict(clear_buffer=False)) == 2)
    frame = listener.to_pandas().sort_values("id")
    assert frame["id"].tolist() == [1, 2]
    assert frame["at"].tolist() == [pandas.Timestamp("2026-01-01"), pandas.Timestamp("2026-01-02")]
    eventually(lambda: sum(len(chunk) for chunk in chunks) == 2)

    pipeline.pause_connector("readings", "file")
    assert pipeline.input_connector_stats("readings", "file").paused
    pipeline.resume_connector("readings", "file")
    assert not pipeline.input_connector_stats("readings", "file").paused

    more = pandas.DataFrame({"id": [3], "value": [2.5], "at": pandas.to_datetime(["2026-01-03 04:05:06"])})
    pipeline.input_pandas("readings", more)
    [row] = pipeline.query("select value, at from readings where id = 3")
    assert row == {"value": Decimal("2.50"), "at": "2026-01-03T04:05:06"}
    pipeline.query_parquet("select id from readings order by id", str(tmp_path / "ids"))
    assert pyarrow.parquet.read_table(tmp_path / "ids.parquet")["id"].to_pylist() == [1, 2, 3]
    with pytest.raises(PipelineAPIError, match="nonsense"):
        pipeline.input_json("readings", {"id": "nonsense"})
    # Three megabytes of SQL in one request, all of which arrive.
    notes = ", ".join(f"({id}, '{'x' * 15_000}')" for id in range(1_000, 1_200))
    pipeline.execute(f"insert into readings select id, length(note) / 15000, null from values {notes} as n(id, note)")
    assert list(pipeline.query("select count(*) as n, sum(share) as s from shares where id >= 1000")) == [{"n": 200, "s": 20_000}]
    assert pipeline.steps()[-1].operators
    assert pipeline.deployment_location()
    logs = pipeline.logs()
    assert next(logs)
    logs.close()

    # A row that a view cannot be evaluated for takes the pipeline down; whoever waits hears why, and nothing of the step is kept.
    with pytest.raises(PipelineFailedError, match=r"(?i)division by zero|divide") as caught:
        pipeline.wait_for_token(pipeline.input_json("readings", {"id": 4, "value": 0}, wait=False), timeout_s=60)
    assert caught.value.deployment_error is not None
    assert pipeline.errors() == [pipeline.deployment_error()]
    eventually(lambda: not listener.is_alive)
    pipeline.start(timeout_s=60)
    assert list(pipeline.query("select count(*) as n from readings")) == [{"n": 203}]


def test_clauses_without_effect_are_warned_of(
    embedded_client: PipelineClient, pipeline_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = "create table t (i long comment 'x') using parquet;\ncreate or replace temp view v as select i from t;"
    pipeline = PipelineBuilder(embedded_client, pipeline_name, text).create(timeout_s=60)
    outcome = pipeline.program_error()["sql_compilation"]
    found = [(message["start_line_number"], message["start_column"], message["message"]) for message in outcome["messages"]]
    assert (outcome["exit_code"], pipeline.errors()) == (0, [])
    assert all(message["warning"] for message in outcome["messages"])
    assert [(line, column) for line, column, _ in found] == [(1, 24), (1, 37), (2, 8)]
    assert [text.split(" has no effect: ")[0] for _, _, text in found] == ["COMMENT", "USING", "OR REPLACE"]
    assert "1:37: warning: No effect: USING has no effect" in caplog.text


@pytest.mark.core("network")
def test_programs_that_do_not_compile(client: PipelineClient, pipeline_name: str) -> None:
    with pytest.raises(ProgramCompilationError, match="Object 'blah' not found") as caught:
        PipelineBuilder(client, pipeline_name, "create table t (i int);\ncreate view v as\n  select * from blah;").create(
            timeout_s=60
        )
    assert "3|  select * from blah" in str(caught.value)
    pipeline = Pipeline.get(pipeline_name, client)
    assert pipeline.program_status().get_error()
    pipeline.modify(sql="create table t (i int);\ncreate view v as\n  select nope from t;")
    with pytest.raises((PipelineFailedError, PipelineAPIError), match="nope"):
        pipeline.start(timeout_s=60)
    with pytest.raises(RuntimeError, match="exists already"):
        PipelineBuilder(client, pipeline_name, "").create()


def test_functions_in_rust_are_a_program_error_that_repeats_them(client: PipelineClient, pipeline_name: str) -> None:
    builder = PipelineBuilder(client, pipeline_name, "create table t (i int);", udf_rust="pub fn twice(i: i32) -> i32 { 2 * i }")
    with pytest.raises(ProgramCompilationError, match="Rust are not supported") as caught:
        builder.create(timeout_s=60)
    assert "pub fn twice" in str(caught.value)
    pipeline = Pipeline.get(pipeline_name, client)
    assert pipeline.program_status() == ProgramStatus.RustError
    pipeline.modify(udf_rust="")
    pipeline.start(timeout_s=60)
    pipeline.stop(force=True, timeout_s=60)


def test_functions_in_python_from_the_builder_to_the_approval_of_a_change(client: PipelineClient, pipeline_name: str) -> None:
    program = """create table t (i int) with ('materialized' = 'true');
    create function score(i int) returns int;
    create materialized view v as select i, score(i) as s from t;
    create materialized view w as select i from t;"""
    with pytest.raises(ProgramCompilationError, match=r"udf_python, line 2, column \d+: "):
        PipelineBuilder(client, pipeline_name, program, udf_python="def score(i):\n    return i *").create(timeout_s=60)
    pipeline = Pipeline.get(pipeline_name, client)
    module = "def score(i):\n    return 10 * i\n"
    pipeline.modify(udf_python=module)
    assert pipeline.udf_python() == module
    pipeline.start(timeout_s=60)
    pipeline.input_json("t", [{"i": 1}, {"i": 2}])
    assert list(pipeline.query("select s from v order by s")) == [{"s": 10}, {"s": 20}]
    assert list(pipeline.query("select score(7) as s")) == [{"s": 70}]
    planned = pipeline.plan(udf_python=module.replace("10", "100"))
    assert planned.plan is not None
    assert planned.plan.evaluated.keys() == {"v"}
    with pytest.raises(PipelineAPIError, match="nowhere") as refused:
        pipeline.diff("create view x as select * from nowhere")
    assert refused.value.error_code == "InvalidNewProgramSql"
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(udf_python=module.replace("10", "100"))
    pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=60)
    details = pipeline.deployment_runtime_status_details()
    assert details is not None
    assert details == planned.diff
    assert details["program_diff"]["modified_views"] == ["v"]
    pipeline.approve(expected_programs=planned.programs)
    eventually(lambda: pipeline.status() is PipelineStatus.RUNNING)
    assert list(pipeline.query("select s from v order by s")) == [{"s": 100}, {"s": 200}]
    pipeline.stop(force=True, timeout_s=60)


def test_going_back_to_an_older_checkpoint_takes_consent(
    embedded_client: PipelineClient, pipeline_name: str, warm_home: Path
) -> None:
    program = "create table t (x int) with ('materialized' = 'true')"
    pipeline = PipelineBuilder(
        embedded_client, pipeline_name, program, runtime_config=RuntimeConfig(fault_tolerance_model=FaultToleranceModel.ExactlyOnce)
    ).create(timeout_s=60)
    pipeline.start(timeout_s=60)
    for x in range(1, 3):
        pipeline.execute(f"insert into t values ({x})")
        pipeline.checkpoint(wait=True, timeout_s=60)
    pipeline.execute("insert into t values (3)")
    pipeline.stop(force=True, timeout_s=60)
    storage = warm_home / "storage" / str(pipeline.id())
    newer, older = sorted((storage / "checkpoints").iterdir(), reverse=True)
    content = newer.read_bytes()
    newer.write_bytes(content.replace(b'"step":2', b'"step":3'))

    consent = f"lose the 2 steps after it, with 2 records, start with from_checkpoint={older.stem}"
    with pytest.raises(PipelineFailedError, match=consent):
        pipeline.start(timeout_s=60)
    error = pipeline.deployment_error()
    assert error["error_code"] == "RuntimeError.StorageDamaged"
    assert f"The storage of pipeline {pipeline_name} cannot be used. The checkpoint manifest {newer} is" in error["message"]
    assert error["details"]["path"] == str(newer)
    assert [entry["uuid"] for entry in error["details"]["checkpoints"]] == [older.stem]

    pipeline.start(from_checkpoint=older.stem, timeout_s=60)
    assert list(pipeline.query("select x from t")) == [{"x": 1}]
    assert [entry["uuid"] for entry in (pipeline.storage_status_details() or {})["checkpoints"]] == [older.stem]
    pipeline.execute("insert into t values (4)")
    pipeline.stop(force=True, timeout_s=60)
    pipeline.start(timeout_s=60)
    assert list(pipeline.query("select x from t order by x")) == [{"x": 1}, {"x": 4}]
    assert [path.name for path in (storage / "set-aside").glob("*/*.json")] == [newer.name]

    # A folder that lost everything is not an empty pipeline.
    pipeline.stop(force=False, timeout_s=60)
    storage.rename(storage.with_suffix(".gone"))
    with pytest.raises(PipelineFailedError, match="is missing, which the pipeline had written"):
        pipeline.start(timeout_s=60)
    assert pipeline.deployment_error()["error_code"] == "RuntimeError.StorageMissing"
