"""Asynchronous requests to a real server and a real database, by a script and by a pipeline."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import psycopg
import pytest

from airflow_pipelines import PipelineBuilder, PipelineClient
from airflow_pipelines.datastream import AsyncDataStream, AsyncFunction, Time
from airflow_pipelines.datastream.async_retry_strategies import FixedDelayRetryStrategyBuilder
from tests.datastream.programs import collected, environment
from tests.fixtures.postgresql import Database


class _Server(ThreadingHTTPServer):
    """Answers after a while, counts the requests that it has at the same time, and fails each path once."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.running = self.most = 0
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.running += 1
            self.server.most = max(self.server.most, self.server.running)
            is_first = self.path not in self.server.paths
            self.server.paths.append(self.path)
        time.sleep(0.02)
        self.send_response(503 if is_first and "flaky" in self.path else 200)
        self.end_headers()
        self.wfile.write(json.dumps(self.path).encode())
        with self.server.lock:
            self.server.running -= 1

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(processes: None) -> Iterator[_Server]:
    made = _Server()
    serving = threading.Thread(target=made.serve_forever, daemon=True)
    serving.start()
    yield made
    made.shutdown()
    serving.join()
    made.server_close()


class Ask(AsyncFunction[str, str]):
    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self, runtime_context: Any) -> None:  # type: ignore[override]
        self.client = httpx.AsyncClient(base_url=self.url)

    async def async_invoke(self, value: str) -> list[str]:
        return [(await self.client.get(f"/{value}")).raise_for_status().json()]

    async def close(self) -> None:  # type: ignore[override]
        await self.client.aclose()


def test_a_slow_server_is_asked_about_many_elements_at_the_same_time(server: _Server) -> None:
    names = [f"{number}-{'flaky' if number % 10 == 0 else 'sure'}" for number in range(100)]
    stream = environment().from_collection(names)
    again = FixedDelayRetryStrategyBuilder(1, 1).if_exception(lambda error: isinstance(error, httpx.HTTPStatusError)).build()
    asked = AsyncDataStream.ordered_wait_with_retry(stream, Ask(server.url), Time.seconds(60), again, capacity=20)
    assert collected(asked) == [f"/{name}" for name in names]
    assert 1 < server.most <= 20
    assert sorted(server.paths) == sorted([f"/{name}" for name in names] + [f"/{name}" for name in names if "flaky" in name])


def test_a_server_that_fails_ends_the_program_with_the_element(server: _Server) -> None:
    stream = environment().from_collection(["sure", "flaky"])
    with pytest.raises(httpx.HTTPStatusError, match="503") as failed:
        collected(AsyncDataStream.unordered_wait(stream, Ask(server.url), Time.seconds(60)))
    assert "in operator 'Async Wait', element: 'flaky'" in failed.value.__notes__


def test_a_database_is_asked_by_connections_of_its_own(database: Database) -> None:
    database.execute(
        "CREATE TABLE prices (fruit text PRIMARY KEY, price int)", "INSERT INTO prices VALUES ('pears', 5), ('figs', 9)"
    )

    class Price(AsyncFunction[str, tuple[str, int]]):
        async def async_invoke(self, value: str) -> list[tuple[str, int]]:
            async with await psycopg.AsyncConnection.connect(database.url) as connection:
                rows = await connection.execute("SELECT price, pg_sleep(0.01) FROM prices WHERE fruit = %s", [value])
                return [(value, price) for price, _ in await rows.fetchall()]

        def __deepcopy__(self, memo: Any) -> Any:
            return self

    stream = environment().from_collection(["pears", "plums", "figs"] * 5)
    priced = AsyncDataStream.unordered_wait(stream, Price(), Time.seconds(60), capacity=4)
    assert sorted(collected(priced)) == [("figs", 9)] * 5 + [("pears", 5)] * 5


PROGRAM = """
import asyncio

import httpx

from airflow_pipelines.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment, Time


class Ask(AsyncFunction):
    async def open(self, runtime_context):
        self.client = httpx.AsyncClient(base_url={url!r})

    async def async_invoke(self, value):
        answer = await self.client.get(f"/{{value[0]}}")
        return [(value[0], answer.json())]

    async def close(self):
        await self.client.aclose()


env = StreamExecutionEnvironment.get_execution_environment()
asked = AsyncDataStream.unordered_wait(env.from_relation("names"), Ask(), Time.seconds(60), capacity=10)
asked.uid("ask").to_relation("answers", {{"name": "STRING", "path": "STRING"}}, primary_key=["name"]).uid("answers")
env.execute()
"""


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_a_pipeline_asks_once_about_each_row_and_goes_on_after_a_stop(
    embedded_client: PipelineClient, pipeline_name: str, server: _Server
) -> None:
    sql = "create table names (name varchar) with ('append_only' = 'true', 'materialized' = 'true');"
    program = {"ask.py": PROGRAM.format(url=server.url)}
    pipeline = PipelineBuilder(embedded_client, pipeline_name, sql, stream_program=program).create(timeout_s=120)
    pipeline.start(timeout_s=120)
    pipeline.input_json("names", [{"name": f"a{number}"} for number in range(50)])
    assert len(list(pipeline.query("select * from answers"))) == 50
    assert server.most > 1
    pipeline.stop(force=False, timeout_s=60)
    pipeline.start(timeout_s=120)
    pipeline.input_json("names", [{"name": "b"}])
    answers = list(pipeline.query("select name, path from answers"))
    assert {row["path"] for row in answers} == {f"/{row['name']}" for row in answers}
    assert len(answers) == 51
    # The checkpoint had no request under way, so none was made again.
    assert len(server.paths) == 51
    pipeline.stop(force=True, timeout_s=60)
