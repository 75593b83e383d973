"""Posting changes to a real server: in order, each with a key of its own; servers that are busy, away or refuse."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.common_options import OnError
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.opening import open_output
from airflow_pipelines.connectors.transports import http_output
from airflow_pipelines.connectors.transports.http_output import HttpOutput
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from tests.connectors.transports.delta_table.tables import PEOPLE, changes

pytestmark = [pytest.mark.processes, pytest.mark.core]


@dataclass
class Server:
    """A server that keeps what it is sent, each key once; ``answers`` come first."""

    url: str = ""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    taken: dict[str, bytes] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    requests: int = 0

    def lines(self) -> list[Any]:
        return [json.loads(line) for body in self.taken.values() for line in body.splitlines()]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.requests += 1
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers = state.answers.pop(0) if state.answers else (204, {})
            if status == 0:
                self.connection.close()
                return
            if self.headers.get("Authorization") != "Bearer s3cret":
                status = 401
            if status < 300:
                state.kinds.add(self.headers["Content-Type"])
                state.taken.setdefault(self.headers["Idempotency-Key"], body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if status >= 300:
                self.wfile.write(b"because of this and that")

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    monkeypatch.setattr(http_output, "_RETRIES", replace(http_output._RETRIES, first_wait_s=0.01))
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{made.server_port}/changes?token=hunter2"
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield state
    made.shutdown()
    made.server_close()


def declared(url: str, format_name: str = "json", format_config: Any = None, **options: Any) -> Connector:
    config = {"path": url, "headers": {"Authorization": "Bearer s3cret"}, **options}
    return Connector("v", "o", ConnectorDirection.OUTPUT, "http_output", config, format_name, format_config or {})


def output(server: Server, left_out: LeftOutRows | None = None, **parts: Any) -> HttpOutput:
    pipeline = PipelineReference("p", "test")
    sink = open_output(declared(server.url, **parts), PEOPLE, NO_REFERENCES, pipeline, left_out=left_out)
    assert isinstance(sink, HttpOutput)
    sink.open(resumed=False)
    return sink


def test_changes_come_in_order_a_few_at_a_time(server: Server) -> None:
    sink = output(server, max_batch_records=4)
    assert sink.write(1, changes(*((n, "a", 1) for n in range(10))))[0] == 10
    sink.write(2, changes((3, "a", -1)))
    assert [next(iter(line.values()))["id"] for line in server.lines()] == [*range(10), 3]
    assert (server.requests, len(server.taken)) == (4, 4)
    assert server.kinds == {"application/x-ndjson"}


def test_formats(server: Server) -> None:
    output(server, format_name="csv").write(1, changes((1, "a", 1), (2, None, -1)))
    output(server, format_config={"array": True}).write(2, changes((1, "a", 1), (2, "b", 1)))
    first, second = server.taken.values()
    assert sorted(first.splitlines()) == [b"1,a,1", b"2,,-1"]
    assert [line["insert"]["id"] for line in json.loads(second)] == [1, 2]
    assert server.kinds == {"text/csv", "application/json"}


def test_a_step_that_comes_again_has_the_same_keys(server: Server) -> None:
    given = [(n, "a", 1) for n in range(10)]
    output(server, max_batch_records=4).write(1, changes(*given))
    output(server, max_batch_records=4).write(1, changes(*given))
    assert (server.requests, len(server.taken)) == (6, 3)
    # Other changes in a step of the same number are not taken for those.
    output(server, max_batch_records=4).write(1, changes((77, "a", 1)))
    assert len(server.taken) == 4


@pytest.mark.rest
@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_what_may_pass_is_tried_again(server: Server, status: int) -> None:
    server.answers = [(status, {"Retry-After": "0"})] * 2
    output(server).write(1, changes((1, "a", 1)))
    assert (server.requests, len(server.lines())) == (3, 1)
    server.answers = [(status, {})] * 100
    with pytest.raises(TransientConnectorFailure) as failure:
        output(server).write(2, changes((2, "a", 1)))
    assert server.requests == 7
    assert "hunter2" not in str(failure.value)


class Waits(threading.Event):
    """Notes for how long somebody would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return False


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("7", 7, 7),
        ("600", 10, 10),
        (format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True), 10, 10),
        (format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True), 0.005, 0.01),
        ("soon", 0.005, 0.01),
        ("", 0.005, 0.01),
    ],
    ids=["seconds", "long", "later", "past", "nonsense", "nothing"],
)
def test_a_server_says_when_to_try_again(server: Server, asked: str, least: float, most: float) -> None:
    server.answers = [(503, {"Retry-After": asked} if asked else {})]
    sink = output(server)
    sink._closed = waits = Waits()
    sink.write(1, changes((1, "a", 1)))
    (seconds,) = waits.seconds
    assert least <= seconds <= most


def test_a_server_that_is_away(server: Server) -> None:
    sink = output(server)
    server.url = "http://127.0.0.1:9/x"
    with pytest.raises(TransientConnectorFailure, match=r"http://127\.0\.0\.1:9/x cannot be reached"):
        output(server).write(1, changes((1, "a", 1)))
    sink.close()


@pytest.mark.parametrize("status", [413, 422])
def test_what_a_server_does_not_take_of_a_request_is_left_out(server: Server, status: int) -> None:
    # The three, the first, the other two, the second, the third.
    server.answers = [(status, {}), (204, {}), (status, {}), (status, {})]
    left_out = LeftOutRows()
    sink = output(server, left_out=left_out)
    assert sink.write(1, changes((1, "a", 1), (2, "b", 1), (3, "c", 1)))[0] == 2
    assert [line["insert"]["id"] for line in server.lines()] == [1, 3]
    (error,), count = left_out.take()
    assert count == 1
    assert error.message.startswith('record {"insert":{"id":2,"name":"b"}}: http_output: http://127.0.0.1:')
    assert f"answered {status}" in error.message
    server.answers = [(status, {})]
    with pytest.raises(ConnectorFailure, match=f"answered {status} .*The output ends"):
        output(server, left_out=LeftOutRows((), OnError.STOP)).write(2, changes((4, "d", 1)))


def test_what_a_server_refuses_ends_the_output(server: Server) -> None:
    server.answers = [(400, {})]
    with pytest.raises(ConnectorFailure, match=r"/changes answered 400 Bad Request: because of this and that\. ") as failure:
        output(server).write(1, changes((1, "a", 1)))
    assert not isinstance(failure.value, TransientConnectorFailure)
    assert "hunter2" not in str(failure.value)
    with pytest.raises(ConnectorFailure, match="answered 401"):
        output(server, headers={}).write(1, changes((1, "a", 1)))
    assert server.requests == 2


def test_a_wait_ends_when_the_output_is_closed(server: Server) -> None:
    server.answers = [(503, {"Retry-After": "600"})]
    sink = output(server)
    threading.Timer(0.2, sink.close).start()
    with pytest.raises(TransientConnectorFailure, match="503"):
        sink.write(1, changes((1, "a", 1)))


def test_options() -> None:
    with pytest.raises(InvalidOptionError, match="must be a URL of an HTTP server"):
        validate(declared("/data/x"), PEOPLE)
    with pytest.raises(InvalidOptionError, match="'max_batch_records'"):
        validate(declared("http://host/x", max_batch_records=0), PEOPLE)
    validate(declared("${env:URL}"), PEOPLE)
