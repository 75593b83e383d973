from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent

from airflow_pipelines import AsyncPipelineClient
from airflow_pipelines.triggers.query import PipelineQueryTrigger, first_rows
from tests.fixtures.airflow import ScriptedService

ROWS = b'{"n":1,"d":0.10}\n{"n":2,"d":null}\n{"n":3,"d":2.50}\n'


def trigger(**changes: Any) -> PipelineQueryTrigger:
    arguments: dict[str, Any] = {
        "pipeline_name": "p",
        "query": "select n, d from v",
        "limit": 2,
        "pipeline_conn_id": "c",
        "poll_interval_s": 0.01,
        "first_delay_s": 0.0,
        "deadline": time.time() + 5,
        "outage_budget_s": 60.0,
    }
    return PipelineQueryTrigger(**arguments | changes)


def run(one: PipelineQueryTrigger) -> dict[str, Any]:
    async def events() -> list[TriggerEvent]:
        return [event async for event in one.run()]

    (event,) = asyncio.run(events())
    return dict(event.payload)


def test_it_is_made_again_from_what_it_serializes() -> None:
    path, arguments = trigger(deadline=123.0).serialize()
    assert path == "airflow_pipelines.triggers.query.PipelineQueryTrigger"
    assert PipelineQueryTrigger(**arguments).serialize() == (path, arguments)


def test_it_brings_the_first_rows_without_losing_a_digit(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "query"] = ROWS
    event = run(trigger())
    assert event["outcome"] == "reached"
    assert event["result"] == {"rows": [{"n": 1, "d": "0.10"}, {"n": 2, "d": None}], "truncated": True}
    assert run(trigger(limit=3))["result"]["truncated"] is False
    assert scripted.calls[0][2]["sql"] == "select n, d from v"


def test_a_long_query_goes_in_a_body(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["POST", "query"] = ROWS
    query = f"select n, d from v where n in ({', '.join(map(str, range(1000)))})"
    assert len(run(trigger(query=query))["result"]["rows"]) == 2
    assert scripted.calls[0][3] == {"sql": query}


def test_a_service_that_is_away_is_asked_again(scripted: ScriptedService) -> None:
    scripted.up()
    away = (503, {"error_code": "StoreUnavailable", "message": "restarting", "details": {}})
    scripted.answers["GET", "query"] = [away, away, ROWS]
    assert run(trigger())["outcome"] == "reached"
    scripted.answers["GET", "query"] = away
    event = run(trigger(outage_budget_s=0.1))
    assert event["outcome"] == "unreachable"
    assert "the service was away for 0 s, with: " in event["message"]
    assert "restarting" in event["message"]


def test_a_query_that_takes_too_long_is_given_up(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> list[Any]:
        await asyncio.sleep(30)
        return []

    monkeypatch.setattr(AsyncPipelineClient, "query", never)
    event = run(trigger(deadline=time.time() + 0.05))
    assert event["outcome"] == "timeout"
    assert event["message"] == "the answer to the query of pipeline 'p': time is up, and there is no answer"


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"error_code": "AdHocQueryError", "message": "no such column x", "details": {}}),
        b'{"n":1}\n{"error":"no such column x"}\n',
    ],
)
def test_a_query_that_fails_is_not_asked_again(scripted: ScriptedService, answer: Any) -> None:
    scripted.up()
    scripted.answers["GET", "query"] = answer
    event = run(trigger())
    assert (event["outcome"], "no such column x" in event["message"]) == ("error", True)
    assert len(scripted.calls) == 1


def test_rows_are_small_json() -> None:
    assert first_rows([], 1) == {"rows": [], "truncated": False}
