"""Records in the API of programs, and their conversion to elements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.serialization import DeserializationSchema
from airflow_pipelines.datastream.common.type_information import TypeInformation

SCHEMA_HINT = "use SimpleStringSchema() or another schema that reads messages"


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A record of a topic.

    :param topic: the topic
    :param partition: number of the partition
    :param offset: the offset in the partition
    :param timestamp: milliseconds since 1970; None for none
    :param key: the key's bytes; None for none
    :param value: the value's bytes; None for none
    :param headers: names and values, in order

    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> from airflow_pipelines.datastream.connectors import ConsumerRecord, KafkaRecordDeserializationSchema
    >>> record = ConsumerRecord("sales", partition=0, offset=5, timestamp=1_000, key=b"shop 1", value=b"pears")
    >>> KafkaRecordDeserializationSchema.value_only(SimpleStringSchema()).deserialize(record)
    'pears'
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class KafkaRecordDeserializationSchema(ABC):
    """A schema that converts a whole record to an element.

    >>> from airflow_pipelines.datastream.connectors import ConsumerRecord, KafkaRecordDeserializationSchema
    >>> class KeyAndOffset(KafkaRecordDeserializationSchema):
    ...     def deserialize(self, record):
    ...         return None if record.key is None else (record.key.decode(), record.offset)
    >>> KeyAndOffset().deserialize(ConsumerRecord("sales", partition=0, offset=5, timestamp=1_000, key=b"shop 1", value=b"pears"))
    ('shop 1', 5)
    """

    @staticmethod
    def value_only(value_deserialization_schema: DeserializationSchema) -> KafkaRecordDeserializationSchema:
        """Return a schema that uses only values. Records without a value are skipped.

        :param value_deserialization_schema: the schema that converts a value to an element
        :returns: the schema
        """
        return ValueOnly(
            checks.instance("value_deserialization_schema", value_deserialization_schema, DeserializationSchema, SCHEMA_HINT)
        )

    @abstractmethod
    def deserialize(self, record: ConsumerRecord) -> Any:
        """Return the element of a record.

        :param record: the record
        :returns: the element; None to skip the record
        """

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the elements.

        :returns: the type; None if it is unknown
        """
        return None


class ValueOnly(KafkaRecordDeserializationSchema):
    """A schema that converts the values of records to elements.

    :param schema: the schema of the values
    """

    def __init__(self, schema: DeserializationSchema) -> None:
        self.schema = schema

    def deserialize(self, record: ConsumerRecord) -> Any:
        """See :meth:`KafkaRecordDeserializationSchema.deserialize`."""
        return None if record.value is None else self.schema.deserialize(record.value)

    def get_produced_type(self) -> TypeInformation | None:
        """See :meth:`KafkaRecordDeserializationSchema.get_produced_type`."""
        return self.schema.get_produced_type()
