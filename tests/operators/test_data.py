from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_pipelines.contract.push_keys import check_push_key
from airflow_pipelines.hooks.pipeline import PipelineHook, PushResult
from airflow_pipelines.operators import data
from airflow_pipelines.operators.data import (
    CompletionTokenOperator,
    IngestFileOperator,
    IngestOperator,
    QueryPipelineOperator,
)
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.triggers.query import PipelineQueryTrigger
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p"}
INTO: dict[str, Any] = COMMON | {"table": "t"}


@pytest.fixture
def ingested(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes, dict[str, Any]]]:
    """What was pushed: table, body and parameters of each request."""
    pushed: list[tuple[str, bytes, dict[str, Any]]] = []

    def ingest(_hook: PipelineHook, _name: str, table: str, body: bytes, params: dict[str, Any], _key: str | None) -> PushResult:
        pushed.append((table, body, params))
        return PushResult(f"token-{len(pushed)}")

    monkeypatch.setattr(PipelineHook, "ingest", ingest)
    return pushed


def test_rows_go_over_the_wire_and_a_token_comes_back(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["POST", "ingress/t"] = {"token": "abc"}
    result = IngestOperator(**INTO, rows=[{"a": 1}, {"a": 2}]).execute({})
    assert result == {"pipeline": "p", "table": "t", "rows": 2, "token": "abc", "already_there": False}
    _, _, params, body = scripted.calls[-1]
    assert params == {"format": "json", "array": "true", "update_format": "raw"}
    assert body == [{"a": 1}, {"a": 2}]


def run_of(**fields: Any) -> Any:
    """A task's context, as far as a push looks at it."""
    return {"ti": SimpleNamespace(**{"dag_id": "d", "run_id": "r", "task_id": "x", "map_index": -1, "try_number": 1} | fields)}


def test_the_same_rows_of_a_task_have_the_same_key_in_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[str | None] = []
    known: set[str | None] = set()

    def ingest(_hook: PipelineHook, _name: str, _table: str, _body: bytes, _params: dict[str, Any], key: str | None) -> PushResult:
        keys.append(key)
        before = key in known
        known.add(key)
        return PushResult("token", before)

    monkeypatch.setattr(PipelineHook, "ingest", ingest)
    monkeypatch.setattr(data, "ROWS_PER_REQUEST", 1)
    twice: dict[str, Any] = INTO | {"rows": [{"a": 1}, {"a": 1}]}
    assert IngestOperator(**twice).execute(run_of())["already_there"] is False
    assert len(set(keys)) == 2, "the same row twice is two rows"
    # Another try, or the cleared task.
    assert IngestOperator(**twice).execute(run_of(try_number=2))["already_there"] is True
    assert keys[2:] == keys[:2]
    others = [run_of(run_id="s"), run_of(dag_id="e"), run_of(task_id="y"), run_of(map_index=3)]
    for context in others:
        assert IngestOperator(**twice).execute(context)["already_there"] is False
    assert IngestOperator(**INTO, rows=[{"a": 1}, {"a": 2}]).execute(run_of())["already_there"] is False, "one of them is new"
    assert len(set(keys)) == 2 + 2 * len(others) + 1
    assert all(check_push_key(str(key)) for key in keys)
    keys.clear()
    IngestOperator(**twice, once=False).execute(run_of())
    IngestOperator(**twice).execute({})
    assert keys == [None] * 4


def test_the_key_of_a_push_is_a_header(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sent: list[Any] = []
    scripted.up()
    scripted.answers["POST", "ingress/t"] = {"token": "abc", "already_there": True}
    request = PipelineClient.request

    def seen(client: PipelineClient, method: str, path: str, **options: Any) -> Any:
        sent.append(options)
        return request(client, method, path, **options)

    monkeypatch.setattr(PipelineClient, "request", seen)
    (tmp_path / "rows.json").write_text('[{"a": 1}]')
    assert IngestFileOperator(**INTO, path=str(tmp_path / "rows.json")).execute(run_of())["already_there"] is True
    (options,) = sent
    assert list(options["headers"]) == ["idempotency-key"]
    assert options["idempotent"] is True, "a lost answer is asked for again"


def test_values_json_does_not_know_keep_their_meaning(ingested: Any) -> None:
    row = {"d": Decimal("1.10"), "day": date(2025, 1, 2), "at": datetime(2025, 1, 2, 3, 4, 5, 6), "b": b"\x01\xff", "n": None}
    IngestOperator(**INTO, rows=[row]).execute({})
    ((_, body, _),) = ingested
    sent = {"d": "1.10", "day": "2025-01-02", "at": "2025-01-02 03:04:05.000006", "b": [1, 255], "n": None}
    assert json.loads(body) == [sent]


def test_a_data_frame_is_rows_too(ingested: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [1.5, None], "at": pd.to_datetime(["2025-01-02", None])})
    assert IngestOperator(**INTO, rows=frame).execute({})["rows"] == 2
    ((_, body, _),) = ingested
    assert json.loads(body) == [{"a": 1, "b": 1.5, "at": "2025-01-02 00:00:00"}, {"a": 2, "b": None, "at": None}]


def test_rows_may_come_out_of_a_template(ingested: Any) -> None:
    assert IngestOperator(**INTO, rows='[{"a": 1}, {"a": 2}]').execute({})["rows"] == 2
    with pytest.raises(AirflowFailException, match="Expecting value"):
        IngestOperator(**INTO, rows="not JSON").execute({})


def test_many_rows_go_in_requests_of_a_bounded_size(ingested: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "ROWS_PER_REQUEST", 2)
    result = IngestOperator(**INTO, rows=[{"a": a} for a in range(5)]).execute({})
    assert [len(json.loads(body)) for _, body, _ in ingested] == [2, 2, 1]
    assert (result["rows"], result["token"]) == (5, "token-3")


def test_changes_can_delete(ingested: Any) -> None:
    IngestOperator(**INTO, rows=[{"delete": {"a": 1}}], update_format="insert_delete").execute({})
    ((_, body, params),) = ingested
    assert params["update_format"] == "insert_delete"
    assert json.loads(body) == [{"delete": {"a": 1}}]


def test_nothing_to_push_is_an_error_of_the_dag(ingested: Any) -> None:
    with pytest.raises(AirflowFailException, match="no rows to push into 't'"):
        IngestOperator(**INTO, rows=[]).execute({})
    assert ingested == []


def test_bad_rows_fail_the_task_with_the_services_list(scripted: ScriptedService) -> None:
    scripted.up()
    problem = {"error_code": "ParseErrors", "message": "Errors parsing input data (1 errors):\n1: 'x' is no BIGINT", "details": {}}
    scripted.answers["POST", "ingress/t"] = (400, problem)
    with pytest.raises(AirflowFailException, match="'x' is no BIGINT"):
        IngestOperator(**INTO, rows=[{"a": "x"}]).execute({})


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("rows.csv", {"format": "csv", "headers": True}),
        ("rows.json", {"format": "json", "update_format": "raw", "array": True}),
        ("rows.ndjson", {"format": "json", "update_format": "raw", "array": False}),
        ("rows.parquet", {"format": "parquet"}),
    ],
)
def test_a_file_goes_as_it_is(ingested: Any, tmp_path: Path, name: str, params: dict[str, Any]) -> None:
    path = tmp_path / name
    path.write_bytes(b"content")
    assert IngestFileOperator(**INTO, path=str(path)).execute({})["token"] == "token-1"
    assert ingested == [("t", b"content", params)]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match=r"path: there is no such file on this worker: .*gone\.csv"):
        IngestFileOperator(**INTO, path=str(tmp_path / "gone.csv")).execute({})
    with pytest.raises(AirflowFailException, match=r"known: \.csv, \.json, \.jsonl, \.ndjson, \.parquet"):
        IngestFileOperator(**INTO, path="rows.xlsx").execute({})


