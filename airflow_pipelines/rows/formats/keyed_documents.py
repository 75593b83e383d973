"""Changes as messages of a format that only writes documents: the key of each message is a JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from airflow_pipelines.rows.formats.definition import ChangeEncoder
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.formats.encode import encode_rows
from airflow_pipelines.rows.formats.messages import WrittenMessage
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.rows.zsets import WEIGHT


class KeyedDocuments:
    """An encoder of changes in the form of a format, under the columns of a key, or under the whole row."""

    def __init__(self, encoder: ChangeEncoder, key: Sequence[str]) -> None:
        """Make the encoder of the changes of one view.

        :param encoder: the encoder of the format
        :param key: the columns of the key; empty for all
        """
        self._encoder = encoder
        self._key = list(key)

    def open(self, topic: str) -> None:
        """Do nothing: there is nothing to prepare."""

    def messages(self, changes: pa.Table) -> Iterator[WrittenMessage]:
        """Yield each change as a message; the two rows of an update as one if the format has updates.

        :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates
        """
        values = list(self._encoder.messages(changes))
        rows = changes
        if UPDATE in changes.column_names and len(values) < changes.num_rows:
            # An update is one record, with the key of its new row.
            ends = zip(python_values(changes.column(UPDATE)), python_values(changes.column(WEIGHT)), strict=True)
            rows = changes.filter(pa.array([not (part and weight < 0) for part, weight in ends]))
        names = self._key or [name for name in changes.column_names if name not in (UPDATE, WEIGHT)]
        for key, value in zip(encode_rows(rows.select(names)), values, strict=True):
            yield WrittenMessage(key.encode(), value)
