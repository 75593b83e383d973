"""The metadata of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from airflow_pipelines.connectors.transports.kafka.options import KafkaInputOptions
from airflow_pipelines.rows.formats.defaults import IS_DELETE
from airflow_pipelines.systems.kafka.records import Record, headers_of, timestamp_of


def _timestamp(record: Record) -> int | None:
    milliseconds = timestamp_of(record)
    return None if milliseconds is None else milliseconds * 1000


def _key(record: Record) -> bytes | None:
    key = record.key()
    return key.encode() if isinstance(key, str) else key


def _headers(record: Record) -> dict[str, bytes | None]:
    """Return the last header of each name."""
    return dict(headers_of(record))


_FIELDS: Final[Mapping[str, tuple[str, pa.DataType, Callable[[Any], Any]]]] = {
    "include_topic": ("kafka_topic", pa.string(), lambda record: record.topic()),
    "include_partition": ("kafka_partition", pa.int32(), lambda record: record.partition()),
    "include_offset": ("kafka_offset", pa.int64(), lambda record: record.offset()),
    "include_timestamp": ("kafka_timestamp", pa.timestamp("us"), _timestamp),
    "include_key": ("kafka_key", pa.binary(), _key),
    "include_headers": ("kafka_headers", pa.map_(pa.string(), pa.binary()), _headers),
}
"""The metadata by option: its name, its type, and the function that returns it for a record."""


class RecordMetadata:
    """The metadata that the options of an input request."""

    def __init__(self, options: KafkaInputOptions) -> None:
        """Select the metadata by the options.

        :param options: the options of the input
        """
        self._fields = [field for option, field in _FIELDS.items() if getattr(options, option)]

    def of(self, records: Sequence[Record]) -> pa.Table:
        """Return the metadata of records, by name.

        :param records: the records
        """
        known = {name: pa.array([read(record) for record in records], kind) for name, kind, read in self._fields}
        # The parser fills this column: it finds out which records delete a row.
        return pa.table({**known, IS_DELETE: pa.nulls(len(records), pa.bool_())})
