"""How the service and the hosts speak HTTP: with bounds on what a client may send, and on how long it may take to send it.

uvicorn bounds neither the time nor, with its default parser, the size of a request's head. Its h11 protocol bounds the size; added
here are the time, and answers that say what was wrong.
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
"""How long a client may take from opening a connection, or from a request's first byte, to the end of its head."""
MAX_MESSAGE_BYTES: Final = 8 * 2**20
"""The most that a message of a WebSocket may have."""
LINGER_S: Final = 2.0
"""How long the rest of a body is taken from a client whose request has been answered: it may read the answer only then."""


def server_config(app: Any, ws: Literal["none", "websockets-sansio"] = "none", **options: Any) -> uvicorn.Config:
    """How to serve an application with the bounds of this module.

    :param app: the ASGI application
    :param ws: what speaks WebSocket with clients that ask for it
    :param options: those of uvicorn
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
    """uvicorn's HTTP/1.1 over h11, for clients that are not to be waited for without end."""

    _deadline: asyncio.TimerHandle | None = None
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn says so as well
        """A client has come, and has to ask something."""
        super().connection_made(transport)
        self._close_in(HEAD_PATIENCE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something of a request has come."""
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
        """The client goes on with WebSocket, for which there is another protocol."""
        self._refused = True
        self._cancel()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """An answer has been sent. When the request is not there yet, it is no longer of interest."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._close_in(LINGER_S)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, or one whose head is too large."""
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
        # At once would throw away what the client still sends, and with it the answer.
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
