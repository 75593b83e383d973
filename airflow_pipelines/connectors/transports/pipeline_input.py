"""An input that follows a view or table of another pipeline: first its contents, then each change exactly once."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from typing import IO, Any, Final
from urllib.parse import quote

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from pydantic import BaseModel, ConfigDict, Field, field_validator

from airflow_pipelines.connectors.base import (
    ChunkInTransaction,
    ConnectorFailure,
    CountedError,
    InputChunk,
    Lag,
    TransientConnectorFailure,
)
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.connectors.followed_changes import AnswerHead
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from airflow_pipelines.rows.formats.parsed import Parsed, changes_schema, excerpt
from airflow_pipelines.rows.formats.tables import TableParser
from airflow_pipelines.rows.required_parts import missing_part
from airflow_pipelines.rows.zsets import WEIGHT

_NAME: Final = "pipeline_input"
_WAIT_MS: Final = 1000
"""The maximum time the other pipeline is asked to wait for changes; closing the input may have to wait as long."""
_TIMEOUT: Final = httpx.Timeout(300.0, connect=10.0)
_MEMORY_BYTES: Final = 16 << 20
"""The size above which a response is kept in a temporary file."""
_MAY_PASS: Final = frozenset({408, 425, 429})
_SHOWN: Final = 400
_LASTING: Final = frozenset({ErrorCode.INVALID_PARAM, ErrorCode.UNKNOWN_PIPELINE_NAME, ErrorCode.UNKNOWN_OUTPUT_STREAM})
"""The error codes that a retry does not cure."""
_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The end marker of an Arrow IPC stream."""
_MAX_KEPT_ERRORS: Final = 100


class PipelineInputOptions(BaseModel):
    """The options of the transport.

    :param url: the address of the service
    :param pipeline: the name of the other pipeline
    :param view: the name of its materialized view, or materialized table
    :param api_key: a key of the service that may read; empty where it asks for none
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(min_length=1)
    pipeline: str = Field(min_length=1)
    view: str = Field(min_length=1)
    api_key: str = Field(default="", repr=False)

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        # A URL with a reference is checked when the connector is opened.
        if not value.startswith(("http://", "https://", "${")):
            raise ValueError("it must be the address of a service, such as http://localhost:8080")
        return value


class _Answer:
    """A complete response, whose rows are handed out in chunks.

    :param file: the file that contains the response
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        try:
            _check_end(file)
            self._reader = pa.ipc.open_stream(file)
            self.head = AnswerHead.of(self._reader.schema)
        except (pa.ArrowInvalid, ValueError) as error:
            raise TransientConnectorFailure(f"{_NAME}: what the service sent cannot be read: {error}") from error
        self.given = 0
        self.chunks = 0
        self._batches = self._all_tables()
        self._next = next(self._batches, None)

    @property
    def has_more(self) -> bool:
        """True if there are rows that were not handed out yet."""
        return self._next is not None

    def take(self, most: int) -> list[pa.Table]:
        """Return up to ``most`` next rows, as tables whose rows are either all insertions or all deletions."""
        taken: list[pa.Table] = []
        left = most
        while left > 0 and self._next is not None:
            part = self._next.slice(0, left)
            rest = self._next.slice(part.num_rows)
            self._next = rest if rest.num_rows else next(self._batches, None)
            left -= part.num_rows
            taken += _split_runs(part)
        self.given += most - left
        self.chunks += 1
        return taken

    def close(self) -> None:
        """Close the file of the response."""
        self._file.close()

    def _all_tables(self) -> Iterator[pa.Table]:
        for batch in self._reader:
            if batch.num_rows:
                yield pa.Table.from_batches([batch])


