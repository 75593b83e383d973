"""The text forms of changes, each on its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.formats.encode import encode_csv, encode_rows
from airflow_pipelines.rows.formats.flavors import FORMS
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.scalar_texts import scalars_of
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.rows.zsets import WEIGHT

UPDATE: Final = "__update"
"""The name of the first column of a table of changes: True for rows that are part of an update, the old one before the new one."""
_AROUND_ROWS: Final[Mapping[str, tuple[tuple[str, str], tuple[str, str]]]] = {
    "insert_delete": (('{"insert":', "}"), ('{"delete":', "}")),
    "weighted": (('{"weight":1,"data":', "}"), ('{"weight":-1,"data":', "}")),
    "debezium": (('{"payload":{"op":"c","before":null,"after":', "}}"), ('{"payload":{"op":"d","before":', ',"after":null}}')),
}
"""By update format, the texts before and after a row that is inserted, and one that is deleted."""
_UPDATES: Final[Mapping[str, str]] = {
    "insert_delete": '{{"update":{new}}}',
    "debezium": '{{"payload":{{"op":"u","before":{old},"after":{new}}}}}',
}
"""By update format, the form of an update, for those that have updates."""
_SNOWFLAKE: Final = "snowflake"
WRITTEN_UPDATE_FORMATS: Final = frozenset({*_AROUND_ROWS, _SNOWFLAKE})
"""The update formats in which changes can be written."""


class JsonChanges:
    """An encoder of changes as JSON for one stream, because Snowflake's changes are numbered within their stream."""

    def __init__(self, options: JsonOptions) -> None:
        """Make the encoder of a new stream.

        :param options: the options, with an update format of :data:`WRITTEN_UPDATE_FORMATS`
        """
        self.is_numbered = options.update_format == _SNOWFLAKE
        self._update_format = options.update_format
        self._scalars = scalars_of(FORMS[options.written_flavor])
        self._stream = secrets.randbits(63)
        self._numbers = count(1)

    def texts(self, changes: pa.Table) -> Iterator[str]:
        """Return each row as a change, such as ``{"insert": row}`` or ``{"delete": row}``; the rows of an update as one.

        :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates
        """
        weights = python_values(changes.column(WEIGHT))
        rows = encode_rows(changes.drop_columns([UPDATE, WEIGHT] if _has_updates(changes) else [WEIGHT]), self._scalars)
        if self.is_numbered:
            return self._number_rows(rows, weights)
        if _has_updates(changes) and self._update_format in _UPDATES:
            return self._updates(rows, weights, python_values(changes.column(UPDATE)))
        return self._changes(rows, weights)

    def _changes(self, rows: Iterator[str], weights: list[int]) -> Iterator[str]:
        comes, goes = _AROUND_ROWS[self._update_format]
        for weight, row in zip(weights, rows, strict=True):
            before, after = comes if weight > 0 else goes
            yield f"{before}{row}{after}"

    def _updates(self, rows: Iterator[str], weights: list[int], of_update: list[bool]) -> Iterator[str]:
        comes, goes = _AROUND_ROWS[self._update_format]
        update, old = _UPDATES[self._update_format], ""
        for weight, row, part in zip(weights, rows, of_update, strict=True):
            before, after = comes if weight > 0 else goes
            if not part:
                yield f"{before}{row}{after}"
            elif weight < 0:
                old = row
            else:
                yield update.format(old=old, new=row)

    def _number_rows(self, rows: Iterator[str], weights: list[int]) -> Iterator[str]:
        for weight, row, number in zip(weights, rows, self._numbers, strict=False):
            action = "insert" if weight > 0 else "delete"
            yield f'{row[:-1]},"__action":"{action}","__stream_id":{self._stream},"__seq_number":{number}}}'


def csv_changes(changes: pa.Table, delimiter: str = ",", quote: str = '"') -> Iterator[str]:
    """Return each row as a CSV record whose last field is 1 or -1.

    :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates
    :param delimiter: the delimiter of fields
    :param quote: the quote of fields that need one
    :returns: one record, with its line end, for each row
    """
    return encode_csv(changes.drop_columns([UPDATE]) if _has_updates(changes) else changes, delimiter, quote)


def with_operations(changes: pa.Table) -> tuple[pa.Table, pa.ChunkedArray]:
    """Find the operation of each change: ``i``, ``d``, or ``u`` for the new row of an update, whose old one is left out.

    :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates
    :returns: the changes without the old rows of updates, and their operations
    """
    comes = pc.greater(changes.column(WEIGHT), 0)
    operations = pc.if_else(comes, "i", "d")
    if not _has_updates(changes):
        return changes, operations
    kept = pc.or_(pc.invert(changes.column(UPDATE)), comes)
    return changes.filter(kept), pc.if_else(changes.column(UPDATE), "u", operations).filter(kept)


def _has_updates(changes: pa.Table) -> bool:
    return UPDATE in changes.column_names
