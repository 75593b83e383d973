"""What a format says of itself: its name, its options, and what reads and writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pydantic import BaseModel

from airflow_pipelines.connectors.formats.defaults import Now
from airflow_pipelines.connectors.formats.parsed import Parser
from airflow_pipelines.engine.schema import RelationSchema


class Encoder(Protocol):
    """Writes changes, each on its own. One is for one stream."""

    def messages(self, changes: pa.Table) -> Iterator[bytes]:
        """Each change as bytes; the two rows of an update as one where the format has updates.

        :param changes: rows with a weight of 1 or -1 as the last column, and maybe with updates (``formats.delta.UPDATE``)
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatDefinition:
    """A format. Its module imports a library that it needs only where it makes a parser or an encoder.

    :param name: what programs call it
    :param options: the model of its options, which refuses what it does not know (``extra="forbid"``)
    :param new_parser: makes what reads it for a table; None when it cannot be read
    :param new_encoder: makes what writes it for a view; None when changes cannot be written one by one
    :param check_read: refuses options with which it cannot be read
    :param check_written: refuses options with which it cannot be written
    """

    name: str
    options: type[BaseModel]
    new_parser: Callable[[RelationSchema, Any, Now], Parser] | None = None
    new_encoder: Callable[[RelationSchema, Any], Encoder] | None = None
    check_read: Callable[[Any], None] | None = None
    check_written: Callable[[Any], None] | None = None
