"""Waits share clients: one for each event loop and connection."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_pipelines.hooks import clients
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.sdk.client import AsyncPipelineClient


def connect(monkeypatch: pytest.MonkeyPatch, conn_id: str, **fields: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": "airflow_pipelines", **fields}))


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs of the clients that were closed, in order."""
    urls: list[str] = []
    close = AsyncPipelineClient.close

    async def noted(self: AsyncPipelineClient) -> None:
        urls.append(str(self.url))
        await close(self)

    monkeypatch.setattr(AsyncPipelineClient, "close", noted)
    return urls


async def used(conn_id: str) -> AsyncPipelineClient:
    async with PipelineHook(conn_id).shared_async_conn() as client:
        await asyncio.sleep(0)
        return client


def test_all_waits_of_a_loop_on_a_connection_share_a_client(monkeypatch: pytest.MonkeyPatch, closed: list[str]) -> None:
    connect(monkeypatch, "one", host="http://one")
    connect(monkeypatch, "two", host="https://two")

    async def waits() -> tuple[set[int], set[int]]:
        ones = await asyncio.gather(*(used("one") for _ in range(50)))
        twos = await asyncio.gather(*(used("two") for _ in range(50)))
        assert closed == []
        return set(map(id, ones)), set(map(id, twos))

    ones, twos = asyncio.run(waits())
    assert (len(ones), len(twos)) == (1, 1)
    assert ones != twos
    assert sorted(closed) == ["http://one", "https://two"], "they are closed with their loop"


def test_another_loop_has_a_client_of_its_own(monkeypatch: pytest.MonkeyPatch, closed: list[str]) -> None:
    connect(monkeypatch, "one", host="http://one")
    first = asyncio.run(used("one"))
    assert asyncio.run(used("one")) is not first
    assert closed == ["http://one", "http://one"]


def test_a_changed_connection_is_noticed_and_who_uses_the_old_client_keeps_it(
    monkeypatch: pytest.MonkeyPatch, closed: list[str]
) -> None:
    connect(monkeypatch, "one", host="http://old")

    async def waits() -> None:
        async with PipelineHook("one").shared_async_conn() as old:
            connect(monkeypatch, "one", host="http://new")
            assert await used("one") is old, "it is not read each time"
            monkeypatch.setattr(clients, "FRESH_S", 0.0)
            assert str((await used("one")).url) == "http://new"
            assert closed == []
        assert closed == ["http://old"]
        assert str((await used("one")).url) == "http://new"
        assert closed == ["http://old"]

    asyncio.run(waits())
    assert closed == ["http://old", "http://new"]


def test_a_key_that_was_changed_makes_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "FRESH_S", 0.0)

    async def waits() -> None:
        connect(monkeypatch, "one", host="http://h", password="before")
        before = await used("one")
        assert await used("one") is before
        connect(monkeypatch, "one", host="http://h", password="after")
        assert await used("one") is not before

    asyncio.run(waits())


def test_a_connection_that_cannot_be_read_again_is_taken_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "one", host="http://h")
    monkeypatch.setattr(clients, "FRESH_S", 0.0)

    async def away(_hook: Any, _conn_id: str) -> None:
        raise RuntimeError("the API server is away")

    async def gone(_hook: Any, _conn_id: str) -> None:
        raise AirflowNotFoundException("deleted")

    async def waits() -> None:
        client = await used("one")
        monkeypatch.setattr(PipelineHook, "aget_connection", away)
        assert await used("one") is client
        with pytest.raises(RuntimeError, match="API server is away"):
            await used("two")
        monkeypatch.setattr(PipelineHook, "aget_connection", gone)
        with pytest.raises(AirflowNotFoundException, match="no connection 'one'"):
            await used("one")

    asyncio.run(waits())
