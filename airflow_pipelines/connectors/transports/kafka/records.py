"""Makes rows of records, whoever has fetched them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from airflow_pipelines.connectors.transports.kafka.headers import HeaderCondition, headers_of
from airflow_pipelines.connectors.transports.kafka.metadata import RecordMetadata
from airflow_pipelines.connectors.transports.kafka.record import Record
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.formats.messages import MessageParser, Messages

_MAX_KEPT_ERRORS: Final = 100


@dataclass(frozen=True, slots=True)
class Malformed:
    """What is wrong with a record.

    :param offset: its place in its partition
    :param message: says where it is and why it cannot be read
    """

    offset: int
    message: str


@dataclass(frozen=True, slots=True)
class Rows:
    """What records say.

    :param changes: the well-formed rows in order, None when there are none
    :param records: how many they are
    :param size_bytes: of the values that were read
    :param errors: the newest malformed records
    :param num_errors: how many there are
    """

    changes: TableChanges | None
    records: int
    size_bytes: int
    errors: tuple[Malformed, ...]
    num_errors: int


class RecordReader:
    """Reads the records of one topic."""

    def __init__(self, parser: MessageParser, wanted: HeaderCondition | None, metadata: RecordMetadata | None) -> None:
        """Make one.

        :param parser: reads values
        :param wanted: the condition on which a record is read; None for all
        :param metadata: gives what else rows have of records; None for nothing
        """
        self._parser = parser
        self._filter = wanted
        self._metadata = metadata

    def read(self, records: Sequence[Record]) -> Rows:
        """What records say.

        :param records: in the order of their partitions
        """
        wanted = records if self._filter is None else [record for record in records if self._filter.accepts(headers_of(record))]
        values = [record.value() for record in wanted]
        metadata = None if self._metadata is None else self._metadata.of(wanted)
        parsed = self._parser.parse_messages(Messages(values, lambda number: wanted[number].key(), metadata))
        return Rows(
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
