"""The queue between the thread that makes a body and the event loop that sends it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from airflow_pipelines.engine.spark.result_connection import AbortedError
from airflow_pipelines.host.queries import body_queue
from airflow_pipelines.host.queries.body_queue import BodyQueue, StalledError

PART = b"x" * 1000


async def rest_of(queue: BodyQueue) -> list[bytes]:
    parts = []
    while (part := await queue.next()) is not None:
        parts.append(part)
    return parts


def test_never_more_than_the_limit_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_queue, "QUEUED_BYTES", 5000)
    made: list[int] = []

    def fill(queue: BodyQueue) -> None:
        for number in range(100):
            queue.put(PART)
            made.append(number)
        queue.end()

    async def scenario() -> None:
        queue = BodyQueue(60, 2000)
        thread = threading.Thread(target=fill, args=(queue,))
        thread.start()
        await queue.wait_for_data()
        for number in range(50):
            assert await queue.next() == PART
            assert len(made) <= number + 1 + 5
        assert len(await rest_of(queue)) == 50
        thread.join(5)
        assert queue.ended

    asyncio.run(scenario())


def test_a_failure_comes_at_once_until_something_had_to_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:

    async def scenario() -> None:
        early = BodyQueue(60, 2000)
        early.put(PART)
        early.end(ValueError("early"))
        with pytest.raises(ValueError, match="early"):
            await early.wait_for_data()
        late = BodyQueue(60, 2000)
        for _ in range(3):
            late.put(PART)
        late.end(ValueError("late"))
        await late.wait_for_data()
        assert [await late.next() for _ in range(3)] == [PART] * 3
        with pytest.raises(ValueError, match="late"):
            await late.next()

    asyncio.run(scenario())


def test_what_is_there_is_sent_after_a_while() -> None:

    async def scenario() -> None:
        queue = BodyQueue(60, 2000)
        queue.put(PART)
        await asyncio.wait_for(queue.wait_for_data(), 10)
        assert await queue.next() == PART
        queue.end(ValueError("late"))
        with pytest.raises(ValueError, match="late"):
            await queue.next()

    asyncio.run(scenario())


def test_the_thread_goes_on_when_the_reader_is_gone_or_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_queue, "QUEUED_BYTES", 1000)

    async def scenario() -> None:
        stalled = BodyQueue(0.01, 2000)
        stalled.put(PART)
        with pytest.raises(StalledError):
            stalled.put(PART)
        left = BodyQueue(60, 2000)
        left.put(PART)
        left.abort()
        with pytest.raises(AbortedError):
            left.put(PART)

    asyncio.run(scenario())