def test_a_connectors_token(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "tables/t/connectors/c/completion_token"] = {"token": "abc"}
    result = CompletionTokenOperator(**INTO, connector="c").execute({})
    assert result == {"pipeline": "p", "table": "t", "connector": "c", "token": "abc"}


def test_rows_of_a_query_are_small_json(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"d": Decimal("97.00"), "n": 1, "t": "x", "l": [Decimal("0.1")], "o": {"k": Decimal(1)}, "f": None, "b": True}]
    monkeypatch.setattr(PipelineHook, "query", lambda _hook, _name, _query, _limit: rows)
    result = QueryPipelineOperator(**COMMON, query="select 1").execute({})
    assert result["rows"] == [{"d": "97.00", "n": 1, "t": "x", "l": ["0.1"], "o": {"k": "1"}, "f": None, "b": True}]
    assert (result["row_count"], result["truncated"]) == (1, False)
    json.dumps(result)


def test_no_more_rows_than_the_limit_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PipelineHook, "query", lambda _hook, _name, _query, limit: [{"n": n} for n in range(min(9, limit))])
    result = QueryPipelineOperator(**COMMON, query="select 1", limit=3).execute({})
    assert result["rows"] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert result["truncated"] is True
    assert QueryPipelineOperator(**COMMON, query="select 1", limit=9).execute({})["truncated"] is False


def test_a_file_may_be_anywhere_that_fsspec_reaches(ingested: Any) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe_file("/orders/day one.csv", b"id\n1\n")
    result = IngestFileOperator(**INTO, path="memory://orders/day one.csv").execute({})
    assert result == {"pipeline": "p", "table": "t", "token": "token-1", "already_there": False}
    assert ingested == [("t", b"id\n1\n", {"format": "csv", "headers": True})]


def test_pushing_waits_when_it_is_told_to(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["POST", "ingress/t"] = {"token": "abc"}
    scripted.answers["GET", "completion_status"] = [{"status": "inprogress"}, {"status": "complete", "step": 4, "durable": True}]
    waiting: dict[str, Any] = INTO | {"rows": [{"a": 1}], "wait": True, "poke_interval": 0.01}
    assert IngestOperator(**waiting).execute({}) == {
        "pipeline": "p",
        "table": "t",
        "rows": 1,
        "token": "abc",
        "already_there": False,
    }
    assert scripted.asked("GET").count("completion_status") == 2
    scripted.answers["GET", "completion_status"] = {"status": "inprogress"}
    operator = IngestOperator(**waiting, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})
    assert deferred.value.trigger.condition == {"kind": "token", "token": "abc", "checkpoint": False}
    scripted.calls.clear()
    event = {"outcome": "reached", "message": "", "result": {"status": "complete"}}
    assert operator.execute_complete({}, event, **deferred.value.kwargs)["rows"] == 1
    assert scripted.calls == [], "resuming pushes nothing again"
    with pytest.raises(AirflowFailException, match=r"dag\.test\(\) does so: let tasks wait in place there"):
        operator.execute_complete({}, event)


def test_a_query_is_asked_in_the_triggerer() -> None:
    operator = QueryPipelineOperator(**COMMON, query="select 1", limit=2, deferrable=True, timeout=60)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})
    assert isinstance(deferred.value.trigger, PipelineQueryTrigger)
    event = {"outcome": "reached", "message": "", "result": {"rows": [{"n": 1}, {"n": 2}], "truncated": True}}
    found = operator.execute_complete({}, event)
    assert found == {"pipeline": "p", "rows": [{"n": 1}, {"n": 2}], "row_count": 2, "truncated": True}