class PipelineInput:
    """An input over the changes of a relation that a host reports.

    A position is the place, between two steps, that the host named.
    """

    def __init__(self, options: PipelineInputOptions, context: InputContext) -> None:
        """Make an input that is not open yet.

        :param options: the options that say what to follow
        :param context: the context of the connector, with the table that gets the rows
        """
        self._options = options
        self._context = context
        self._parser = TableParser(context.schema, context.now)
        self._client: httpx.Client | None = None
        self._after: str | None = None
        self._answer: _Answer | None = None
        self._lag: Lag | None = None
        self._closed = threading.Event()

    def open(self, position: Position | None) -> None:
        """Request the changes after a position, or the contents if there is no position.

        :raises ConnectorFailure: when the service refuses it; :class:`TransientConnectorFailure` when it may not later
        """
        self._client = new_client(self._options.api_key)
        self._after = None if position is None else position["after"]
        # Report errors now. A response that is already there is read first.
        self._answer = self._request_changes(wait_ms=0)
        if self._answer is not None:
            self._check_columns(self._answer.head)

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next rows or changes, or None if there was nothing new within ``timeout_s``, or within a second."""
        if self._answer is None:
            self._answer = self._request_changes(wait_ms=min(_WAIT_MS, int(max(timeout_s, 0.0) * 1000)))
        answer = self._answer
        if answer is None:
            return None
        if not answer.has_more and not answer.head.whole:
            self._answer = None
            self._lag = Lag(records=answer.head.behind)
            if answer.head.until == self._after:
                return None
            self._after = answer.head.until
            return InputChunk(None, 0, 0, {"after": self._after})
        return self._next_chunk(answer, max_records)

    def lag(self) -> Lag | None:
        """Return about how many changes of the other pipeline were not read yet when it was last asked."""
        return self._lag

    def close(self) -> None:
        """Close the client; a read in another thread returns within a second."""
        self._closed.set()
        if self._client is not None:
            self._client.close()

    def _next_chunk(self, answer: _Answer, max_records: int) -> InputChunk:
        head, is_first = answer.head, answer.chunks == 0
        tables = answer.take(max_records)
        parts = [self._parse(table, head) for table in tables]
        is_last = not answer.has_more
        self._lag = Lag(records=max(0, head.rows - answer.given) * (not is_last) + head.behind)
        if is_last:
            self._after = head.until
            self._answer = None
            answer.close()
        transaction = ChunkInTransaction.LAST if is_last else ChunkInTransaction.MORE
        errors = [error for part in parts for error in part.errors]
        return InputChunk(
            changes=self._changes(parts, truncates=is_first and head.whole),
            records=sum(part.records for part in parts),
            size_bytes=sum(table.nbytes for table in tables),
            # The position advances only with the last chunk of a response.
            position={"after": self._after},
            parse_errors=tuple(CountedError("parse", error.message, error.index) for error in errors[-_MAX_KEPT_ERRORS:]),
            num_parse_errors=sum(part.num_errors for part in parts),
            transaction=None if is_first and is_last else transaction,
        )

    def _changes(self, parts: list[Parsed], *, truncates: bool) -> TableChanges | None:
        rows = [part.changes.rows for part in parts if part.changes is not None]
        if not rows and not truncates:
            return None
        together = pa.concat_tables(rows or [changes_schema(self._context.schema).empty_table()])
        return TableChanges(self._context.schema.name, together, truncates=truncates)

    def _parse(self, table: pa.Table, head: AnswerHead) -> Parsed:
        """Return the rows of one run as changes of the table."""
        op = Op.INSERT if table[WEIGHT][0].as_py() > 0 else Op.DELETE
        rows = table.drop_columns([WEIGHT])
        columns = self._take_columns(rows, head)
        operations = pa.repeat(pa.scalar(int(op), pa.int8()), rows.num_rows)
        if columns is not None:
            made = pa.Table.from_arrays([*columns, operations], schema=changes_schema(self._context.schema))
            return Parsed(TableChanges(self._context.schema.name, made), rows.num_rows, (), 0, 0, 0)
        parsed = self._parser.parse_sized(rows, 0, rows.nbytes)
        if parsed.changes is None:
            return parsed
        good = parsed.changes.rows
        operations = pa.repeat(pa.scalar(int(op), pa.int8()), good.num_rows)
        place = good.schema.get_field_index(OP)
        changes = TableChanges(parsed.changes.table, good.set_column(place, good.schema.field(place), operations))
        return Parsed(changes, parsed.records, parsed.errors, parsed.num_errors, parsed.consumed, parsed.next_index)

    def _take_columns(self, rows: pa.Table, head: AnswerHead) -> list[pa.ChunkedArray] | None:
        """Return the columns of the table if they have exactly the types of the view, or None if values have to be converted.

        A value of the same type fits even if no text can express it, such as NaN.
        """
        columns = []
        for column, field in zip(self._context.schema.columns, self._context.schema.arrow, strict=True):
            if head.types.get(column.name) != str(column.type):
                return None
            values = rows[column.name]
            if values.type != field.type or (values.null_count and not column.type.nullable):
                return None
            if pat.is_nested(field.type) and missing_part(values, column.type) is not None:
                return None
            columns.append(values)
        return columns

    def _check_columns(self, head: AnswerHead) -> None:
        """Raise an error if the view lacks columns that every row of the table needs."""
        given = {name.lower() for name in head.types if self._parser.takes(name)}
        missing = [
            column.name
            for column in self._context.schema.columns
            if column.name.lower() not in given and not column.type.nullable and column.default is None
        ]
        if missing or not given:
            lacks = ", ".join(map(repr, missing)) or "any of the table's columns"
            raise ConnectorFailure(
                f"{_NAME}: {self._options.view} of pipeline {self._options.pipeline} has no column for {lacks}; its columns: "
                f"{', '.join(head.types)}. Add a DEFAULT, allow NULL, or follow a view that has it"
            )

    # Requests.

    def _request_changes(self, wait_ms: int) -> _Answer | None:
        """Request the next changes and return the response, or None if the input was closed."""
        if self._client is None or self._closed.is_set():
            return None
        options = self._options
        path = f"{options.url.rstrip('/')}/v0/pipelines/{quote(options.pipeline, safe='')}/changes/{quote(options.view, safe='')}"
        asked: dict[str, Any] = {"wait_ms": wait_ms} | ({} if self._after is None else {"after": self._after})
        file = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 - the answer closes it
        try:
            with self._client.stream("GET", path, params=asked) as response:
                if not response.is_success:
                    response.read()
                    raise self._make_refusal(response)
                for part in response.iter_bytes():
                    if self._closed.is_set():
                        return None
                    file.write(part)
        except httpx.InvalidURL as error:
            raise ConnectorFailure(f"{_NAME}: url is no URL: {error}") from error
        except (httpx.HTTPError, RuntimeError) as error:
            if self._closed.is_set():
                return None
            raise TransientConnectorFailure(
                f"{_NAME}: {self._shown} cannot be reached: {error or type(error).__name__}. It is tried again; check that the "
                "service runs and that 'url' is right"
            ) from error
        except OSError as error:
            raise TransientConnectorFailure(
                f"{_NAME}: what the service sends cannot be kept in a temporary file: {error}"
            ) from error
        return _Answer(file)

    def _make_refusal(self, response: httpx.Response) -> ConnectorFailure:
        said = _read_problem(response)
        message = said.get("message") or f"{excerpt(response.text, _SHOWN)} (is this the address of a service of this release?)"
        text = f"{_NAME}: {self._shown} answered {response.status_code}: {message}"
        if response.status_code in {401, 403}:
            return ConnectorFailure(f"{text}. Give a key of the service that may read, in the option 'api_key'")
        if said.get("error_code") in _LASTING:
            return ConnectorFailure(text)
        # All other errors of a service are about a pipeline that starts, ends or moves between two hosts.
        passes = "error_code" in said or response.is_server_error or response.status_code in _MAY_PASS
        return TransientConnectorFailure(text) if passes else ConnectorFailure(text)

    @property
    def _shown(self) -> str:
        """The URL of the service without parts that may be secret."""
        return str(httpx.URL(self._options.url).copy_with(query=None, fragment=None, username=None, password=None))


def _check_end(file: IO[bytes]) -> None:
    """Make sure that a stream is complete, and seek to its beginning.

    :raises ValueError: when it was cut off, which its reader would take for the end
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - len(_END)))
    if file.read() != _END:
        raise ValueError(f"its end is missing after {size} bytes")
    file.seek(0)


def _split_runs(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows in order, as tables whose weights all have the same sign."""
    gains = pc.greater(table[WEIGHT], 0).to_numpy()
    begin = 0
    for at in [*((gains[1:] != gains[:-1]).nonzero()[0] + 1), table.num_rows]:
        yield table.slice(begin, int(at) - begin)
        begin = int(at)


def _read_problem(response: httpx.Response) -> dict[str, Any]:
    """Return the error object of a response, or an empty one if the response is not from a service."""
    try:
        said = json.loads(response.text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def new_client(api_key: str) -> httpx.Client:
    """Return a client that sends requests to a service.

    :param api_key: the key of the service; empty for none
    """
    return httpx.Client(timeout=_TIMEOUT, headers={"Authorization": f"Bearer {api_key}"} if api_key else {})


PIPELINE_INPUT: Final = InputDefinition(name="pipeline_input", options=PipelineInputOptions, open=PipelineInput)
