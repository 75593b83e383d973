"""The transports' promises, over a small app of our own: streaming, cancelling, limits, retries, forks."""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import tenacity
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from airflow_pipelines.sdk import wire
from airflow_pipelines.sdk.client import AsyncPipelineClient, PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineConnectionError, PipelineTimeoutError
from airflow_pipelines.sdk.transport import _async_result
from airflow_pipelines.sdk.wire import lines_of
from tests.fixtures.serving import serving

pytestmark = pytest.mark.core


class Probe:
    """A small service and what happened to it."""

    def __init__(self) -> None:
        self.started = 0
        self.cancelled = threading.Event()
        self.calls: list[str] = []
        self.failures: list[int] = []
        self.release = threading.Event()
        self.asked_slow = threading.Event()
        self.app = FastAPI(lifespan=self._lifespan)
        self._routes()

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        self.started += 1
        yield

    def _routes(self) -> None:  # noqa: C901 - a list of small endpoints
        app = self.app

        @app.get("/json")
        def json_() -> dict[str, int]:
            return {"pid": os.getpid()}

        @app.get("/text")
        def text() -> PlainTextResponse:
            return PlainTextResponse("plain")

        @app.get("/bytes")
        def bytes_() -> StreamingResponse:
            return StreamingResponse(iter([b"\x00", b"\x01"]), media_type="application/octet-stream")

        @app.post("/empty")
        async def empty(request: Request) -> None:
            self.calls.append((await request.body()).decode())

        @app.get("/echo/{part}")
        def echo(part: str, request: Request) -> dict[str, object]:
            return {"part": part, "query": dict(request.query_params), "headers": dict(request.headers)}

        @app.get("/problem")
        def problem() -> JSONResponse:
            return JSONResponse({"message": "no such thing", "error_code": "Unknown", "details": {"a": 1}}, 404)

        @app.get("/flaky")
        def flaky() -> object:
            self.calls.append("flaky")
            if self.failures:
                status = self.failures.pop(0)
                return JSONResponse({"message": "busy", "error_code": "LockTookTooLong", "details": {}}, status)
            return {"ok": True}

        @app.get("/not_deployed")
        def not_deployed() -> JSONResponse:
            self.calls.append("not_deployed")
            return JSONResponse({"message": "down", "error_code": "PipelineInteractionNotDeployed", "details": {}}, 503)

        @app.get("/ticks")
        def ticks() -> StreamingResponse:
            async def body() -> AsyncIterator[bytes]:
                try:
                    yield b'{"a": "x\xe2\x80\xa8y"}\r\n'
                    while not self.release.is_set():
                        await asyncio.sleep(0.02)
                    yield b"second\nthird"
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise

            return StreamingResponse(body(), media_type="text/plain")

        @app.get("/v0/pipelines/{name}/query")
        def query(name: str) -> StreamingResponse:
            return StreamingResponse(iter([b'{"a": 1}\n', b'{"a": 2}\n', b'{"a": 3}\n']), media_type="text/plain")

        @app.get("/slow")
        async def slow() -> None:
            self.asked_slow.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise

        @app.get("/crash")
        def crash() -> None:
            raise ZeroDivisionError("a bug of the service")


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture(params=["in-process", pytest.param("network", marks=pytest.mark.processes)])
def client(request: pytest.FixtureRequest, probe: Probe) -> Iterator[PipelineClient]:
    if request.param == "in-process":
        yield PipelineClient(app=probe.app)
        return
    with serving(probe.app) as url, PipelineClient(url) as network:
        yield network


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wire.RETRY_WAITS_S == (2.0, 4.0, 8.0)
    monkeypatch.setattr(wire, "RETRY_WAITS_S", (0.02, 0.04, 0.08))


def test_answers_are_read_by_their_content_type(client: PipelineClient, probe: Probe) -> None:
    assert client.get("/json") == {"pid": os.getpid()}
    assert client.get("/text") == "plain"
    assert client.get("/bytes") == b"\x00\x01"
    assert client.post("/empty") is None
    assert probe.calls == ["null"], "a POST without a payload carries the JSON text null"


def test_parameters_and_path_parts_reach_the_service_unharmed(client: PipelineClient) -> None:
    part = '"T 1"#%ä'
    path = wire.path_of("x", part).replace("/v0/x", "/echo")
    answer = client.get(path, params={"yes": True, "no": False, "none": None, "sql": "a+b & c=ü"})
    assert answer["part"] == part
    assert answer["query"] == {"yes": "true", "no": "false", "sql": "a+b & c=ü"}
    assert answer["headers"]["cache-control"] == "no-cache"


