"""Ad-hoc queries over a WebSocket: the first message is the request, the next ones are the result, then the service closes."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.proxy import Proxy
from airflow_pipelines.serving import bounds

MAX_QUERY_BYTES: Final = 4 * 2**20
"""The maximum size of an ad-hoc request's text, in bytes."""
MAX_FRAME_BYTES: Final = 1 << 20
"""The maximum size of one message of a result, in bytes."""
COMPLETE: Final = 1000
"""The code with which the service closes after a complete result."""
FAILED: Final = 1011
"""The code with which the service closes after an error message."""
_BINARY: Final = frozenset({"arrow_ipc", "parquet"})
"""The formats whose results are binary."""


def add_query_socket(router: APIRouter, proxy: Proxy) -> None:
    """Add the WebSocket form of ``/query``.

    The client sends ``{"sql": ..., "format": ...}``. The result is sent in text messages, or in binary ones for a binary format; an
    error is sent as the body of the answer over HTTP.

    :param router: the router that gets the endpoint
    :param proxy: the proxy to the hosts
    """

    @router.websocket("/query")
    async def query(name: str, socket: WebSocket) -> None:
        await socket.accept()
        with suppress(WebSocketDisconnect):
            asked = await _receive_query(socket)
            if asked is None:
                return
            answer = asyncio.ensure_future(_send_answer(proxy, name, asked, socket))
            left = asyncio.ensure_future(_wait_for_disconnect(socket))
            try:
                await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
                if answer.done():
                    await socket.close(answer.result())
            finally:
                answer.cancel()
                left.cancel()
                await asyncio.gather(answer, left, return_exceptions=True)


async def _receive_query(socket: WebSocket) -> str | None:
    """Return the client's message, of either kind.

    :returns: the text; None if it has not arrived in the time for the body of a request, in which case the socket is closed, or if
        the client has gone
    """
    try:
        async with asyncio.timeout(bounds.BODY_PATIENCE_S):
            message = await socket.receive()
    except TimeoutError:
        problem = Problem(
            ErrorCode.REQUEST_TIMEOUT, f"No query came in {bounds.BODY_PATIENCE_S:g} s: send it when the connection is open"
        )
        await socket.send_text(json.dumps(problem.body()))
        await socket.close(FAILED)
        return None
    if message["type"] == "websocket.disconnect":
        return None
    text = message.get("text")
    return text if isinstance(text, str) else bytes(message["bytes"]).decode("utf-8", "replace")


async def _wait_for_disconnect(socket: WebSocket) -> None:
    """Wait until the client has gone. Other messages of the client are ignored."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _send_answer(proxy: Proxy, name: str, asked: str, socket: WebSocket) -> int:
    """Send the answer to a message, and return the code for closing."""
    try:
        sql, result_format = _request(asked)
        read_only = bool(getattr(socket.state, "read_only", False))
        took, body = await proxy.query(name, sql, result_format, read_only=read_only)
        if took and result_format in _BINARY:
            async for part in _frames(body):
                await socket.send_bytes(part)
        else:
            decoder = codecs.getincrementaldecoder("utf-8")()
            async for part in _frames(body):
                if text := decoder.decode(part):
                    await socket.send_text(text)
        return COMPLETE if took else FAILED
    except Problem as problem:
        await socket.send_text(json.dumps(problem.body()))
        return FAILED


async def _frames(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in body:
        for begin in range(0, len(chunk), MAX_FRAME_BYTES):
            yield chunk[begin : begin + MAX_FRAME_BYTES]


def _request(text: str) -> tuple[str, str]:
    """Return the SQL and the format in a message.

    :raises Problem: when the message has none
    """
    try:
        message = json.loads(text)
    except ValueError:
        message = None
    sql = message.get("sql") if isinstance(message, dict) else None
    result_format = message.get("format") or "text" if isinstance(message, dict) else None
    if not isinstance(sql, str) or not isinstance(result_format, str):
        raise Problem(ErrorCode.INVALID_REQUEST, 'The first message must be a JSON object: {"sql": "SELECT ...", "format": "json"}')
    errors.check_size("The query", sql, MAX_QUERY_BYTES, "send rows with ingress")
    return sql, result_format
