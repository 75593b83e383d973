"""An input that reports the end of a relation that a stream program reads; it ends with the connectors that fill it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.connectors.base import InputChunk
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.streams.worker.messages import FeedKind

_LOOK_S = 0.05
_ENDED: Position = {"ended": True}


class RelationEndOptions(BaseModel):
    """The options of the transport.

    :param uid: the uid of the operator that reads the relation
    :param ends_with: the names of the connectors
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    uid: str = Field(min_length=1)
    ends_with: tuple[str, ...]


class RelationEnd:
    """An input of one row, which says that no more rows follow.

    The row comes in a step after all rows of the relation, or in the same step.
    """

    def __init__(self, options: RelationEndOptions, schema: RelationSchema, have_ended: Callable[[], bool]) -> None:
        """Make an input that is not open yet.

        :param options: the relation and its connectors
        :param schema: the schema of the table that has the message
        :param have_ended: a function that returns True if steps have processed all that the connectors have given
        """
        self._options = options
        self._table = schema.name
        self._schema = schema.arrow.append(pa.field(OP, pa.int8(), nullable=False))
        self._have_ended = have_ended
        self._was_told = False
        self._closed = threading.Event()

    def open(self, position: Position | None) -> None:
        """Resume at a position. The end is reported only once."""
        self._was_told = position is not None

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the end as soon as it has come."""
        del max_records
        if self._was_told:
            return InputChunk(None, 0, 0, _ENDED, end_of_input=True)
        if not self._have_ended():
            self._closed.wait(min(timeout_s, _LOOK_S))
            return None
        row = {"split": [0], "kind": [int(FeedKind.ENDED)], "records": [0], "payload": [b""], OP: [int(Op.INSERT)]}
        rows = pa.table([pa.array(row[field.name], field.type) for field in self._schema], self._schema)
        return InputChunk(changes=TableChanges(self._table, rows), records=0, size_bytes=0, position=_ENDED, end_of_input=True)

    def close(self) -> None:
        """Wake up a waiting read."""
        self._closed.set()
