"""A server that serves the files of a folder as S3 objects, for benchmarks.

It supports the requests of readers (GetObject with a range, HeadObject, ListObjectsV2) and checks no signatures. The kernel copies
the files to the network itself, so a benchmark measures reading from another machine, and not a server on the same processors.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_RANGE: Final = re.compile(r"bytes=(\d+)-(\d*)")
_PAGE: Final = 1000
_CHANGED: Final = "Thu, 01 Jan 2026 00:00:00 GMT"


@contextmanager
def object_server(folder: Path) -> Iterator[str]:
    """Run a server in a process of its own, and yield its address.

    :param folder: the folder; each folder in it is a bucket, and each file in that an object
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(folder, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join(10)


def _serve(folder: Path, address: Connection) -> None:
    handler = type("Handler", (_Handler,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address.send(f"http://127.0.0.1:{server.server_port}")
        server.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    """The handler of the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    folder: Path

    def do_HEAD(self) -> None:
        """Send the metadata of an object."""
        self._give(with_content=False)

    def do_GET(self) -> None:
        """Send an object, a part of one, or a page of a listing."""
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        if "list-type" in query:
            self._list(unquote(address.path).strip("/"), query)
        else:
            self._give(with_content=True)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _give(self, *, with_content: bool) -> None:
        path = self.folder / unquote(urlsplit(self.path).path).lstrip("/")
        if not path.is_file():
            self._answer(HTTPStatus.NOT_FOUND, b"<Error><Code>NoSuchKey</Code><Message>There is no such object.</Message></Error>")
            return
        size = path.stat().st_size
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        begin = int(wanted[1]) if wanted else 0
        end = min(int(wanted[2]) + 1 if wanted and wanted[2] else size, size)
        self.send_response(HTTPStatus.PARTIAL_CONTENT if wanted else HTTPStatus.OK)
        if wanted:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - begin))
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("ETag", f'"{size:x}"')
        self.send_header("Last-Modified", _CHANGED)
        self.end_headers()
        if with_content and end > begin:
            with path.open("rb") as file:
                self.connection.sendfile(file, begin, end - begin)

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix = query.get("prefix", "")
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        root = self.folder / bucket
        files = {file.relative_to(root).as_posix(): file for file in root.rglob("*") if file.is_file()}
        names = [name for name in sorted(files) if name.startswith(prefix) and name > after]
        page = names[:_PAGE]
        entries = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<Size>{files[name].stat().st_size}</Size></Contents>"
            for name in page
        )
        more = len(names) > len(page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        content = (
            f"<ListBucketResult><Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<MaxKeys>{_PAGE}</MaxKeys><IsTruncated>{str(more).lower()}</IsTruncated>{entries}{token}</ListBucketResult>"
        )
        self._answer(HTTPStatus.OK, content.encode())

    def _answer(self, status: HTTPStatus, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
