"""Real HTTP for an app of a test."""

from __future__ import annotations

import socket
import threading
import time

import uvicorn
from fastapi import FastAPI


class serving:  # noqa: N801 - used like a function
    """An app behind real HTTP, served by uvicorn's own protocol unless there is a configuration."""

    def __init__(self, app: FastAPI, port: int = 0, config: uvicorn.Config | None = None) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self._server = uvicorn.Server(config or uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
