"""Outputs whose target is slow or gone, in a running pipeline: it goes on, says so, and in the end the target has everything."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.program.sources import SourceFile
from tests.connectors.targets import COMMITTING_OUTPUT, MIRRORING_OUTPUT, PLAIN_OUTPUT, TARGETS, Target, registered
from tests.connectors.waits import set_waits
from tests.host.driver import Make, Pipeline


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    """The target of the pipeline's output."""
    set_waits(monkeypatch, first_s=0.01, longest_s=0.05)
    TARGETS["one"] = made = Target()
    with registered(PLAIN_OUTPUT, COMMITTING_OUTPUT, MIRRORING_OUTPUT):
        yield made
    made.is_there = True
    made.blocked.set()


def program(*, transport: str = "plain_test_output", sink: Path | None = None, **options: Any) -> str:
    declared: list[dict[str, Any]] = [{"name": "out", "transport": {"name": transport, "config": {"target": "one"}}, **options}]
    if sink is not None:
        file_output = {"name": "file_output", "config": {"path": str(sink)}}
        declared.append({"name": "file", "transport": file_output, "format": {"name": "csv"}})
    return (
        "CREATE TABLE t (x INT) WITH ('materialized' = 'true');"
        f"CREATE MATERIALIZED VIEW v WITH ('connectors' = '{json.dumps(declared)}') AS SELECT x FROM t;"
    )


def push(pipeline: Pipeline, *values: int) -> str:
    """Push rows, and do not wait for their delivery."""
    body = "\n".join(json.dumps({"insert": {"x": value}}) for value in values)
    answer = pipeline.post("ingress/t", body, format="json")
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["token"]
    return token


def until(condition: Callable[[], bool], what: str, limit_s: float = 30) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"it took too long: {what}"
        time.sleep(0.02)


def output(pipeline: Pipeline) -> dict[str, Any]:
    wire: dict[str, Any] = pipeline.get("views/v/connectors/out/stats").json()
    return wire


def processed(pipeline: Pipeline, records: int) -> None:
    until(lambda: pipeline.stats()["global_metrics"]["total_processed_records"] == records, f"{records} processed records")


def is_open(pipeline: Pipeline, token: str) -> bool:
    return bool(pipeline.get("completion_status", token=token).json()["status"] == "inprogress")


@pytest.mark.core
def test_a_pipeline_goes_on_without_its_target(make: Make, tmp_path: Path, target: Target) -> None:
    target.is_there = False
    pipeline = make(program(sink=tmp_path / "out.csv"))
    pipeline.start()
    token = push(pipeline, 1, 2)
    processed(pipeline, 2)
    until(lambda: output(pipeline)["metrics"]["num_transport_errors"] > 0, "an error")
    until(lambda: output(pipeline)["metrics"]["queued_records"] == 2, "rows that wait")
    wire = output(pipeline)
    assert wire["fatal_error"] is None
    assert wire["health"] == {"status": "Unhealthy", "description": "the target is not there"}
    assert (wire["metrics"]["queued_records"], wire["metrics"]["queued_batches"]) == (2, 1)
    assert wire["metrics"]["memory"] > 0
    assert (tmp_path / "out.csv").read_text() == "1,1\n2,1\n", "other outputs go on"
    assert is_open(pipeline, token), "a token is complete when the rows are delivered"
    stats = pipeline.stats()["global_metrics"]
    assert (stats["total_completed_records"], stats["pipeline_complete"]) == (0, False)
    pipeline.checkpoint()
    second = push(pipeline, 3)
    processed(pipeline, 3)
    target.is_there = True
    pipeline.await_token(token)
    pipeline.await_token(second)
    assert target.values == [1, 2, 3]
    wire = output(pipeline)
    assert wire["health"] == {"status": "Healthy", "description": None}
    assert (wire["metrics"]["transmitted_records"], wire["metrics"]["queued_records"]) == (3, 0)
    assert pipeline.stats()["global_metrics"]["total_completed_records"] == 3
    assert "output v.out: works again" in pipeline.log


