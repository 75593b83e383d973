"""Rows as messages with a key: a deleted row is a message with its key alone, so that a topic can forget it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.formats.messages import WrittenMessage
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.rows.zsets import WEIGHT

Encoded: TypeAlias = Callable[[pa.Table], Iterable[bytes | None]]
"""A function that returns bytes for each row of a table."""


class RowMessages:
    """An encoder of the newest row of each key."""

    def __init__(self, key: Encoded, value: Encoded) -> None:
        """Make the encoder of the changes of one view.

        :param key: the function that encodes the keys of rows
        :param value: the function that encodes the values of rows
        """
        self._key = key
        self._value = value

    def open(self, topic: str) -> None:
        """Do nothing: there is nothing to prepare."""

    def messages(self, changes: pa.Table) -> Iterator[WrittenMessage]:
        """Yield each change as a message; the two rows of an update as one.

        :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates
        """
        weights = python_values(changes.column(WEIGHT))
        updates = python_values(changes.column(UPDATE)) if UPDATE in changes.column_names else [False] * len(weights)
        rows = changes.drop_columns([name for name in (UPDATE, WEIGHT) if name in changes.column_names])
        for key, value, weight, is_part in zip(self._key(rows), self._value(rows), weights, updates, strict=True):
            if weight > 0:
                yield WrittenMessage(key, value)
            elif not is_part:
                yield WrittenMessage(key, None)


def column_bytes(name: str) -> Encoded:
    """Return a function that encodes the values of one column verbatim, texts in UTF-8, and NULL as None.

    :param name: the name of the column
    """

    def encode(rows: pa.Table) -> Sequence[bytes | None]:
        return [value.encode() if isinstance(value, str) else value for value in python_values(rows.column(name))]

    return encode
