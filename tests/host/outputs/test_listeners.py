"""The queue between a pipeline and an egress response."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

from airflow_pipelines.connectors.http import EgressData
from airflow_pipelines.host.outputs import listeners
from airflow_pipelines.host.outputs.listeners import Listener, Listeners

LINE = EgressData("1,1\n", 1)


def chunk(data: bytes) -> dict[str, Any]:
    assert data.endswith(b"\r\n")
    parsed: dict[str, Any] = json.loads(data)
    return parsed


def test_chunks_are_numbered_and_silence_is_filled(monkeypatch: Any) -> None:
    monkeypatch.setattr(listeners, "KEEP_ALIVE_S", 0.05)

    async def scenario() -> list[dict[str, Any]]:
        listener = Listener("v", "json", False, asyncio.get_running_loop())
        stream = listener.stream()
        got = [chunk(await anext(stream))]
        data = EgressData('[{"insert":{"x":1}}]', 1)
        threading.Thread(target=listener.put, args=(data,), kwargs={"snapshot": False}).start()
        while not got[-1]["json_data"]:
            got.append(chunk(await anext(stream)))
        got.append(chunk(await anext(stream)))
        listener.close()
        assert [item async for item in stream] == []
        return got

    got = asyncio.run(scenario())
    assert got[0] == got[-1] == {"snapshot": False, "json_data": []}
    assert got[-2] == {"sequence_number": 0, "snapshot": False, "json_data": [{"insert": {"x": 1}}]}


def test_without_backpressure_chunks_are_dropped_and_with_it_the_writer_waits() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        dropping = Listener("v", "csv", False, loop)
        for _ in range(listeners.MAX_QUEUED + 10):
            dropping.put(LINE, snapshot=False)
        dropping.close()
        assert dropping.metrics.queued_records == listeners.MAX_QUEUED
        assert len([item async for item in dropping.stream()]) == 1 + listeners.MAX_QUEUED
        counts = dropping.to_wire()["metrics"]
        assert (counts["queued_records"], counts["transmitted_records"]) == (0, listeners.MAX_QUEUED)

        waiting = Listener("v", "csv", True, loop)
        total = listeners.MAX_QUEUED + 10

        def write() -> None:
            for _ in range(total):
                waiting.put(LINE, snapshot=False)
            waiting.close()

        thread = threading.Thread(target=write)
        thread.start()
        deadline = time.monotonic() + 5
        while waiting.stalled_s == 0.0 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert waiting.stalled_s > 0
        got = [chunk(item) async for item in waiting.stream()]
        assert waiting.stalled_s == 0
        thread.join(5)
        assert sum("sequence_number" in item for item in got) == total

    asyncio.run(scenario())


def test_the_queue_of_a_listener_that_is_waited_for_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(listeners, "QUEUED_CHARACTERS", 1000)

    async def scenario() -> None:
        listener = Listener("v", "csv", True, asyncio.get_running_loop())
        made = []

        def write() -> None:
            for number in range(50):
                listener.put(EgressData("x" * 300, 1), snapshot=False)
                made.append(number)
            listener.close()

        thread = threading.Thread(target=write)
        thread.start()
        got = 0
        async for item in listener.stream():
            got += "sequence_number" in chunk(item)
            assert len(made) <= got + 5
        thread.join(5)
        assert got == 50

    asyncio.run(scenario())


def test_a_listener_that_leaves_frees_the_writer() -> None:
    async def scenario() -> None:
        listener = Listener("v", "csv", True, asyncio.get_running_loop())
        thread = threading.Thread(
            target=lambda: [listener.put(LINE, snapshot=False) for _ in range(listeners.MAX_QUEUED + 1)], daemon=True
        )
        thread.start()
        deadline = time.monotonic() + 10
        while len(listener._queue) < listeners.MAX_QUEUED:
            assert time.monotonic() < deadline, "the writer does not fill the queue"
            await asyncio.sleep(0.01)
        assert thread.is_alive()
        listener.close()
        await asyncio.to_thread(thread.join, 5)
        assert not thread.is_alive()

    asyncio.run(scenario())


def test_the_end_of_a_pipeline_ends_all_of_them() -> None:
    async def scenario() -> None:
        registry = Listeners()
        held, early, late = (Listener("v", "json", False, asyncio.get_running_loop()) for _ in range(3))
        for listener in (held, early):
            registry.hold(listener)
        assert registry.all() == [held, early]
        registry.add(early)
        assert registry.of("v") == [early], "the other one gets nothing yet"
        assert registry.count == 2
        registry.close()
        registry.add(late)
        for listener in (held, early, late):
            assert len([item async for item in listener.stream()]) == 1

    asyncio.run(scenario())