def test_the_service_is_started_once(probe: Probe) -> None:
    client = PipelineClient(app=probe.app)
    for _ in range(3):
        client.get("/json")
    assert PipelineClient(app=probe.app).get("/json")
    assert probe.started == 1


def test_an_error_carries_what_the_service_said(client: PipelineClient) -> None:
    with pytest.raises(PipelineAPIError) as caught:
        client.get("/problem")
    error = caught.value
    assert (error.status_code, error.error_code, error.message, error.details) == (404, "Unknown", "no such thing", {"a": 1})
    assert str(error) == "no such thing (Unknown, HTTP 404)"
    with pytest.raises(PipelineAPIError, match=r"GET /nowhere: .*Not Found"):
        client.get("/nowhere")


def test_a_bug_of_the_service_is_an_error_of_the_call(client: PipelineClient) -> None:
    with pytest.raises(PipelineAPIError, match=r"GET /crash: Internal Server Error") as caught:
        client.get("/crash")
    assert caught.value.status_code == 500


def test_streams_arrive_as_they_are_sent_and_closing_cancels_the_handler(client: PipelineClient, probe: Probe) -> None:
    with client.stream("GET", "/ticks") as response:
        lines = lines_of(response)
        assert next(lines) == b'{"a": "x\xe2\x80\xa8y"}', "only a line feed ends a line"
        assert not probe.release.is_set()
        probe.release.set()
        assert next(lines) == b"second"
    assert probe.cancelled.wait(5), "the handler of a closed stream must end, silent as the stream was"


def test_a_silent_stream_times_out(client: PipelineClient) -> None:
    with (
        pytest.raises(PipelineTimeoutError, match="GET /ticks: no answer"),
        client.stream("GET", "/ticks", read_timeout_s=0.3) as r,
    ):
        list(lines_of(r))


@pytest.mark.rest
def test_a_slow_answer_times_out_and_its_handler_is_cancelled(client: PipelineClient, probe: Probe) -> None:
    with pytest.raises(PipelineTimeoutError, match="GET /slow: no answer from"):
        client.request("GET", "/slow", timeout_s=0.2, idempotent=False)
    if client.is_embedded:  # uvicorn does not cancel a handler whose client has gone
        assert probe.cancelled.wait(5)


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_busy_service_is_asked_again(probe: Probe, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=pauses.append))
    client = PipelineClient(app=probe.app)
    probe.failures = [status] * 3
    assert client.get("/flaky") == {"ok": True}
    assert pauses == list(wire.RETRY_WAITS_S)


def test_retries_have_an_end(probe: Probe) -> None:
    probe.failures = [503] * 9
    with pytest.raises(PipelineAPIError, match="busy"):
        PipelineClient(app=probe.app).get("/flaky")
    assert len(probe.calls) == 4


def test_calls_that_are_not_idempotent_are_made_once(probe: Probe) -> None:
    probe.failures = [503]
    with pytest.raises(PipelineAPIError):
        PipelineClient(app=probe.app).request("GET", "/flaky", idempotent=False)
    assert len(probe.calls) == 1


def test_a_pipeline_in_the_wrong_state_is_not_asked_again(probe: Probe) -> None:
    with pytest.raises(PipelineAPIError, match="down"):
        PipelineClient(app=probe.app).get("/not_deployed")
    assert probe.calls == ["not_deployed"]


@pytest.mark.processes
def test_no_service_at_the_url_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        wrong = unused.getsockname()
    url = f"http://127.0.0.1:{wrong[1]}"
    tried, connect = [], socket.create_connection

    def counted(address: Any, *arguments: Any, **options: Any) -> socket.socket:
        tried.append(address)
        return connect(address, *arguments, **options)

    monkeypatch.setattr(socket, "create_connection", counted)
    with pytest.raises(PipelineConnectionError, match=re.escape(f"GET /v0/config: cannot talk to url='{url}'")):
        PipelineClient(url).version()
    # Services of other tests may be asked at the same time.
    assert tried.count(wrong) == 1, "a wrong url must not be tried for 14 seconds"
    assert not PipelineClient(url).is_healthy()


@pytest.mark.processes
def test_a_service_that_restarts_is_waited_for(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(probe.app) as url:
        client = PipelineClient(url)
        client.get("/json")
    with ExitStack() as restarted:
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:
                restarted.enter_context(serving(probe.app, int(url.rsplit(":", 1)[1])))

        monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=pause))
        assert client.get("/json")
        assert len(pauses) == 2


