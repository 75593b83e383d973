"""Following a view, over a service whose stream the test holds in its hand."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from typing import Any

import pandas
import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response, StreamingResponse

from airflow_pipelines import OutputHandler, Pipeline, PipelineAPIError, PipelineClient, PipelineConnectionError
from tests.fixtures.serving import serving
from tests.scripted import STOPPED, up

FIELDS = {
    "id": "BIGINT",
    "name": "VARCHAR",
    "amount": "DECIMAL",
    "share": "DOUBLE",
    "at": "TIMESTAMP",
    "ok": "BOOLEAN",
}
SCHEMA = {
    "outputs": [
        {
            "name": "v",
            "fields": [{"name": name, "columntype": {"type": kind, "nullable": True}} for name, kind in FIELDS.items()],
        }
    ]
}


class Service:
    """A running pipeline with one view; ``send`` puts a chunk on every listener's stream, None ends it, an error breaks it."""

    def __init__(self) -> None:
        self.descriptor = up("Running", program_info={"schema": SCHEMA})
        self.chunks: queue.Queue[Any] = queue.Queue()
        self.listening = threading.Event()
        self.cancelled = threading.Event()
        self.sequence = 0
        app = FastAPI()

        @app.get("/v0/pipelines/p")
        def descriptor() -> dict[str, Any]:
            return self.descriptor

        @app.post("/v0/pipelines/p/stop")
        def stop() -> None:
            self.chunks.put(None)
            self.descriptor = STOPPED

        @app.post("/v0/pipelines/p/egress/{view}")
        def egress(view: str) -> Response:
            if view.lower() != "v":
                return JSONResponse({"message": f"no view {view}", "error_code": "UnknownOutputEndpoint", "details": {}}, 404)
            return StreamingResponse(self._stream(), media_type="application/json")

        self.app = app
        self.client = PipelineClient(app=app)

    async def _stream(self) -> AsyncIterator[bytes]:
        try:
            yield self._chunk({})
            self.listening.set()
            while True:
                try:
                    chunk = self.chunks.get_nowait()
                except queue.Empty:
                    await asyncio.sleep(0.01)
                    continue
                if chunk is None:
                    return
                if isinstance(chunk, Exception):
                    raise chunk
                yield self._chunk(chunk)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    def _chunk(self, body: dict[str, Any]) -> bytes:
        self.sequence += 1
        return (json.dumps({"sequence_number": self.sequence - 1, "snapshot": False} | body) + "\r\n").encode()

    def send(self, *changes: dict[str, Any]) -> None:
        self.chunks.put({"json_data": list(changes)})


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    # A listener that a test leaves would wait for a minute, and then log that it broke off.
    service.descriptor = STOPPED
    service.chunks.put(None)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass within 5 s"
        time.sleep(0.01)


ROW = {"id": 1, "name": "a", "amount": "1.50", "share": 0.5, "at": "2026-01-02 03:04:05.000006", "ok": True}
NULLS = dict.fromkeys(FIELDS)


def gathered(handler: OutputHandler, count: int) -> list[dict[str, Any]]:
    eventually(lambda: len(handler.to_dict(clear_buffer=False)) >= count)
    return handler.to_dict()


def test_changes_are_gathered_in_order(service: Service) -> None:
    handler = OutputHandler(service.client, "p", "V")
    handler.start()
    service.send({"delete": NULLS}, {"insert": ROW})
    service.send({"insert": {"id": 2}})
    rows = gathered(handler, 3)
    assert rows[0] == NULLS | {"insert_delete": -1}
    assert rows[1] == ROW | {"amount": Decimal("1.50"), "share": Decimal("0.5"), "insert_delete": 1}
    assert rows[2] == {"id": 2, "insert_delete": 1}
    assert handler.to_dict() == []
    handler.stop()
    assert not handler.is_alive


