"""Outputs that have failed: nobody who waits for a delivery is told that there was one."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.connectors.transports.files import line_output
from tests.connectors.targets import PLAIN_OUTPUT, TARGETS, Target, registered
from tests.fixtures.postgresql import Database
from tests.host.driver import Make, Pipeline
from tests.host.test_postgres import wait_until

pytestmark = pytest.mark.core

_BUFFER = {"enable_output_buffer": True, "max_output_buffer_size_records": 2}


@pytest.fixture
def target() -> Iterator[Target]:
    """The target of outputs that deliver from a queue."""
    TARGETS["one"] = made = Target()
    with registered(PLAIN_OUTPUT):
        yield made


def _program(*outputs: dict[str, Any]) -> str:
    return f"""
CREATE TABLE t (x INT);
CREATE TABLE other (x INT);
CREATE VIEW doubled AS SELECT x, 2 * x AS y FROM t;
CREATE MATERIALIZED VIEW v WITH ('connectors' = '{json.dumps(outputs)}') AS SELECT x FROM doubled WHERE y > 0;
CREATE MATERIALIZED VIEW others AS SELECT x FROM other;
"""


def _file(path: Path, **options: Any) -> dict[str, Any]:
    transport = {"name": "file_output", "config": {"path": str(path)}}
    return {"name": "file", "transport": transport, "format": {"name": "csv"}, **options}


def _inserts(*values: int) -> list[dict[str, Any]]:
    return [{"insert": {"x": value}} for value in values]


def _is_complete(pipeline: Pipeline) -> bool:
    return bool(pipeline.stats()["global_metrics"]["pipeline_complete"])


@pytest.mark.core("step by step")
@pytest.mark.parametrize("buffered", [{}, _BUFFER], ids=["step by step", "buffered"])
def test_a_token_fails_with_an_output_that_delivers_from_a_queue(make: Make, target: Target, buffered: dict[str, Any]) -> None:
    queued = {"name": "queued", "transport": {"name": "plain_test_output", "config": {"target": "one"}}, **buffered}
    pipeline = make(_program(queued))
    pipeline.start()
    delivered = pipeline.ingest("t", *_inserts(1, 2))
    assert _is_complete(pipeline)
    target.refuses = True
    failed = pipeline.push("t", *_inserts(3, 4))
    error = pipeline.await_failed(failed)
    assert "output v.queued has failed: " in error["message"]
    assert "the table was dropped" in error["details"]["outputs"]["v.queued"]
    assert "comes first after a restart" in error["message"]
    assert not _is_complete(pipeline)
    pipeline.await_token(delivered)
    # What leads to nothing in the output's view is not held up by it; what comes later is as lost as what came first.
    pipeline.ingest("other", *_inserts(1))
    pipeline.await_failed(pipeline.push("t", *_inserts(5, 6)))
    pipeline.suspend()
    target.refuses = False
    pipeline.start()
    pipeline.ingest("t", *_inserts(7, 8))
    assert target.values == [1, 2, 3, 4, 5, 6, 7, 8]
    assert _is_complete(pipeline)


def test_a_restart_without_storage_loses_what_a_failed_output_has_not_delivered(make: Make, target: Target) -> None:
    queued = {"name": "queued", "transport": {"name": "plain_test_output", "config": {"target": "one"}}}
    pipeline = make(_program(queued), storage=False)
    pipeline.start()
    target.refuses = True
    error = pipeline.await_failed(pipeline.push("t", *_inserts(1, 2)))
    assert "A restart loses all rows" in error["message"]


@pytest.mark.core("step by step")
@pytest.mark.parametrize("buffered", [{}, _BUFFER], ids=["step by step", "buffered"])
def test_a_token_fails_with_an_output_that_each_step_is_written_to(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buffered: dict[str, Any]
) -> None:
    pipeline = make(_program(_file(tmp_path / "v.csv", **buffered)))
    pipeline.start()
    delivered = pipeline.ingest("t", *_inserts(1, 2))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(line_output, "_append", full)
    # Of a buffer, two steps are written together.
    first = pipeline.push("t", *_inserts(3))
    second = pipeline.push("t", *_inserts(4))
    for token in (first, second):
        error = pipeline.await_failed(token)
        assert "output v.file has failed" in error["message"]
        assert "No space left on device" in error["message"]
        assert "the target misses changes from step 2 on" in error["message"]
    assert not _is_complete(pipeline)
    pipeline.await_token(delivered)
    pipeline.ingest("other", *_inserts(1))


@pytest.mark.rest
def test_an_output_that_cannot_be_opened_fails_what_it_has_to_deliver_and_nothing_before(make: Make, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    pipeline = make(_program(_file(tmp_path / "taken"), _file(tmp_path / "good.csv") | {"name": "good"}))
    pipeline.start()
    assert pipeline.stats()["outputs"][0]["fatal_error"] is not None
    pipeline.ingest("t", *_inserts(-1))
    assert _is_complete(pipeline), "there was nothing to deliver"
    assert list(pipeline.await_failed(pipeline.push("t", *_inserts(1)))["details"]["outputs"]) == ["v.file"]
    assert (tmp_path / "good.csv").read_text() == "1,1\n"


def test_a_text_that_is_not_utf8_costs_no_other_row(make: Make, tmp_path: Path) -> None:
    connectors = json.dumps([_file(tmp_path / "out.csv")])
    pipeline = make(f"""
