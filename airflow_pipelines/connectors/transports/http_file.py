"""One file of an HTTP server, read to its end from the beginning or from any offset."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from typing import IO, Any

import httpx
from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure

_TRANSIENT = (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_EARLY, httpx.codes.TOO_MANY_REQUESTS)
_RETRIES = RetryPolicy(first_wait_s=0.25, longest_wait_s=2.0, attempts=4)
_TIMEOUT = httpx.Timeout(60.0, connect=15.0)


class HttpFile:
    """The bytes that a server sends. After a lost connection it connects again and resumes at the offset reached."""

    def __init__(self, client: httpx.Client, url: str, closed: threading.Event) -> None:
        """Make a file that is not requested yet.

        :param client: the client that sends requests
        :param url: the URL of the file
        :param closed: an event that is set when nobody waits for the file any more
        """
        self._client = client
        self._url = url
        self._closed = closed
        self._offset = 0
        self._size: int | None = None
        self._response: httpx.Response | None = None
        self._parts: Iterator[bytes] = iter(())
        self._part = b""

    def seek(self, offset: int) -> None:
        """Continue reading at a byte offset."""
        self.disconnect()
        self._offset = offset

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; none at the end.

        :raises ConnectorFailure: when the server refuses the file, or cannot be reached
        """
        retrying = _RETRIES.retrying(
            retry_if_exception_type(httpx.TransportError), sleep=self._sleep, before_sleep=lambda _: self.disconnect()
        )
        try:
            return retrying(self._next, size)
        except httpx.InvalidURL as error:
            raise ConnectorFailure(f"url_input: {self.shown} cannot be read: {error}") from error
        except httpx.HTTPError as error:
            raise TransientConnectorFailure(f"url_input: {self.shown} cannot be read: {error or type(error).__name__}") from error

    @property
    def left(self) -> int | None:
        """The number of bytes that have not come yet, or None as long as the server has not said how many there are."""
        return None if self._size is None else max(0, self._size - self._offset)

    def whole(self) -> IO[bytes]:
        """Download the whole file into a temporary file on this machine, which can be read in any order."""
        whole = tempfile.TemporaryFile()  # noqa: SIM115 - the reader closes it
        while data := self.read(1 << 20):
            whole.write(data)
        self.disconnect()
        whole.seek(0)
        return whole

    def close(self) -> None:
        """Close the connection."""
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; the next read opens another and resumes at this offset."""
        response, self._response = self._response, None
        self._parts, self._part = iter(()), b""
        if response is not None:
            response.close()

    def _sleep(self, seconds: float) -> None:
        self._closed.wait(seconds)

    def _next(self, size: int) -> bytes:
        if self._response is None:
            self._connect()
        while not self._part:
            part = next(self._parts, None)
            if part is None:
                return b""
            self._part = part
        data, self._part = self._part[:size], self._part[size:]
        self._offset += len(data)
        return data

    def _connect(self) -> None:
        # The offset of compressed bytes is unknown, and reading cannot resume in the middle of them.
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={self._offset}-"} if self._offset else {})}
        response = self._client.send(self._client.build_request("GET", self._url, headers=headers), stream=True)
        self._response = response
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and self._offset:
            # The server has nothing from there on.
            return
        if response.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
            self.disconnect()
            failure = (
                TransientConnectorFailure if response.status_code in _TRANSIENT or response.is_server_error else ConnectorFailure
            )
            raise failure(
                f"url_input: {self.shown} answered {response.status_code} {response.reason_phrase}. Check the URL, and whether "
                "the machine where the pipeline runs may read it."
            )
        self._parts = response.iter_bytes()
        self._size = _size_of(response, self._offset)
        if response.status_code == httpx.codes.OK:
            self._skip(self._offset)

    def _skip(self, size: int) -> None:
        """Skip the bytes that were read before, on a server that always sends the whole file."""
        left = size
        while left:
            part = next(self._parts, None)
            if part is None:
                raise ConnectorFailure(
                    f"url_input: {self.shown} has {size - left} bytes, but {size} were read before; what a URL gives must not "
                    "change while it is read."
                )
            self._part = part[left:]
            left -= min(left, len(part))

    @property
    def shown(self) -> str:
        """The URL without parts that may be secret, such as a signature or a password."""
        url = httpx.URL(self._url)
        return str(url.copy_with(query=None, fragment=None, username=None, password=None)) if url.host else self._url.split("?")[0]


def _size_of(response: httpx.Response, offset: int) -> int | None:
    """Return the size of a file in bytes, or None if the response does not say.

    :param response: the response with the file, or with the part of it that was requested
    :param offset: the offset at which that part begins
    """
    length = response.headers.get("Content-Length", "")
    if not length.isdigit() or response.headers.get("Content-Encoding", "identity") != "identity":
        return None
    return int(length) + (offset if response.status_code == httpx.codes.PARTIAL_CONTENT else 0)


def new_client() -> Any:
    """Return a client with timeouts that fit large files."""
    return httpx.Client(timeout=_TIMEOUT, follow_redirects=True)
