"""The server of the data plane: uvicorn in a thread, on a port chosen when it is bound."""

from __future__ import annotations

import socket
import threading
import time
from http.client import HTTPConnection, HTTPException

import uvicorn
from fastapi import FastAPI

from airflow_pipelines.serving.http_server import server_config


class CannotListenError(RuntimeError):
    """The error of an address to listen on that this machine does not have."""


class DataPlane:
    """An application served over HTTP from a thread of this process."""

    def __init__(self, app: FastAPI, address: str = "127.0.0.1") -> None:
        """Bind the socket to a free port.

        :param app: the application
        :param address: the address to listen on
        :raises CannotListenError: if this machine has no such address
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((address, 0))
        except OSError as error:
            self._socket.close()
            raise CannotListenError(f"The host cannot listen on {address}: {error.strerror}. Choose another address.") from error
        bound = self._socket.getsockname()[1]
        self._here = ({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address), bound)  # noqa: S104
        reachable = socket.getfqdn() if address in {"0.0.0.0", "::"} else address  # noqa: S104
        shown = f"[{reachable}]" if ":" in reachable else reachable
        self.url = f"http://{shown}:{bound}"
        config = server_config(app, timeout_graceful_shutdown=2, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, name="data plane", daemon=True)

    def start(self, timeout_s: float = 60.0) -> None:
        """Start to serve, and return once requests are answered, which takes a while on a busy machine."""
        self._thread.start()
        deadline = time.monotonic() + timeout_s
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError(f"The data plane did not start on {self.url}.")
            time.sleep(0.01)

    def answers(self, timeout_s: float = 2.0) -> bool:
        """Return True if a request over HTTP gets any answer, as a request of another process would."""
        connection = HTTPConnection(*self._here, timeout=timeout_s)
        try:
            connection.request("GET", "/health", headers={"Connection": "close"})
            return connection.getresponse().status > 0
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """Stop serving; open streams get two seconds to end."""
        self._server.should_exit = True
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)
        self._socket.close()
