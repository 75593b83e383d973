"""An input that reads a source of a stream program, in the process of the program that reads its sources."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.connectors.base import FatalConnectorFailure, InputChunk, Lag
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.reading.client import ReadingProcess, SourceClient
from airflow_pipelines.streams.worker.messages import SourceFeed

_POSITION = "position"


class StreamSourceOptions(BaseModel):
    """The options of the transport.

    :param uid: the uid of the source's operator
    :param kind: the kind of source, which determines its positions
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    uid: str = Field(min_length=1)
    kind: str = ""


class StreamSourceInput:
    """An input whose rows are messages of a source. Each message has some thousand elements, which are counted as records."""

    def __init__(self, options: StreamSourceOptions, schema: RelationSchema, process: Callable[[], ReadingProcess]) -> None:
        """Make an input that is not open yet.

        :param options: the options that say which source to read
        :param schema: the schema of the table that has its messages
        :param process: a function that returns the process that reads the source, and starts it if necessary
        """
        self._options = options
        self._table = schema.name
        self._schema = schema.arrow.append(pa.field(OP, pa.int8(), nullable=False))
        self._process = process
        self._client: SourceClient | None = None

    def open(self, position: Position | None) -> None:
        """Have the source opened at a position. Errors of opening appear with the first read.

        :raises FatalConnectorFailure: when the process cannot be started
        """
        try:
            self._client = self._process().source(self._options.uid)
        except StreamProgramError as error:
            raise FatalConnectorFailure(str(error)) from error
        self._client.open(None if position is None else _bytes(position))

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next messages.

        :raises FatalConnectorFailure: when the code of the source raises an error, or its process ends
        """
        if self._client is None:
            return None
        try:
            given = self._client.read(max_records, timeout_s)
        except StreamProgramError as error:
            raise FatalConnectorFailure(str(error)) from error
        if given is None:
            return None
        return InputChunk(
            changes=TableChanges(self._table, self._rows(given.feeds)) if given.feeds else None,
            records=given.records,
            size_bytes=sum(len(feed.payload) for feed in given.feeds),
            position={_POSITION: base64.b64encode(given.position).decode("ascii")},
            end_of_input=given.has_ended,
        )

    def lag(self) -> Lag | None:
        """Return the number of elements that were not read yet, as the source last reported it."""
        left = None if self._client is None else self._client.left
        return None if left is None else Lag(records=left)

    def commit(self, position: Position) -> None:
        """Tell the source which position is durable."""
        if self._client is not None:
            self._client.commit(_bytes(position))

    def close(self) -> None:
        """Have the source closed; a read in another thread then returns."""
        if self._client is not None:
            self._client.close()

    def _rows(self, feeds: tuple[SourceFeed, ...]) -> pa.Table:
        columns = [
            [feed.split for feed in feeds],
            [int(feed.kind) for feed in feeds],
            [feed.records for feed in feeds],
            [feed.payload for feed in feeds],
            [int(Op.INSERT)] * len(feeds),
        ]
        return pa.table([pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)], self._schema)


def _bytes(position: Position) -> bytes:
    return base64.b64decode(position[_POSITION])
