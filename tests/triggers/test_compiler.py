from __future__ import annotations

import asyncio
import time
from typing import Any

from airflow.triggers.base import TriggerEvent

from airflow_pipelines import AsyncPipelineClient, PipelineTimeoutError
from airflow_pipelines.triggers.compiler import PROBE, CompilerTrigger
from tests.fixtures.airflow import ScriptedService


def trigger(**changes: Any) -> CompilerTrigger:
    arguments: dict[str, Any] = {
        "pipeline_name": "p",
        "pipeline_conn_id": "c",
        "poll_interval_s": 0.01,
        "first_delay_s": 0.0,
        "deadline": time.time() + 5,
        "outage_budget_s": 60.0,
    }
    return CompilerTrigger(**arguments | changes)


def run(one: CompilerTrigger) -> dict[str, Any]:
    async def events() -> list[TriggerEvent]:
        return [event async for event in one.run()]

    (event,) = asyncio.run(events())
    return dict(event.payload)


def test_it_is_made_again_from_what_it_serializes() -> None:
    path, arguments = trigger(deadline=123.0).serialize()
    assert path == "airflow_pipelines.triggers.compiler.CompilerTrigger"
    assert CompilerTrigger(**arguments).serialize() == (path, arguments)


def test_it_fires_when_next_to_nothing_is_compiled(scripted: ScriptedService) -> None:
    assert run(trigger()) == {"outcome": "reached", "message": "answered", "result": {}}
    assert scripted.validated == [{"program_code": PROBE}]


def test_a_compiler_that_is_busy_is_no_outage(scripted: ScriptedService, monkeypatch: Any) -> None:
    asked: list[float] = []

    async def request(*_: Any, **__: Any) -> dict[str, Any]:
        asked.append(time.time())
        if len(asked) < 4:
            raise PipelineTimeoutError("no answer within 120 s")
        return {}

    monkeypatch.setattr(AsyncPipelineClient, "request", request)
    assert run(trigger(outage_budget_s=-1.0))["outcome"] == "reached"
    assert len(asked) == 4
