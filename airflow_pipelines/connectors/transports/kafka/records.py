"""A reader that turns records into rows, whoever has fetched them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from airflow_pipelines.connectors.transports.kafka.headers import HeaderCondition
from airflow_pipelines.connectors.transports.kafka.metadata import RecordMetadata
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.formats.messages import MessageParser, Messages
from airflow_pipelines.systems.kafka.records import Record, headers_of

_MAX_KEPT_ERRORS: Final = 100


@dataclass(frozen=True, slots=True)
class Malformed:
    """The error of a malformed record.

    :param offset: the offset of the record in its partition
    :param message: a text that says where the record is and why it cannot be read
    """

    offset: int
    message: str


@dataclass(frozen=True, slots=True)
class RecordRows:
    """The rows of records.

    :param changes: the well-formed rows in order; None when there are none
    :param records: the number of well-formed rows
    :param size_bytes: the size of the values that were read
    :param errors: the newest malformed records
    :param num_errors: the number of malformed records
    """

    changes: TableChanges | None
    records: int
    size_bytes: int
    errors: tuple[Malformed, ...]
    num_errors: int


class RecordReader:
    """A reader of the records of one topic."""

    def __init__(self, parser: MessageParser, wanted: HeaderCondition | None, metadata: RecordMetadata | None) -> None:
        """Make a reader.

        :param parser: the parser of values
        :param wanted: the condition on which a record is read; None for all
        :param metadata: the metadata of records that rows have; None for none
        """
        self._parser = parser
        self._filter = wanted
        self._metadata = metadata

    def read(self, records: Sequence[Record]) -> RecordRows:
        """Return the rows of records.

        :param records: the records in the order of their partitions
        """
        wanted = records if self._filter is None else [record for record in records if self._filter.accepts(headers_of(record))]
        values = [record.value() for record in wanted]
        metadata = None if self._metadata is None else self._metadata.of(wanted)
        parsed = self._parser.parse_messages(Messages(values, lambda number: wanted[number].key(), metadata))
        return RecordRows(
            changes=parsed.changes,
            records=parsed.records,
            size_bytes=sum(map(len, filter(None, values))),
            errors=tuple(
                Malformed(wanted[error.index].offset() or 0, f"{_place(wanted[error.index])}: {error.message}")
                for error in parsed.errors[-_MAX_KEPT_ERRORS:]
            ),
            num_errors=parsed.num_errors,
        )


def _place(record: Record) -> str:
    return f"topic {record.topic()}, partition {record.partition()}, offset {record.offset()}"
