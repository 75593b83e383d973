"""A server that speaks Iceberg's REST protocol, as far as the connectors need it. It keeps its tables in SQLite."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table

from tests.connectors.transports.iceberg.tables import catalog

TOKEN = "s3cret-token"
_STATUS = {
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
}


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """Serve a catalog; its address."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def do_HEAD(self) -> None:
            self._answer("HEAD")

        def _answer(self, method: str) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else {}
            path = [unquote(part) for part in urlsplit(self.path).path.split("/") if part][1:]
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._send(401, {"error": {"message": "who are you?", "type": "NotAuthorizedException", "code": 401}})
                return
            try:
                with lock:
                    self._send(200, answer(catalog(folder), method, path, body))
            except tuple(_STATUS) as error:
                code = _STATUS[type(error)]
                self._send(code, {"error": {"message": str(error), "type": type(error).__name__, "code": code}})

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def answer(kept: Catalog, method: str, path: list[str], body: dict[str, Any]) -> dict[str, Any]:
    """What the server says to a request."""
    match (method, path):
        case ("GET", ["config"]):
            return {"defaults": {}, "overrides": {}}
        case ("POST", ["namespaces"]):
            kept.create_namespace(tuple(body["namespace"]))
            return {"namespace": body["namespace"], "properties": {}}
        case ("POST", ["namespaces", namespace, "tables"]):
            kept.load_namespace_properties(namespace)
            return _described(kept.create_table((namespace, body["name"]), Schema.model_validate(body["schema"])))
        case ("GET", ["namespaces", namespace, "tables", name]):
            return _described(kept.load_table((namespace, name)))
        case ("POST", ["namespaces", namespace, "tables", name]):
            request = CommitTableRequest.model_validate({**body, "identifier": {"namespace": [namespace], "name": name}})
            kept.commit_table(kept.load_table((namespace, name)), request.requirements, request.updates)
            return _described(kept.load_table((namespace, name)))
    raise NotImplementedError(f"{method} {path}")


def _described(table: Table) -> dict[str, Any]:
    metadata = json.loads(table.metadata.model_dump_json())
    return {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}