def test_frames_have_the_views_columns_and_types(service: Service) -> None:
    handler = OutputHandler(service.client, "p", "v")
    handler.start()
    empty = handler.to_pandas()
    assert list(empty.columns) == [*FIELDS, "insert_delete"]
    assert empty["id"].dtype == "int64"
    service.send({"insert": ROW})
    eventually(lambda: len(handler.to_pandas(clear_buffer=False)) == 1)
    frame = handler.to_pandas(clear_buffer=False)
    assert frame["at"][0] == pandas.Timestamp("2026-01-02 03:04:05.000006")
    assert frame.dtypes[["id", "share", "ok"]].astype(str).tolist() == ["int64", "float64", "bool"]
    assert frame["amount"][0] == Decimal("1.50")
    service.send({"delete": NULLS})
    eventually(lambda: len(handler.to_pandas(clear_buffer=False)) == 2)
    frame = handler.to_pandas()
    assert frame.dtypes[["id", "ok"]].astype(str).tolist() == ["Int64", "boolean"]
    assert frame["insert_delete"].tolist() == [1, -1]
    assert handler.to_pandas().empty
    handler.stop()


@pytest.mark.core
@pytest.mark.parametrize("kind", ["in-process", pytest.param("network", marks=pytest.mark.processes)])
def test_a_handler_of_a_silent_view_stops_at_once(service: Service, kind: str) -> None:
    def stop_while_listening(client: PipelineClient) -> None:
        handler = Pipeline.get("p", client).listen("v")
        assert service.listening.wait(5)
        handler.stop()
        assert not handler.is_alive
        assert handler.error is None
        assert service.cancelled.wait(5), "the service must learn that nobody listens any more"

    if kind == "in-process":
        stop_while_listening(service.client)
    else:
        with serving(service.app) as url, PipelineClient(url) as client:
            stop_while_listening(client)


def test_an_unknown_view_is_an_error_of_the_start(service: Service) -> None:
    with pytest.raises(PipelineAPIError, match="no view nope"):
        Pipeline.get("p", service.client).listen("nope")


def test_a_handler_starts_once(service: Service) -> None:
    handler = Pipeline.get("p", service.client).listen("v")
    with pytest.raises(RuntimeError, match="was started before"):
        handler.start()
    handler.stop()


def test_stopping_the_pipeline_ends_its_listeners(service: Service) -> None:
    pipeline = Pipeline.get("p", service.client)
    handler = pipeline.listen("v")
    service.send({"insert": {"id": 2}})
    pipeline.stop(force=True)
    assert not handler.is_alive
    assert handler.to_dict() == [{"id": 2, "insert_delete": 1}]
    assert handler.error is None


@pytest.mark.rest
def test_a_stream_that_breaks_is_an_error_once_all_is_read(service: Service) -> None:
    handler = Pipeline.get("p", service.client).listen("v")
    service.send({"insert": {"id": 2}})
    service.chunks.put(OSError("the host was lost"))
    assert handler.join(5)
    assert handler.to_dict() == [{"id": 2, "insert_delete": 1}]
    with pytest.raises(PipelineConnectionError, match="the host was lost"):
        handler.to_dict()


def test_a_stream_cut_off_by_a_stop_is_no_error(service: Service) -> None:
    handler = Pipeline.get("p", service.client).listen("v")
    service.descriptor = STOPPED
    service.chunks.put(OSError("the host was taken down"))
    assert handler.join(5)
    assert handler.to_dict() == []


def test_a_callback_gets_each_chunk_with_its_number(service: Service) -> None:
    seen: list[tuple[list[int], int]] = []
    Pipeline.get("p", service.client).foreach_chunk("v", lambda frame, number: seen.append((frame["id"].tolist(), number)))
    service.send({"insert": {"id": 1}}, {"insert": {"id": 2}})
    service.chunks.put({})
    service.send({"insert": {"id": 3}})
    eventually(lambda: len(seen) == 2)
    assert seen == [([1, 2], 1), ([3], 3)]


def test_a_failing_callback_ends_the_following_and_is_logged(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: pandas.DataFrame, __: int) -> None:
        raise ZeroDivisionError("a bug of the user")

    pipeline = Pipeline.get("p", service.client)
    pipeline.foreach_chunk("v", fail)
    service.send({"insert": {"id": 1}})
    [handler] = pipeline._listeners
    assert handler.join(5)
    assert isinstance(handler.error, ZeroDivisionError)
    assert "Following view 'v' of pipeline 'p' broke off" in caplog.text
    assert "a bug of the user" in caplog.text