def test_many_threads_may_share_a_client(client: PipelineClient) -> None:
    pids: list[int] = []
    threads = [threading.Thread(target=lambda: pids.append(client.get("/json")["pid"])) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pids == [os.getpid()] * 20


def _ask_in_child(client: PipelineClient, answers: multiprocessing.Queue[int]) -> None:
    answers.put(client.get("/json")["pid"])


@pytest.mark.processes
def test_a_forked_child_has_a_service_and_connections_of_its_own(client: PipelineClient) -> None:
    parent = client.get("/json")["pid"]
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[int] = context.Queue()
    child = context.Process(target=_ask_in_child, args=(client, answers))
    child.start()
    answered_by = answers.get(timeout=20)
    child.join(20)
    assert child.exitcode == 0
    assert answered_by == (child.pid if client.is_embedded else parent)
    assert client.get("/json")["pid"] == parent


@pytest.mark.parametrize("limit", range(5))
def test_the_asynchronous_client_returns_no_more_rows_than_the_limit(probe: Probe, limit: int) -> None:
    async def ask() -> list[Any]:
        async with AsyncPipelineClient(app=probe.app) as client:
            return await client.query("p", "select a from t", limit)

    assert asyncio.run(ask()) == [{"a": 1}, {"a": 2}, {"a": 3}][:limit]


@pytest.mark.processes
def test_a_service_that_answered_with_a_stream_is_known_to_be_there(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is refused after it is made again, as after any other answer: the service starts anew."""
    requests: list[str] = []
    request = httpx.AsyncClient.request

    async def noted(self: httpx.AsyncClient, method: str, url: Any, **options: Any) -> httpx.Response:
        requests.append(str(url))
        return await request(self, method, url, **options)

    monkeypatch.setattr(httpx.AsyncClient, "request", noted)

    async def ask() -> None:
        with serving(probe.app) as url:
            client = AsyncPipelineClient(url)
            async with client.stream("GET", "/bytes") as response:
                await response.aread()
        async with client:
            with pytest.raises(PipelineConnectionError):
                await client.get("/json")

    asyncio.run(ask())
    assert requests == ["/json"] * (1 + len(wire.RETRY_WAITS_S))


@pytest.mark.parametrize("kind", ["in-process", pytest.param("network", marks=pytest.mark.processes)])
def test_the_asynchronous_client_speaks_the_same(probe: Probe, kind: str) -> None:
    async def talk(client: AsyncPipelineClient) -> None:
        async with client:
            assert await client.get("/json") == {"pid": os.getpid()}
            with pytest.raises(PipelineAPIError, match="no such thing"):
                await client.get("/problem")
            with pytest.raises(PipelineTimeoutError):
                await client.get("/slow", timeout_s=0.1, idempotent=False)
            async with client.stream("GET", "/ticks") as response:
                assert await anext(response.aiter_bytes()) == b'{"a": "x\xe2\x80\xa8y"}\r\n'
            assert await asyncio.to_thread(probe.cancelled.wait, 5)
            # A cancelled task, as of a triggerer that shuts down, must not leave its handler behind.
            probe.cancelled.clear()
            probe.asked_slow.clear()
            task = asyncio.create_task(client.get("/slow"))
            assert await asyncio.to_thread(probe.asked_slow.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            if client.is_embedded:
                assert await asyncio.to_thread(probe.cancelled.wait, 5)

    if kind == "in-process":
        asyncio.run(talk(AsyncPipelineClient(app=probe.app)))
    else:
        with serving(probe.app) as url:
            asyncio.run(talk(AsyncPipelineClient(url)))


@pytest.mark.processes
def test_a_process_that_used_the_embedded_service_ends_by_itself() -> None:
    code = (
        "from fastapi import FastAPI\n"
        "from airflow_pipelines import PipelineClient\n"
        "app = FastAPI()\n"
        "@app.get('/x')\n"
        "def x(): return 1\n"
        "print(PipelineClient(app=app).get('/x'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_caller_that_is_cancelled_when_the_answer_comes_is_cancelled(turns: int) -> None:
    async def called() -> bool:
        answer: concurrent.futures.Future[int] = concurrent.futures.Future()
        request = httpx.Request("GET", "http://localhost", extensions={"timeout": {"read": 5.0}})
        task = asyncio.create_task(_async_result(answer, request))
        await asyncio.sleep(0)
        answer.set_result(1)
        for _ in range(turns):
            await asyncio.sleep(0)
        was_waiting = not task.done()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return not was_waiting

    assert asyncio.run(called())
