"""The definition of a format: its name, its options, and its parsers and encoders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pydantic import BaseModel

from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.messages import MessageEncoder
from airflow_pipelines.rows.formats.parsed import Parser
from airflow_pipelines.rows.schema import RelationSchema


class ChangeEncoder(Protocol):
    """An encoder of changes, each on its own, for one stream."""

    def messages(self, changes: pa.Table) -> Iterator[bytes]:
        """Yield each change as bytes; the two rows of an update as one if the format has updates.

        :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates (``formats.delta.UPDATE``)
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatDefinition:
    """The definition of a format. Its module imports a library only when it makes a parser or an encoder.

    :param name: the name of the format in programs
    :param options: the model of its options, which rejects unknown ones (``extra="forbid"``)
    :param new_parser: the factory of its parser for a table; None if it cannot be read
    :param new_encoder: the factory of its encoder for a view; None if changes cannot be written one by one
    :param new_message_encoder: the factory of its message encoder for a view, given the columns of its index; None for a format
        whose messages are the output of ``new_encoder``, with JSON keys
    :param check_read: the check that rejects options with which it cannot be read
    :param check_written: the check that rejects options with which it cannot be written
    :param check_messages_written: the same check for messages with keys, given True if the output has an index; None: as for
        documents
    :param packages: the importable names of the libraries that it needs
    :param extra: the extra of this package that installs them
    """

    name: str
    options: type[BaseModel]
    new_parser: Callable[[RelationSchema, Any, Now], Parser] | None = None
    new_encoder: Callable[[RelationSchema, Any], ChangeEncoder] | None = None
    new_message_encoder: Callable[[RelationSchema, Any, Sequence[str]], MessageEncoder] | None = None
    check_read: Callable[[Any], None] | None = None
    check_written: Callable[[Any], None] | None = None
    check_messages_written: Callable[[Any, bool], None] | None = None
    packages: tuple[str, ...] = ()
    extra: str | None = None