CREATE TABLE t (b VARBINARY);
CREATE VIEW v WITH ('connectors' = '{connectors}') AS SELECT CAST(b AS VARCHAR) AS s FROM t;
""")
    pipeline.start()
    with pipeline.listen("v", format="json") as chunks:
        pipeline.ingest("t", {"insert": {"b": [255]}}, {"insert": {"b": [97]}})
        assert next(chunk["json_data"] for chunk in chunks if chunk["json_data"]) == [{"insert": {"s": "a"}}]
        outputs = pipeline.stats(include_connector_errors=True)["outputs"]
    assert [output["metrics"]["num_encode_errors"] for output in outputs] == [1, 1]
    assert [len(output["encode_errors"]) for output in outputs] == [1, 1]
    assert (tmp_path / "out.csv").read_text() == "a,1\n"


@pytest.mark.rest
def test_rows_that_a_table_of_postgresql_has_no_room_for_are_left_out(make: Make, database: Database) -> None:
    database.execute("CREATE TABLE kept (name varchar(5) PRIMARY KEY, n int)")
    output = {
        "name": "db",
        "index": "by_name",
        "transport": {"name": "postgres_output", "config": {"uri": database.url, "table": "kept"}},
    }
    pipeline = make(f"""
CREATE TABLE t (name VARCHAR, n INT);
CREATE VIEW v WITH ('connectors' = '{json.dumps([output])}') AS SELECT name, n FROM t;
CREATE INDEX by_name ON v(name);
""")
    pipeline.start()
    pipeline.insert("t", {"name": "ok", "n": 1})
    pipeline.insert("t", {"name": "much too long", "n": 2}, {"name": "fine", "n": 2}, {"name": "a\0b", "n": 2})
    # A later step with the same key is as any other.
    pipeline.insert("t", {"name": "much too long", "n": 3}, {"name": "last", "n": 3})
    assert database.rows("SELECT name, n FROM kept ORDER BY n, name") == [("ok", 1), ("fine", 2), ("last", 3)]
    assert _is_complete(pipeline)
    (output_stats,) = pipeline.stats(include_connector_errors=True)["outputs"]
    assert (output_stats["fatal_error"], output_stats["health"]["status"]) == (None, "Healthy")
    assert (output_stats["metrics"]["num_encode_errors"], output_stats["metrics"]["transmitted_records"]) == (3, 3)
    errors = output_stats["encode_errors"]
    assert [error["index"] for error in errors] == [0, 1, 2]
    assert errors[-1]["message"].startswith("row (name = \"much too long\"): column 'name': value too long for type character")
    assert pipeline.stats()["global_metrics"]["total_completed_records"] == 6


def test_a_token_fails_with_rows_that_a_table_of_postgresql_has_no_room_for(make: Make, database: Database) -> None:
    database.execute("CREATE TABLE kept (name varchar(5) PRIMARY KEY)")
    output = {
        "name": "db",
        "index": "by_name",
        "on_error": "stop",
        "transport": {"name": "postgres_output", "config": {"uri": database.url, "table": "kept"}},
    }
    pipeline = make(f"""
CREATE TABLE t (name VARCHAR);
CREATE VIEW v WITH ('connectors' = '{json.dumps([output])}') AS SELECT name FROM t;
CREATE INDEX by_name ON v(name);
""")
    pipeline.start()
    pipeline.insert("t", {"name": "ok"})
    token = pipeline.push("t", {"insert": {"name": "much too long"}}, {"insert": {"name": "fine"}})
    wait_until(lambda: pipeline.get("completion_status", token=token).status_code != 202, pipeline, "the token ends")
    assert "output v.db has failed" in pipeline.await_failed(token)["message"]
    assert database.rows("SELECT name FROM kept") == [("ok",)]
    assert not _is_complete(pipeline)
