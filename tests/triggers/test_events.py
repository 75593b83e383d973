from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any
from uuid import UUID

import pytest
from uuid6 import uuid7

from airflow_pipelines.triggers.events import PipelineEventTrigger
from tests.fixtures.airflow import ScriptedService

FIRST, SECOND = (str(UUID(int=uuid7().int)) for _ in range(2))


class Store:
    """The store that Airflow keeps with an asset."""

    def __init__(self, trouble: str = "") -> None:
        self.kept: dict[str, Any] = {}
        self.writes = 0
        self.trouble = trouble

    async def aget(self, key: str, default: Any = None) -> Any:
        if self.trouble:
            raise ValueError(self.trouble)
        return self.kept.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.writes += 1
        self.kept[key] = value


def trigger(store: Any = None, **arguments: Any) -> PipelineEventTrigger:
    made = PipelineEventTrigger(**{"pipeline_name": "p", "events": ["checkpoint"], "poll_interval_s": 0.01} | arguments)
    made.asset_state_store = store
    return made


def events_of(
    watching: PipelineEventTrigger, count: int, service: ScriptedService, during: Any, limit_s: float = 30.0
) -> list[dict[str, Any]]:
    """The first events of a trigger; ``during`` is called once the watching has begun."""

    async def when_it_has_begun() -> None:
        looks = len(service.asked("GET"))
        # Each look is one request at least and three at most.
        while len(service.asked("GET")) < looks + 4:
            await asyncio.sleep(0.01)
        during()

    async def collect() -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        change = asyncio.ensure_future(when_it_has_begun())
        async with aclosing(watching.run()) as events:  # type: ignore[type-var]
            async for event in events:
                told.append(event.payload)
                if len(told) == count:
                    break
        await change
        return told

    return asyncio.run(asyncio.wait_for(collect(), limit_s))


def checkpoints(service: ScriptedService, *uuids: str) -> None:
    service.up(storage_status_details={"checkpoints": [{"uuid": uuid, "steps": 1, "processed_records": 4} for uuid in uuids]})


def test_arguments_survive_airflow() -> None:
    made = trigger(events=["idle", "checkpoint"], idle_interval_s=3.0, name="x")
    path, arguments = made.serialize()
    assert path == "airflow_pipelines.triggers.events.PipelineEventTrigger"
    assert PipelineEventTrigger(**arguments).serialize() == (path, arguments)
    assert arguments["events"] == ["checkpoint", "idle"]


@pytest.mark.parametrize(("events", "why"), [([], "give a list"), ("idle", "give a list"), (["moon"], "known: ")])
def test_kinds_are_checked_where_the_dag_is_read(events: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        trigger(events=events)


def test_what_happens_is_told_and_kept(scripted: ScriptedService) -> None:
    checkpoints(scripted, FIRST)
    store = Store()
    (event,) = events_of(trigger(store), 1, scripted, lambda: checkpoints(scripted, SECOND, FIRST))
    assert event["event"] == "checkpoint"
    assert event["checkpoint"] == SECOND
    assert event["processed_records"] == 4


def test_a_restarted_triggerer_tells_nothing_twice_and_misses_nothing(scripted: ScriptedService) -> None:
    checkpoints(scripted)
    store = Store()

    async def watch_for_a_while() -> None:
        async with aclosing(trigger(store).run()) as events:  # type: ignore[type-var]
            await anext(events)

    async def until_it_has_looked() -> None:
        watching = asyncio.ensure_future(watch_for_a_while())
        while len(scripted.asked("GET")) < 4:
            await asyncio.sleep(0.01)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching

    asyncio.run(asyncio.wait_for(until_it_has_looked(), 30))
    assert store.writes == 1, "a watermark that has not moved is not written again"
    # While no triggerer runs.
    checkpoints(scripted, FIRST)
    again = trigger(store)
    told = events_of(again, 2, scripted, lambda: checkpoints(scripted, SECOND, FIRST))
    assert [event["checkpoint"] for event in told] == [FIRST, SECOND]


def test_failures_are_told_from_what_the_service_recorded(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "events"] = [[{"event_id": "01", "recorded_at": "t1", "deployment_error": None}]]

    def fail() -> None:
        error = {"error_code": "HostLost", "message": "gone", "details": {}}
        failed = {"event_id": "02", "recorded_at": "t2", "deployment_error": error}
        scripted.answers["GET", "events"] = [[failed, {"event_id": "01", "recorded_at": "t1", "deployment_error": None}]]
        scripted.pipeline(deployment_error=error)

    (event,) = events_of(trigger(Store(), events=["failure"]), 1, scripted, fail)
    assert event == {"event": "failure", "pipeline": "p", "error_code": "HostLost", "message": "gone", "at": "t2"}


def test_a_pipeline_that_is_away_is_watched_on(scripted: ScriptedService, caplog: pytest.LogCaptureFixture) -> None:
    def appear() -> None:
        checkpoints(scripted, FIRST)
        scripted.answers["GET", ""] = lambda: (500, {"error_code": "InternalError", "message": "stumbled"})
        asyncio.get_running_loop().call_later(0.1, recover)

    def recover() -> None:
        del scripted.answers["GET", ""]
        checkpoints(scripted, SECOND, FIRST)

    # It is not even there at first.
    watched = trigger(Store(), events=["checkpoint"])
    checkpoints(scripted)
    with caplog.at_level("INFO"):
        (event,) = events_of(watched, 1, scripted, appear)
    assert event["checkpoint"] in (FIRST, SECOND)


def test_assets_that_share_a_trigger_are_watched_without_a_watermark(scripted: ScriptedService) -> None:
    checkpoints(scripted)
    told = events_of(trigger(Store(trouble="Task has 2 concrete inlets")), 1, scripted, lambda: checkpoints(scripted, FIRST))
    assert told[0]["checkpoint"] == FIRST
    assert events_of(trigger(None), 1, scripted, lambda: checkpoints(scripted, SECOND, FIRST))[0]["checkpoint"] == SECOND


def test_idleness_needs_statistics_of_a_running_pipeline(scripted: ScriptedService) -> None:
    scripted.pipeline()
    metrics = {
        "total_input_records": 3,
        "total_processed_records": 3,
        "total_completed_records": 3,
        "total_completed_steps": 1,
        "incarnation_uuid": "i",
    }
    scripted.answers["GET", "stats"] = {"global_metrics": metrics}
    (event,) = events_of(trigger(Store(), events=["idle"], idle_interval_s=0.1), 1, scripted, scripted.up)
    assert event["total_input_records"] == 3
