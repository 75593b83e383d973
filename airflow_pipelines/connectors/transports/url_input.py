"""Reads one file from an HTTP server."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, Final

import httpx
from pydantic import BaseModel, ConfigDict, Field, field_validator

from airflow_pipelines.connectors.base import ConnectorError, ConnectorFailure, InputChunk
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.connectors.formats.parquet import ParquetParser
from airflow_pipelines.connectors.formats.parsed import Parsed, Parser
from airflow_pipelines.connectors.transports.http_file import HttpFiles, new_client
from airflow_pipelines.connectors.transports.readers import BLOCK_BYTES, FileReader, ParquetReader, TextReader
from airflow_pipelines.engine.storage.connector_state import Position

_MAX_KEPT_ERRORS = 100
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LINGER_S = 60.0


class UrlInputOptions(BaseModel):
    """Options of the transport.

    :param path: the URL
    :param pause_timeout: for how many seconds a paused connector keeps its connection open (default 60)
    :param pause_linger: the same as a text, such as ``30s``
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    pause_timeout: int | None = Field(default=None, ge=0)
    pause_linger: str | None = None

    @field_validator("pause_linger")
    @classmethod
    def _duration(cls, value: str | None) -> str | None:
        if value is not None and not _DURATION.fullmatch(value.strip()):
            raise ValueError("a duration is a number and ms, s, m or h, such as 60s")
        return value

    @property
    def linger_s(self) -> float:
        """For how long a paused connector keeps its connection open."""
        found = _DURATION.fullmatch((self.pause_linger or "").strip())
        if found is not None:
            return float(found[1]) * _SECONDS[found[2]]
        return _LINGER_S if self.pause_timeout is None else float(self.pause_timeout)


class UrlInput:
    """An input over what one URL gives. A position is the byte (Parquet: row) and the record that come next."""

    def __init__(self, options: UrlInputOptions, new_parser: Callable[[], Parser]) -> None:
        """Make an input that is not open yet.

        :param options: where to read
        :param new_parser: makes what reads its format
        """
        self._options = options
        self._new_parser = new_parser
        self._closed = threading.Event()
        self._client: httpx.Client | None = None
        self._files: HttpFiles | None = None
        self._reader: FileReader | None = None
        self._place: dict[str, Any] = {}
        self._done = False

    @property
    def idle_limit_s(self) -> float:
        """For how long the connection stays open while nothing is read."""
        return self._options.linger_s

    def open(self, position: Position | None) -> None:
        """Go to ``position``; the server is asked with the first read.

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
        if position is not None:
            self._place, self._done = dict(position.get("place", {})), bool(position.get("done", False))

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:  # noqa: ARG002 - the server decides how long it takes
        """The next records.

        :raises ConnectorFailure: when the server refuses the file, or cannot be reached
        """
        outcome = None
        if not self._done:
            reader = self._reader = self._reader or self._new_reader()
            outcome = reader.read(max_records)
            self._place, self._done = reader.place(), outcome is None or reader.done
        return self._chunk(*(outcome or (None, 0)))

    def rest(self) -> None:
        """Let go of the connection for now; the next read makes another."""
        if self._files is not None and self._files.opened is not None:
            self._files.opened.disconnect()

    def close(self) -> None:
        """Let go of the server."""
        self._closed.set()
        self.rest()
        if self._client is not None:
            self._client.close()

    def _new_reader(self) -> FileReader:
        self._client = new_client()
        self._files = HttpFiles(self._client, self._closed)
        parser, url = self._new_parser(), self._options.path
        if isinstance(parser, ParquetParser):
            return ParquetReader(self._files, url, parser, self._place, follow=False)
        return TextReader(self._files, url, parser, self._place, follow=False, block_bytes=BLOCK_BYTES)

    def _chunk(self, parsed: Parsed | None, size: int) -> InputChunk:
        errors = () if parsed is None else parsed.errors[-_MAX_KEPT_ERRORS:]
        return InputChunk(
            changes=None if parsed is None else parsed.changes,
            records=0 if parsed is None else parsed.records,
            size_bytes=size,
            position={"place": self._place, "done": self._done},
            parse_errors=tuple(ConnectorError("parse", error.message, error.index) for error in errors),
            num_parse_errors=0 if parsed is None else parsed.num_errors,
            end_of_input=self._done,
        )


def _open(options: UrlInputOptions, context: InputContext) -> UrlInput:
    return UrlInput(options, context.new_parser)


URL_INPUT: Final = InputDefinition(name="url_input", options=UrlInputOptions, open=_open, formats=("csv", "json", "parquet", "raw"))
