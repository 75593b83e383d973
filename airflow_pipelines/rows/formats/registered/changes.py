"""Changes of a view as messages that begin with the number of their schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.messages import WrittenMessage
from airflow_pipelines.rows.formats.registered.options import RegisteredOptions
from airflow_pipelines.rows.python_values import python_rows, python_values
from airflow_pipelines.rows.zsets import WEIGHT

OPERATION: Final = "op"
"""The header with the operation of a message."""
_INSERT, _UPDATE, _DELETE = "insert", "update", "delete"
_LETTERS: Final = {_INSERT: "I", _UPDATE: "U", _DELETE: "D"}


class RowEncoding(Protocol):
    """An encoding of rows as one kind of record."""

    def encode(self, row: dict[str, Any]) -> bytes:
        """Encode a row as a record, with everything before it.

        :param row: Python values of Arrow by column
        :raises FormatFailure: when its values do not fit into the schema
        """


class Encodings(Protocol):
    """The encodings with which a format writes the rows of a view."""

    def open(self, topic: str) -> tuple[RowEncoding, RowEncoding | None]:
        """Register the schemas, if there is a registry.

        :param topic: the topic of the messages
        :returns: the encoding of values, and that of keys; None if messages have no keys
        :raises FormatFailure: when the registry refuses them; :class:`TransientFormatFailure` when it does not answer
        """


class RegisteredChanges:
    """An encoder of each change as a message; its key is the columns of the index."""

    def __init__(self, columns: Sequence[str], options: RegisteredOptions, encodings: Encodings) -> None:
        """Make the encoder of the changes of one view. It sends no request to the registry before it is opened.

        :param columns: the columns of the view
        :param options: the options of the format
        :param encodings: the encodings of rows
        """
        self._columns = list(columns)
        self._options = options
        self._is_jdbc = options.update_format == "confluent_jdbc"
        self._encodings = encodings
        self._value: RowEncoding | None = None
        self._key: RowEncoding | None = None

    def open(self, topic: str) -> None:
        """Register the schemas, if there is a registry.

        :param topic: the topic of the messages
        :raises FormatFailure: when the registry refuses them; :class:`TransientFormatFailure` when it does not answer
        """
        self._value, self._key = self._encodings.open(topic)

    def messages(self, changes: pa.Table) -> Iterator[WrittenMessage]:
        """Yield each change as a message; the two rows of an update as one.

        :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates
        :raises FormatFailure: when a row does not fit into the schema
        """
        if self._value is None:
            raise FormatFailure(f"format {self._options.format_name!r} was not opened")
        updates = python_values(changes.column(UPDATE)) if UPDATE in changes.column_names else [False] * changes.num_rows
        weights = python_values(changes.column(WEIGHT))
        rows = (dict(zip(self._columns, row, strict=True)) for row in python_rows(changes.select(self._columns)))
        for row, weight, is_part in zip(rows, weights, updates, strict=True):
            if is_part and weight < 0:
                # The message of the new row covers it.
                continue
            yield self._message(row, _UPDATE if is_part else _INSERT if weight > 0 else _DELETE, self._value)

    def _message(self, row: dict[str, Any], operation: str, value: RowEncoding) -> WrittenMessage:
        key = None if self._key is None else self._key.encode(row)
        if self._is_jdbc:
            return WrittenMessage(key, None if operation == _DELETE else value.encode(row))
        if self._options.cdc_field is not None:
            row[self._options.cdc_field] = _LETTERS[operation]
        return WrittenMessage(key, value.encode(row), ((OPERATION, operation.encode()),))
