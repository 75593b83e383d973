"""The HTTP server of the service and the hosts, with bounds on the size of requests and on the time to send them.

uvicorn bounds neither the time nor, with its default parser, the size of a request's head. Its h11 protocol bounds the size; this
module adds the time limits, and answers that say what was wrong.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final, Literal

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.serving.bounds import MAX_HEAD_BYTES, head_too_large

HEAD_PATIENCE_S: Final = 10.0
"""The number of seconds from opening a connection, or from a request's first byte, to the end of the request's head."""
MAX_MESSAGE_BYTES: Final = 8 * 2**20
"""The maximum size of a WebSocket message."""
LINGER_S: Final = 2.0
"""The number of seconds for which the rest of a body is still read after its request was answered.

Some clients read the answer only once they have sent the whole body.
"""


def server_config(app: Any, ws: Literal["none", "websockets-sansio"] = "none", **options: Any) -> uvicorn.Config:
    """Return the configuration with which uvicorn serves an application within the bounds of this module.

    :param app: the ASGI application
    :param ws: the WebSocket implementation
    :param options: further options of uvicorn
    """
    return uvicorn.Config(
        app,
        http=BoundedHttp,
        ws=ws,
        ws_max_size=MAX_MESSAGE_BYTES,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        log_level="warning",
        access_log=False,
        server_header=False,
        **options,
    )


class BoundedHttp(H11Protocol):
    """uvicorn's HTTP/1.1 over h11, with limits on the time to wait for clients."""

    _deadline: asyncio.TimerHandle | None = None
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn says so as well
        """Start the deadline of a new client's first request."""
        super().connection_made(transport)
        self._close_in(HEAD_PATIENCE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline of a client that has gone."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle received data and update the deadline."""
        if not self._refused:
            super().data_received(data)
            self._keep_deadline()

    def _keep_deadline(self) -> None:
        if self._refused:
            return
        if self.conn.their_state is h11.IDLE:
            if self._deadline is None:
                self._close_in(HEAD_PATIENCE_S)
        elif self.cycle is None or not self.cycle.response_complete:
            self._cancel()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the client over to the WebSocket protocol."""
        self._refused = True
        self._cancel()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Finish an answer; if the request has not arrived completely, wait only a short time for the rest."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._close_in(LINGER_S)

    def send_400_response(self, msg: str) -> None:
        """Answer data that is not an HTTP request, or a request whose head is too large."""
        self._refused = True
        error = sys.exception()
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            # An answer is on its way already.
            self.transport.close()
            return
        problem = _problem_of(error, msg)
        body = json.dumps(problem.body()).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        for event in (
            h11.Response(status_code=http_status(problem.code), headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        # Closing at once would discard the data that the client still sends, and the answer with it.
        self._close_in(LINGER_S)

    def _close_in(self, seconds: float) -> None:
        self._cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _problem_of(error: BaseException | None, otherwise: str) -> Problem:
    if isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431:
        return head_too_large()
    return Problem(ErrorCode.INVALID_REQUEST, f"This is no HTTP request: {error or otherwise}")