def test_a_graceful_stop_keeps_what_was_not_delivered(make: Make, target: Target) -> None:
    pipeline = make(program())
    pipeline.start()
    pipeline.await_token(push(pipeline, 1))
    target.is_there = False
    push(pipeline, 2, 3)
    processed(pipeline, 3)
    until(lambda: output(pipeline)["health"]["status"] == "Unhealthy", "an error")
    pipeline.suspend()
    kept = r"output v\.out: 2 changes of 1 steps are not delivered \(the target is (gone|not there)\); the checkpoint keeps them"
    assert re.search(kept, pipeline.log)
    assert target.values == [1]
    # A second run that cannot deliver them either passes them on.
    pipeline.start()
    assert output(pipeline)["metrics"]["queued_records"] == 2
    assert pipeline.stats()["global_metrics"]["total_completed_records"] == 1
    token = push(pipeline, 4)
    processed(pipeline, 4)
    assert is_open(pipeline, token)
    pipeline.suspend()
    target.is_there = True
    pipeline.start()
    until(lambda: target.values == [1, 2, 3, 4], "all rows")
    until(lambda: pipeline.stats()["global_metrics"]["total_completed_records"] == 4, "completion")
    assert target.opened[-1] is True


@pytest.mark.core
def test_a_graceful_stop_waits_for_a_target_that_works(make: Make, target: Target) -> None:
    pipeline = make(program())
    pipeline.start()
    target.blocked.clear()
    push(pipeline, 1)
    processed(pipeline, 1)
    assert pipeline.post("suspend").status_code == 202
    time.sleep(0.3)
    assert pipeline.statuses()[-1] == "Running"
    target.blocked.set()
    pipeline.wait_for("Suspended")
    assert target.values == [1]
    assert "not delivered" not in pipeline.log


BUFFERED = {"enable_output_buffer": True, "max_output_buffer_time_millis": 3_600_000}


@pytest.mark.core
def test_a_graceful_stop_delivers_what_a_buffer_keeps(make: Make, target: Target) -> None:
    pipeline = make(program(**BUFFERED))
    pipeline.start()
    push(pipeline, 1)
    push(pipeline, 2)
    processed(pipeline, 2)
    assert target.values == []
    pipeline.suspend()
    assert sorted(target.values) == [1, 2]
    pipeline.start()
    assert pipeline.stats()["global_metrics"]["total_completed_records"] == 2


@pytest.mark.core
def test_a_graceful_stop_keeps_what_a_buffer_keeps_while_the_target_is_away(make: Make, target: Target) -> None:
    pipeline = make(program(**BUFFERED))
    pipeline.start()
    target.is_there = False
    push(pipeline, 1)
    processed(pipeline, 1)
    pipeline.suspend()
    target.is_there = True
    pipeline.start()
    until(lambda: target.values == [1], "the row that was kept")


@pytest.mark.parametrize("checkpoint", [False, True])
def test_exactly_once_after_kills(make: Make, target: Target, *, checkpoint: bool) -> None:
    pipeline = make(program(transport="committing_test_output"), fault_tolerance={"model": "exactly_once"})
    pipeline.start()
    pipeline.await_token(push(pipeline, 1))
    if checkpoint:
        pipeline.checkpoint()
    pipeline.await_token(push(pipeline, 2))
    target.is_there = False
    push(pipeline, 3)
    processed(pipeline, 3)
    if checkpoint:
        pipeline.checkpoint()
    push(pipeline, 4)
    processed(pipeline, 4)
    pipeline.kill()
    target.is_there = True
    pipeline.start()
    until(lambda: target.values == [1, 2, 3, 4], "all rows")
    pipeline.kill()
    pipeline.start()
    pipeline.await_token(push(pipeline, 5))
    assert target.values == [1, 2, 3, 4, 5]
    numbers = [number for number, _ in target.rows]
    assert numbers == sorted(set(numbers))
    pipeline.suspend()
    pipeline.start()
    pipeline.await_token(push(pipeline, 6))
    assert target.values == [1, 2, 3, 4, 5, 6]


