"""Transactions: nothing of them is seen before the commit, all of it after, and after a kill all or nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.host.driver import Pipeline

Make = Callable[..., Pipeline]

EXACTLY_ONCE = {"model": "exactly_once", "checkpoint_interval_secs": None}


def program(sink: Path) -> str:
    out = [{"name": "out", "transport": {"name": "file_output", "config": {"path": str(sink)}}, "format": {"name": "csv"}}]
    return f"""
CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT);
CREATE TABLE log (x INT);
CREATE MATERIALIZED VIEW totals WITH ('connectors' = '{json.dumps(out)}') AS SELECT SUM(v) AS total, COUNT(*) AS n FROM t;
CREATE MATERIALIZED VIEW inverse AS SELECT id, 100 DIV v AS w FROM t;
CREATE MATERIALIZED VIEW logged AS SELECT x, COUNT(*) AS n FROM log GROUP BY x;
"""


def push(pipeline: Pipeline, table: str, *changes: dict[str, Any]) -> str:
    """Push changes without waiting for them; returns the token."""
    answer = pipeline.post(f"ingress/{table}", "\n".join(json.dumps(change) for change in changes), format="json")
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["token"]
    return token


def started(pipeline: Pipeline) -> int:
    answer = pipeline.post("start_transaction")
    assert answer.status_code == 200, answer.text
    number: int = answer.json()["transaction_id"]
    return number


def metrics(pipeline: Pipeline) -> dict[str, Any]:
    found: dict[str, Any] = pipeline.stats()["global_metrics"]
    return found


def await_metrics(pipeline: Pipeline, **wanted: Any) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while True:
        found = metrics(pipeline)
        if all(found[name] == value for name, value in wanted.items()):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def committed(pipeline: Pipeline) -> None:
    answer = pipeline.post("commit_transaction")
    assert (answer.status_code, answer.json()) == (200, "Transaction commit initiated")
    await_metrics(pipeline, transaction_status="NoTransaction", transaction_id=0)


@pytest.mark.core
def test_a_transaction_is_one_step_of_which_nothing_is_seen_before(make: Make, tmp_path: Path) -> None:
    sink = tmp_path / "out.csv"
    pipeline = make(program(sink))
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 5})
    shown = sink.read_text()
    steps = metrics(pipeline)["total_completed_steps"]
    assert pipeline.post("commit_transaction").json()["error_code"] == "NoTransactionInProgress"
    assert metrics(pipeline)["transaction_initiators"]["initiated_by_api"] is None

    assert started(pipeline) == 1
    again = pipeline.post("start_transaction")
    assert (again.status_code, again.json()["error_code"]) == (409, "TransactionInProgress")
    # A step over these rows would divide by zero.
    token = push(pipeline, "t", {"insert": {"id": 2, "v": 0}}, {"insert": {"id": 1, "v": 6}})
    push(pipeline, "log", {"insert": {"x": 1}}, {"insert": {"x": 2}}, {"insert": {"x": 1}})
    assert pipeline.get("query", sql="INSERT INTO t VALUES (3, 7)").status_code == 200
    push(pipeline, "t", {"insert": {"id": 2, "v": 10}}, {"delete": {"id": 1}})
    push(pipeline, "log", {"delete": {"x": 2}})
    found = await_metrics(pipeline, total_processed_records=10)
    assert found["transaction_status"] == "TransactionInProgress"
    assert (found["transaction_id"], found["transaction_records"]) == (1, 9)
    assert found["transaction_initiators"] == {"transaction_id": 1, "initiated_by_api": "Started", "initiated_by_connectors": {}}
    assert found["buffered_input_records"] == 0
    assert found["total_completed_records"] == 1
    assert not found["pipeline_complete"]
    assert found["total_completed_steps"] == steps
    assert pipeline.query("SELECT * FROM t") == [{"id": 1, "v": 5}]
    assert sink.read_text() == shown
    assert pipeline.get("completion_status", token=token).json()["status"] == "inprogress"
    number = pipeline.post("checkpoint").json()["checkpoint_sequence_number"]
    stats = pipeline.stats()
    assert stats["suspend_error"] == {"Temporary": ["TransactionInProgress"]}
    assert stats["checkpoint_activity"]["status"] == "delayed"
    assert stats["checkpoint_activity"]["reasons"] == ["TransactionInProgress"]
    assert pipeline.get("checkpoint_status").json()["success"] is None

    committed(pipeline)
    assert metrics(pipeline)["total_completed_steps"] == steps + 1
    assert metrics(pipeline)["total_completed_records"] == 10
    assert pipeline.query("SELECT * FROM t ORDER BY id") == [{"id": 2, "v": 10}, {"id": 3, "v": 7}]
    assert pipeline.query("SELECT * FROM inverse ORDER BY id") == [{"id": 2, "w": 10}, {"id": 3, "w": 14}]
    assert pipeline.query("SELECT * FROM logged") == [{"x": 1, "n": 2}]
    assert sorted(sink.read_text()[len(shown) :].splitlines()) == ["17,2,1", "5,1,-1"]
    pipeline.await_token(token)
    deadline = time.monotonic() + 60
    while pipeline.get("checkpoint_status").json()["success"] != number:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert pipeline.stats()["suspend_error"] is None
    # One without any rows is no step, and has a number.
    assert started(pipeline) == 2
    committed(pipeline)
    assert metrics(pipeline)["total_completed_steps"] == steps + 1
    assert started(pipeline) == 3


def test_after_a_kill_there_is_all_of_a_transaction_or_nothing(make: Make, tmp_path: Path) -> None:
    sink = tmp_path / "out.csv"
    pipeline = make(program(sink), fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 5})
    started(pipeline)
    push(pipeline, "t", {"insert": {"id": 2, "v": 10}})
    await_metrics(pipeline, transaction_records=1)
    pipeline.kill()
    pipeline.start()
    assert metrics(pipeline)["transaction_status"] == "NoTransaction"
    assert pipeline.query("SELECT * FROM totals") == [{"total": 5, "n": 1}]
    assert started(pipeline) == 1, "nothing has happened of the one before"
    push(pipeline, "t", {"insert": {"id": 2, "v": 10}})
    push(pipeline, "t", {"insert": {"id": 3, "v": 20}})
    committed(pipeline)
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT * FROM totals") == [{"total": 35, "n": 3}]
    lines = [",0,-1", ",0,1", "35,3,1", "5,1,-1", "5,1,1"]
    assert sorted(sink.read_text().splitlines()) == lines
    assert started(pipeline) == 2

    # A commit that fails ends the pipeline as a failing step does, and leaves nothing.
    push(pipeline, "log", {"insert": {"x": 1}})
    push(pipeline, "t", {"insert": {"id": 4, "v": 0}})
    assert pipeline.post("commit_transaction").status_code == 200
    failed = pipeline.wait_for("Stopped")
    assert failed.error is not None
    assert failed.error["error_code"] == "RuntimeError.WorkerPanic"
    assert "inverse" in failed.error["message"]
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT * FROM totals") == [{"total": 35, "n": 3}]
    assert pipeline.query("SELECT * FROM logged") == []
    assert sorted(sink.read_text().splitlines()) == lines
    assert started(pipeline) == 2


def test_a_graceful_stop_waits_for_the_commit(make: Make, tmp_path: Path) -> None:
    pipeline = make(program(tmp_path / "out.csv"))
    pipeline.start()
    started(pipeline)
    push(pipeline, "t", {"insert": {"id": 1, "v": 5}})
    assert pipeline.post("suspend").status_code == 202
    push(pipeline, "t", {"insert": {"id": 2, "v": 10}})
    await_metrics(pipeline, transaction_records=2)
    assert pipeline.statuses()[-1] == "Running"
    assert pipeline.post("commit_transaction").status_code == 200
    pipeline.wait_for("Suspended")
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT * FROM totals") == [{"total": 15, "n": 2}]


def test_a_listener_that_comes_in_the_middle_gets_what_comes_afterwards(make: Make, tmp_path: Path) -> None:
    pipeline = make(program(tmp_path / "out.csv"))
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 5})
    with pipeline.listen("totals") as early:
        next(early)
        started(pipeline)
        push(pipeline, "t", {"insert": {"id": 2, "v": 10}})
        with pipeline.listen("totals") as late, pipeline.listen("totals", send_snapshot=True) as whole:
            committed(pipeline)
            pipeline.insert("t", {"id": 3, "v": 20})

            def rows(stream: Any, chunks: int) -> list[Any]:
                found: list[Any] = []
                while len(found) < chunks:
                    chunk = next(stream)
                    found += [chunk["json_data"]] if chunk.get("json_data") else []
                return found

            first = [{"delete": {"total": 5, "n": 1}}, {"insert": {"total": 15, "n": 2}}]
            second = [{"delete": {"total": 15, "n": 2}}, {"insert": {"total": 35, "n": 3}}]
            assert rows(early, 2) == [first, second]
            assert rows(late, 1) == [second]
            assert rows(whole, 2) == [[{"insert": {"total": 15, "n": 2}}], second]
    started(pipeline)
    with pipeline.listen("totals") as waiting:
        pipeline.kill()
        assert not [chunk for chunk in waiting if chunk.get("json_data")], "the stream ends with the pipeline"


def test_a_connector_with_transactions_of_its_own_shows_whole_ones_only(make: Make, tmp_path: Path) -> None:
    sink = tmp_path / "out.csv"
    source = {"transport": {"name": "datagen", "config": {"plan": [{"limit": 7}], "transaction_size": 3, "workers": 1}}}
    out = [{"name": "out", "transport": {"name": "file_output", "config": {"path": str(sink)}}, "format": {"name": "csv"}}]
    pipeline = make(f"""
CREATE TABLE made (id BIGINT) WITH ('connectors' = '{json.dumps([source])}');
CREATE VIEW counts WITH ('connectors' = '{json.dumps(out)}') AS SELECT COUNT(*) AS n FROM made;
""")
    pipeline.start("Paused", initial="paused")
    assert started(pipeline) == 1
    pipeline.post("resume")
    # As long as a request holds the transaction open, all that the connector makes goes into it.
    await_metrics(pipeline, total_processed_records=7)
    assert sink.read_text().splitlines() == ["0,1"]
    committed(pipeline)
    assert sink.read_text().splitlines()[1:] == ["0,-1", "7,1"]
    pipeline.kill()

    pipeline.program = pipeline.program.replace("made", "others")
    pipeline.start(bootstrap_policy="allow")
    pipeline.await_complete()
    lines = sink.read_text().splitlines()
    assert [line for line in lines if line.endswith(",1")][-3:] == ["3,1", "6,1", "7,1"]
    assert started(pipeline) == 5, "three of the connector came after the first one"
