"""An output that posts a view's changes to a URL."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx
from pydantic import BaseModel, ConfigDict, Field, field_validator
from tenacity import RetryCallState, retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import Guarantee, OutputContext, OutputDefinition
from airflow_pipelines.connectors.left_out import RowProblem, records_that_fit
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.parsed import excerpt

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
"""The header by which a server recognises a request that it has already received."""
_MAY_PASS: Final = frozenset({408, 425, 429})
"""The statuses, besides server errors, of requests that may be accepted later."""
_OF_CONTENT: Final = frozenset({413, 422})
"""The statuses that are about the content of a request: too large, or something that the server cannot process."""
_RETRIES: Final = RetryPolicy(first_wait_s=0.25, longest_wait_s=10.0, attempts=4)
_SHOWN: Final = 300


class HttpOutputOptions(BaseModel):
    """The options of the transport.

    :param path: the URL that takes the changes
    :param headers: the headers that are sent with each request
    :param max_batch_records: the maximum number of changes in a request
    :param timeout_secs: the maximum time to wait for a response, in seconds
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    max_batch_records: int = Field(default=1000, ge=1, le=100_000)
    timeout_secs: float = Field(default=30.0, gt=0, le=600)

    @field_validator("path")
    @classmethod
    def _is_url(cls, value: str) -> str:
        # A URL with a reference is checked when the connector is opened.
        if not value.startswith(("http://", "https://", "${")):
            raise ValueError("it must be a URL of an HTTP server, such as https://host/changes")
        return value


class _ContentFailure(ConnectorFailure):
    """The error of a server that refuses the content of a request; it may still accept parts of it."""


class _BusyServer(TransientConnectorFailure):
    """The error of a server that may take the request later.

    :param retry_after_s: the seconds to wait that the server asks for, 0 if it does not say
    """

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class HttpOutput:
    """An output that posts each step's changes in batches and in order: each request waits until the one before was accepted.

    A retried request has the same key, by which the server can tell that it has already accepted it.
    """

    def __init__(self, options: HttpOutputOptions, context: OutputContext) -> None:
        """Make an output that is not open yet.

        :param options: the options that say where to post
        :param context: the context of the connector
        """
        self._options = options
        self._writer = context.writer
        self._encoder = context.new_encoder()
        self._left_out = context.left_out
        encoding = context.format_options
        self._is_array = isinstance(encoding, JsonOptions) and encoding.array
        is_json = isinstance(encoding, JsonOptions)
        self._kind = "text/csv" if not is_json else "application/json" if self._is_array else "application/x-ndjson"
        self._client: httpx.Client | None = None
        self._closed = threading.Event()

    def open(self, resumed: bool) -> None:  # noqa: ARG002 - the server knows what it has
        """Make a client. The server is first contacted with the first changes.

        :raises ConnectorFailure: when there can be no such URL
        """
        try:
            url = httpx.URL(self._options.path)
        except httpx.InvalidURL as error:
            raise ConnectorFailure(f"http_output: path is no URL: {error}") from error
        if not url.host:
            raise ConnectorFailure("http_output: path is no URL with a host, such as https://host/changes")
        self._client = new_client(self._options.timeout_secs)

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Post a step's changes.

        :returns: the number of changes and the number of bytes that were sent
        :raises ConnectorFailure: when the server does not take them; :class:`TransientConnectorFailure` when it may later
        """
        records = size = 0
        for number, batch in enumerate(self._batches(changes)):
            taken, bytes_of = self._send(batch, f"{self._writer}:{step}:{number}")
            records, size = records + taken, size + bytes_of
        return records, size

    def _send(self, batch: list[bytes], key: str) -> tuple[int, int]:
        """Post a batch of changes; if the server refuses their content, post each half of them."""
        body = self._body(batch)
        # The digest makes keys unique: after a crash a step may be replayed with other changes.
        digest = hashlib.sha256(body).hexdigest()[:16]
        try:
            self._post(body, f"{key}:{digest}")
        except _ContentFailure as failure:
            if len(batch) == 1:
                self._left_out.add_record(batch[0], RowProblem(str(failure)))
                return 0, 0
            middle = len(batch) // 2
            first, second = self._send(batch[:middle], key), self._send(batch[middle:], key)
            return first[0] + second[0], first[1] + second[1]
        return len(batch), len(body)

    def close(self) -> None:
        """Close the client."""
        self._closed.set()
        if self._client is not None:
            self._client.close()

    def _batches(self, changes: Changes) -> Iterator[list[bytes]]:
        messages = itertools.chain.from_iterable(
            records_that_fit(table, self._encoder.messages, self._left_out) for table in changes.tables()
        )
        while batch := list(itertools.islice(messages, self._options.max_batch_records)):
            yield batch

    def _body(self, batch: list[bytes]) -> bytes:
        lines = [message.rstrip(b"\n") for message in batch]
        return b"[" + b",".join(lines) + b"]" if self._is_array else b"".join(line + b"\n" for line in lines)

    def _post(self, body: bytes, key: str) -> None:
        """Post a request. Retry transient failures a few times, then leave them to a later retry of the whole step."""
        transient = retry_if_exception_type(TransientConnectorFailure)
        _RETRIES.retrying(transient, before_sleep=self._wait, sleep=lambda _: None)(self._try, body, key)

    def _wait(self, state: RetryCallState) -> None:
        """Wait before the next attempt; raise the error of the last one if the output is closed meanwhile."""
        if self._closed.wait(state.upcoming_sleep) and state.outcome is not None:
            state.outcome.result()

    def _try(self, body: bytes, key: str) -> None:
        """Send a request once."""
        if self._client is None:
            raise ConnectorFailure("http_output: it is not open")
        headers = {"Content-Type": self._kind, **self._options.headers, IDEMPOTENCY_KEY: key}
        try:
            answer = self._client.post(self._options.path, content=body, headers=headers)
        except httpx.HTTPError as error:
            raise TransientConnectorFailure(
                f"http_output: {self._shown} cannot be reached: {error or type(error).__name__}"
            ) from error
        if answer.is_success:
            return
        text = f"http_output: {self._shown} answered {answer.status_code} {answer.reason_phrase}: {excerpt(answer.text, _SHOWN)}"
        if answer.is_server_error or answer.status_code in _MAY_PASS:
            raise _BusyServer(text, _seconds(answer.headers.get("Retry-After", "")))
        if answer.status_code in _OF_CONTENT:
            raise _ContentFailure(text)
        raise ConnectorFailure(f"{text}. The changes were not taken; check the URL, the headers and the format.")

    @property
    def _shown(self) -> str:
        """The URL without parts that may be secret."""
        return str(httpx.URL(self._options.path).copy_with(query=None, fragment=None, username=None, password=None))


def _seconds(retry_after: str) -> float:
    """Return the number of seconds that a server asks to wait, given as such or as a moment; 0 if it does not say."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


def new_client(timeout_s: float) -> httpx.Client:
    """Return a client that posts.

    :param timeout_s: the maximum time to wait for a response, in seconds
    """
    return httpx.Client(timeout=timeout_s)


HTTP_OUTPUT: Final = OutputDefinition(
    name="http_output",
    options=HttpOutputOptions,
    open=HttpOutput,
    formats=("csv", "json"),
    guarantee=Guarantee.AT_LEAST_ONCE,
)