@pytest.mark.core("none")
@pytest.mark.parametrize("model", ["none", "at_least_once"])
def test_a_target_that_is_to_equal_its_view_does_so_after_kills_whatever_the_model_is(
    make: Make, target: Target, model: str
) -> None:
    pipeline = make(program(transport="mirroring_test_output"), fault_tolerance={"model": model, "checkpoint_interval_secs": None})
    pipeline.start()
    pipeline.await_token(push(pipeline, 1))
    pipeline.checkpoint()
    [checkpoint] = next(each.checkpoints for each in reversed(pipeline.transitions()) if each.checkpoints)
    pipeline.await_token(push(pipeline, 2))
    target.is_there = False
    push(pipeline, 3)
    processed(pipeline, 3)
    pipeline.kill()
    target.is_there = True
    pipeline.start()
    pipeline.await_token(push(pipeline, 4))
    assert target.values == [1, 2, 3, 4]
    assert pipeline.query("SELECT x FROM v ORDER BY x") == [{"x": value} for value in target.values]
    assert output(pipeline)["health"] == {"status": "Healthy", "description": None}
    # Whoever goes back to an older checkpoint is told that the target has more.
    pipeline.kill()
    pipeline.start(from_checkpoint=checkpoint["uuid"])
    until(lambda: output(pipeline)["health"]["description"] is not None, "a note")
    assert "what only they wrote stays there" in output(pipeline)["health"]["description"]
    assert [row["x"] for row in pipeline.query("SELECT x FROM v")] == [1]


def test_a_target_from_an_older_backup_is_told_from_the_right_one(make: Make, target: Target) -> None:
    pipeline = make(program(transport="committing_test_output"))
    pipeline.start()
    pipeline.await_token(push(pipeline, 1))
    backup = list(target.rows)
    pipeline.await_token(push(pipeline, 2))
    pipeline.suspend()
    target.rows = backup
    pipeline.start()
    until(lambda: output(pipeline)["fatal_error"] is not None, "an error")
    assert "brought back from an older backup" in output(pipeline)["fatal_error"]
    pipeline.await_failed(push(pipeline, 3))
    assert target.values == [1]


@pytest.mark.core
def test_a_full_queue_holds_up_inputs_and_nothing_else(make: Make, target: Target) -> None:
    target.is_there = False
    pipeline = make(program(max_queued_records=2))
    pipeline.start()
    push(pipeline, 1, 2)
    processed(pipeline, 2)
    token = push(pipeline, 3)
    until(lambda: "takes no input until" in (output(pipeline)["health"]["description"] or ""), "the note")
    assert "the target is not there" in output(pipeline)["health"]["description"]
    time.sleep(0.2)
    stats = pipeline.stats()["global_metrics"]
    assert (stats["total_processed_records"], stats["total_input_records"]) == (2, 3)
    assert stats["output_stall_msecs"] > 0
    assert pipeline.query("SELECT COUNT(*) AS n FROM v") == [{"n": 2}]
    pipeline.checkpoint()
    target.is_there = True
    pipeline.await_token(token)
    assert target.values == [1, 2, 3]
    assert pipeline.stats()["global_metrics"]["output_stall_msecs"] == 0


def test_a_forced_stop_does_not_wait_for_the_target(make: Make, target: Target) -> None:
    pipeline = make(program())
    pipeline.start()
    target.is_there = False
    push(pipeline, 1)
    processed(pipeline, 1)
    begun = time.monotonic()
    pipeline.kill()
    assert time.monotonic() - begun < 5
    target.is_there = True
    pipeline.start()
    until(lambda: target.values == [1], "the journal's step")


def test_an_output_begins_with_the_contents_of_its_view_while_its_target_is_away(make: Make, target: Target) -> None:
    pipeline = make("CREATE TABLE t (x INT) WITH ('materialized' = 'true'); CREATE MATERIALIZED VIEW v AS SELECT x FROM t;")
    pipeline.start()
    pipeline.await_token(push(pipeline, 1, 2))
    pipeline.suspend()
    target.is_there = False
    pipeline.program = program(send_snapshot=True)
    pipeline.start(bootstrap_policy="allow")
    push(pipeline, 3)
    processed(pipeline, 3)
    pipeline.suspend()
    target.is_there = True
    pipeline.start()
    until(lambda: sorted(target.values) == [1, 2, 3], "all rows")
    assert target.values[-1] == 3
    assert all(weight == 1 for weights in target.weights for weight in weights)


