"""One file of an HTTP server: read once, gone on with, and what goes wrong on the way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.connectors.base import ConnectorFailure, Lag
from airflow_pipelines.connectors.transports import http_file, url_input
from airflow_pipelines.connectors.transports.url_input import UrlInput, UrlInputOptions
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from tests.connectors.contexts import input_context
from tests.connectors.relations import col, relation

NUMBERS = relation(col("n", "INTEGER"))
LINES = "".join(f'{{"n": {number}}}\n' for number in range(30_000)).encode()


class Server:
    """Answers with ``content``; ``breaks_after`` bytes the first answers break off."""

    def __init__(self) -> None:
        self.content = LINES
        self.ranges = True
        self.says_size = False
        self.breaks_after: list[int] = []
        self.status: int | None = None
        self.asked: list[str | None] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        wanted = request.headers.get("Range")
        self.asked.append(wanted)
        if self.status is not None:
            return httpx.Response(self.status)
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted is not None and self.ranges else 0
        if begin and begin >= len(self.content):
            return httpx.Response(416)
        headers = {"Content-Length": str(len(self.content) - begin)} if self.says_size else {}
        return httpx.Response(206 if begin else 200, headers=headers, content=self._parts(self.content[begin:]))

    def _parts(self, content: bytes) -> Iterator[bytes]:
        limit = self.breaks_after.pop(0) if self.breaks_after else None
        for begin in range(0, len(content), 50_000):
            if limit is not None and begin >= limit:
                raise httpx.ReadError("the connection broke")
            yield content[begin : begin + 50_000]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(url_input, "new_client", lambda: httpx.Client(transport=httpx.MockTransport(made)))
    monkeypatch.setattr(http_file, "_RETRIES", replace(http_file._RETRIES, first_wait_s=0.001))
    return made


def source(position: dict[str, Any] | None = None, format_name: str = "json", **options: Any) -> UrlInput:
    given = UrlInputOptions.model_validate({"path": "http://user:hunter2@data.example/n.json?signature=s3cret", **options})
    made = UrlInput(given, input_context(NUMBERS, format_name, lambda: JsonParser(NUMBERS, JsonOptions(update_format="raw"))))
    made.open(position)
    return made


def numbers(made: UrlInput, most: int = 7000) -> list[int]:
    found: list[int] = []
    while True:
        chunk = made.read(most, 1)
        assert chunk is not None
        if chunk.changes is not None:
            found += chunk.changes.rows["n"].to_pylist()
        if chunk.end_of_input:
            return found


def test_a_file_is_read_to_its_end(server: Server) -> None:
    made = source()
    assert numbers(made) == list(range(30_000))
    assert server.asked == [None]
    made.close()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_restart_goes_on_where_it_was(server: Server, ranges: bool) -> None:
    server.ranges = ranges
    first = source().read(7000, 1)
    assert first is not None
    assert first.changes is not None
    read = first.changes.rows.num_rows
    assert numbers(source(first.position)) == list(range(read, 30_000))
    # The bytes before the place are to be those that were read.
    assert server.asked[1] == f"bytes={first.size_bytes - 256}-"
    # What was read to its end is not asked for again.
    made = source()
    numbers(made)
    done = made.read(1, 1)
    assert done is not None
    asked = len(server.asked)
    assert numbers(source(done.position)) == []
    assert len(server.asked) == asked


def test_reading_goes_on_after_a_broken_connection(server: Server) -> None:
    server.breaks_after = [100_000, 50_000]
    assert numbers(source()) == list(range(30_000))
    assert server.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_a_connection_that_breaks_again_and_again_ends_the_input(server: Server) -> None:
    server.breaks_after = [0] * 100
    with pytest.raises(ConnectorFailure, match=r"http://data\.example/n\.json cannot be read: the connection broke") as failure:
        numbers(source())
    assert "s3cret" not in str(failure.value)
    assert "hunter2" not in str(failure.value)
    assert len(server.asked) == 4


def test_a_paused_input_lets_its_connection_go(server: Server) -> None:
    made = source(pause_linger="1.5m")
    assert made.idle_limit_s == 90
    assert source(pause_timeout=5).idle_limit_s == 5
    assert source().idle_limit_s == 60
    first = made.read(7000, 1)
    made.rest()
    assert first is not None
    assert first.changes is not None
    assert [*first.changes.rows["n"].to_pylist(), *numbers(made)] == list(range(30_000))
    assert len(server.asked) == 2
    assert server.asked[1] is not None


@pytest.mark.parametrize("status", [403, 404, 500])
def test_what_a_server_refuses_ends_the_input(server: Server, status: int) -> None:
    server.status = status
    with pytest.raises(ConnectorFailure, match=rf"http://data\.example/n\.json answered {status} .*\. Check the URL"):
        numbers(source())


def test_a_file_that_became_shorter(server: Server) -> None:
    first = source().read(7000, 1)
    assert first is not None
    server.content, server.ranges = b'{"n": 1}\n', False
    with pytest.raises(ConnectorFailure, match=r"has 9 bytes, but .* were read before"):
        numbers(source(first.position))


@pytest.mark.parametrize("path", ["/data/n.json", "ftp://host/n.json", "https:///x"])
def test_what_is_no_url(path: str) -> None:
    with pytest.raises(ConnectorFailure, match="is no URL"):
        source(path=path)


def test_malformed_records_are_counted(server: Server) -> None:
    server.content = b'{"n": 1}\n{"n": "x"}\n{"n": 3}\n'
    chunk = source().read(10, 1)
    assert chunk is not None
    assert (chunk.records, chunk.num_parse_errors, chunk.parse_errors[0].index) == (2, 1, 1)


def test_parquet(server: Server) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": pa.array(range(10), pa.int32())}), sink, row_group_size=4)
    server.content = sink.getvalue()
    first = source(format_name="parquet").read(3, 1)
    assert first is not None
    assert numbers(source(first.position, "parquet")) == list(range(3, 10))


@pytest.mark.parametrize("ranges", [True, False])
def test_the_lag_is_what_has_not_come(server: Server, ranges: bool) -> None:
    server.ranges, server.says_size = ranges, True
    made = source()
    assert made.lag() is None
    first = made.read(100, 1)
    assert first is not None
    begun = made.lag()
    assert begun is not None
    assert begun.bytes is not None
    assert 0 < begun.bytes < len(LINES)
    made.close()
    again = source(first.position)
    numbers(again)
    assert again.lag() == Lag(bytes=0)
    server.says_size = False
    silent = source()
    silent.read(100, 1)
    assert silent.lag() is None
