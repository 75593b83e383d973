"""An input that reads one file from an HTTP server."""

from __future__ import annotations

import re
import threading
from typing import Any, Final

import httpx
from pydantic import BaseModel, ConfigDict, Field, field_validator

from airflow_pipelines.connectors.base import ConnectorFailure, CountedError, InputChunk, Lag
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.connectors.transports.files.group_readers import GROUPED, GroupReader
from airflow_pipelines.connectors.transports.files.readers import FileReader, TextReader
from airflow_pipelines.connectors.transports.http_file import HttpFile, new_client
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.formats.tables import TableParser
from airflow_pipelines.systems.files.compression import Compression, Decompressed, compression_of

_MAX_KEPT_ERRORS = 100
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LINGER_S = 60.0


class UrlInputOptions(BaseModel):
    """The options of the transport.

    :param path: the URL
    :param pause_timeout: the number of seconds for which a paused connector keeps its connection open (default 60)
    :param pause_linger: the same as a text, such as ``30s``
    :param compression: the compression of a text; ``auto`` looks at the end of the URL's path
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    pause_timeout: int | None = Field(default=None, ge=0)
    pause_linger: str | None = None
    compression: Compression = Compression.AUTO

    @field_validator("pause_linger")
    @classmethod
    def _duration(cls, value: str | None) -> str | None:
        if value is not None and not _DURATION.fullmatch(value.strip()):
            raise ValueError("a duration is a number and ms, s, m or h, such as 60s")
        return value

    @property
    def linger_s(self) -> float:
        """The number of seconds for which a paused connector keeps its connection open."""
        match = _DURATION.fullmatch((self.pause_linger or "").strip())
        if match is not None:
            return float(match[1]) * _SECONDS[match[2]]
        return _LINGER_S if self.pause_timeout is None else float(self.pause_timeout)


class UrlInput:
    """An input over the file of one URL. A position is the next byte (Parquet: row) and the next record."""

    def __init__(self, options: UrlInputOptions, context: InputContext) -> None:
        """Make an input that is not open yet.

        :param options: the options that say where to read
        :param context: the context of the connector
        """
        self._options = options
        self._context = context
        self._closed = threading.Event()
        self._client: httpx.Client | None = None
        self._file: HttpFile | None = None
        self._reader: FileReader | None = None
        self._place: dict[str, Any] = {}
        self._done = False

    @property
    def idle_limit_s(self) -> float:
        """The number of seconds for which the connection stays open while nothing is read."""
        return self._options.linger_s

    def open(self, position: Position | None) -> None:
        """Set the start to ``position``. The server is first contacted by the first read.

        :raises ConnectorFailure: when there is no such URL
        """
        try:
            url = httpx.URL(self._options.path)
        except httpx.InvalidURL as error:
            raise ConnectorFailure(f"url_input: path {self._options.path!r} is no URL: {error}") from error
        if url.scheme not in {"http", "https"} or not url.host:
            raise ConnectorFailure(
                f"url_input: path {self._options.path!r} is no URL of an HTTP server, such as https://host/file.json; "
                "use file_input for files"
            )
        self._client = new_client()
        if position is not None:
            self._place, self._done = dict(position.get("place", {})), bool(position.get("done", False))

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:  # noqa: ARG002 - the server decides how long it takes
        """Return the next records.

        :raises ConnectorFailure: when the server refuses the file, or cannot be reached
        """
        outcome = None
        if not self._done and self._client is not None:
            try:
                reader = self._reader = self._reader or self._new_reader(self._client)
                outcome = reader.read(max_records)
            except ConnectorFailure:
                # A retry begins at the place that was reached.
                self._let_go()
                raise
            self._place, self._done = reader.place(), outcome is None or reader.done
        return self._chunk(*(outcome or (None, 0)))

    def lag(self) -> Lag | None:
        """Return the number of bytes that have not come yet, or None if the server does not say how many there are."""
        left = None if self._file is None else self._file.left
        return None if left is None else Lag(bytes=left)

    def rest(self) -> None:
        """Close the connection for now; the next read opens another."""
        if self._file is not None:
            self._file.disconnect()

    def close(self) -> None:
        """Close the connection and the client."""
        self._closed.set()
        self.rest()
        if self._client is not None:
            self._client.close()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _new_reader(self, client: httpx.Client) -> FileReader:
        url = self._options.path
        file = self._file = HttpFile(client, url, self._closed)
        groups = GROUPED.get(self._context.format or "")
        if groups is not None:
            parser = TableParser(self._context.schema, self._context.now)
            return GroupReader(file.whole(), groups, parser, self._place)
        compression = compression_of(httpx.URL(url).path, self._options.compression)
        text = file if compression is Compression.NONE else Decompressed(file, compression)
        return TextReader(text, file.shown, self._context.new_parser(), self._place)

    def _chunk(self, parsed: Parsed | None, size: int) -> InputChunk:
        errors = () if parsed is None else parsed.errors[-_MAX_KEPT_ERRORS:]
        return InputChunk(
            changes=None if parsed is None else parsed.changes,
            records=0 if parsed is None else parsed.records,
            size_bytes=size,
            position={"place": self._place, "done": self._done},
            parse_errors=tuple(CountedError("parse", error.message, error.index) for error in errors),
            num_parse_errors=0 if parsed is None else parsed.num_errors,
            end_of_input=self._done,
        )


URL_INPUT: Final = InputDefinition(
    name="url_input",
    options=UrlInputOptions,
    open=UrlInput,
    formats=("avro", "csv", "json", "orc", "parquet", "raw"),
)