@pytest.mark.core("plain_test_output")
@pytest.mark.parametrize("transport", ["plain_test_output", "committing_test_output"])
def test_a_target_is_opened_as_new_once(make: Make, target: Target, transport: str) -> None:
    target.is_there = False
    pipeline = make(program(transport=transport))
    pipeline.start()
    push(pipeline, 1)
    processed(pipeline, 1)
    pipeline.suspend()
    target.is_there = True
    # It was never reached, so that it begins now, although the pipeline goes on.
    pipeline.start()
    until(lambda: target.values == [1], "the row")
    assert target.opened == [False]
    pipeline.kill()
    pipeline.start()
    pipeline.await_token(push(pipeline, 2))
    assert target.opened == [False, True]
    # Without a checkpoint the storage says it, and after the storage was cleared it begins anew.
    other = make(program(transport=transport))
    other.start()
    other.await_token(push(other, 3))
    other.kill()
    other.start()
    other.await_token(push(other, 4))
    assert target.opened == [False, True, False, True]
    other.kill()
    shutil.rmtree(other.folder / "storage")
    other.start()
    until(lambda: len(target.opened) == 5, "another opening")
    assert target.opened[-1] is False


def test_changes_for_a_connector_that_has_changed_are_given_up(make: Make, target: Target) -> None:
    pipeline = make(program())
    pipeline.start()
    target.is_there = False
    push(pipeline, 1)
    processed(pipeline, 1)
    pipeline.suspend()
    TARGETS["two"] = other = Target()
    pipeline.program = program().replace('"one"', '"two"')
    pipeline.start(bootstrap_policy="allow")
    pipeline.await_token(push(pipeline, 2))
    assert other.values == [2]
    assert "output v.out: has changed; 1 changes that were not delivered to its former target are given up" in pipeline.log


@pytest.mark.core
def test_an_output_that_fails_goes_on_with_the_next_start(make: Make, target: Target) -> None:
    pipeline = make(program(max_queued_records=3))
    pipeline.start()
    target.refuses = True
    pipeline.await_failed(push(pipeline, 1))
    assert "the table was dropped" in output(pipeline)["fatal_error"]
    pipeline.await_failed(push(pipeline, 2))
    pipeline.suspend()
    target.refuses = False
    pipeline.start()
    until(lambda: target.values == [1, 2], "what could not be delivered")
    # More than may wait is given up, and said: the rest of the pipeline is not held up.
    target.refuses = True
    for value in (3, 4, 5, 6):
        pipeline.await_failed(push(pipeline, value))
    assert "3 changes since step 3, all that may wait, are given up" in pipeline.log
    pipeline.suspend()
    target.refuses = False
    pipeline.start()
    pipeline.await_token(push(pipeline, 7))
    assert target.values == [1, 2, 7]
    wire = output(pipeline)
    assert wire["fatal_error"] is None
    assert "the target misses changes from step 3 on" in wire["health"]["description"]


_STREAM = """
from airflow_pipelines.datastream import Row, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_relation("t").uid("numbers")
counts = numbers.map(lambda row: row.x).key_by(lambda x: x % 2).reduce(lambda a, b: a + b).uid("sums")
counts.map(lambda total: Row(total=total)).to_relation("sums", {"total": "BIGINT"})
env.execute("sums")
"""


def test_what_a_stream_program_makes_is_delivered_once(make: Make, target: Target) -> None:
    declared = json.dumps([{"name": "out", "transport": {"name": "committing_test_output", "config": {"target": "one"}}}])
    pipeline = make(
        "CREATE TABLE t (x INT) WITH ('materialized' = 'true', 'append_only' = 'true');"
        f"CREATE MATERIALIZED VIEW v WITH ('connectors' = '{declared}') AS SELECT total FROM sums;"
    )
    pipeline.stream_files = (SourceFile("program.py", _STREAM),)
    pipeline.start()
    pipeline.await_token(push(pipeline, 1))
    pipeline.await_token(push(pipeline, 3))
    assert target.values == [1, 4]
    pipeline.checkpoint()
    target.is_there = False
    push(pipeline, 5)
    processed(pipeline, 3)
    pipeline.kill()
    pipeline.start()
    until(lambda: output(pipeline)["health"]["status"] == "Unhealthy", "an error")
    push(pipeline, 7)
    processed(pipeline, 4)
    pipeline.suspend()
    assert "2 changes of 2 steps are not delivered" in pipeline.log
    target.is_there = True
    pipeline.start()
    pipeline.await_token(push(pipeline, 9))
    assert target.values == [1, 4, 9, 16, 25]
