"""An S3 server on loopback, in a process of its own. Its objects survive a stop, and are lost when the process ends.

``python -m tools.object_store PORT`` is that process: it reads ``start`` and ``stop`` as lines, and answers each with a line.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

KEY: Final = "pipelines"
REGION: Final = "us-east-1"
_END_S: Final = 20.0


class ObjectStore:
    """The server, which is started and stopped here.

    :param log: the file for the errors of the process
    """

    def __init__(self, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tools.object_store", str(port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=Path(__file__).parent.parent,
                text=True,
            )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self._ask("start")

    def stop(self) -> None:
        """Stop the server; connections to it are lost."""
        self._ask("stop")

    def close(self) -> None:
        """Kill the process, with all its objects."""
        self._process.kill()
        self._process.wait(_END_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def client(self) -> Any:
        """Return a client of the server."""
        import boto3

        return boto3.client("s3", endpoint_url=self.url, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=KEY)

    def _ask(self, command: str) -> None:
        asked, answers = self._process.stdin, self._process.stdout
        if asked is None or answers is None:
            raise RuntimeError("the object store has no pipes")
        asked.write(f"{command}\n")
        asked.flush()
        if answers.readline().strip() != command:
            raise RuntimeError(f"the object store did not {command}: it has ended with {self._process.poll()}")


class _Listener:
    """A listener that serves the objects of this process on a port until it is closed."""

    def __init__(self, port: int) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self._connections: list[socket.socket] = []
        self._server = make_server("127.0.0.1", port, DomainDispatcherApplication(create_backend_app), threaded=True)
        accept = self._server.get_request

        def get_request() -> tuple[socket.socket, Any]:
            connection, address = accept()
            self._connections = [each for each in self._connections if each.fileno() >= 0] + [connection]
            return connection, address

        self._server.get_request = get_request  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(_END_S)
        for connection in self._connections:
            # Clients reuse connections, on which requests would still be served.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Serve by the commands on standard input, until its end."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # The parent may have set this for a server that checks keys; this one accepts any.
    os.environ.pop("INITIAL_NO_AUTH_ACTION_COUNT", None)
    os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = KEY
    listener: _Listener | None = None
    for line in sys.stdin:
        command = line.strip()
        if command == "start" and listener is None:
            listener = _Listener(int(sys.argv[1]))
        elif command == "stop" and listener is not None:
            listener.close()
            listener = None
        sys.stdout.write(f"{command}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
