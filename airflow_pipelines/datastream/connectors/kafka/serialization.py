"""Conversion of elements to records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.serialization import SerializationSchema

WRITING_HINT = "use SimpleStringSchema() or another schema that writes messages"


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record to write.

    :param topic: the topic
    :param value: the value's bytes; None for none
    :param key: the key's bytes; None for none
    :param partition: number of the partition; None to derive it from the key
    :param timestamp: milliseconds since 1970; None for the time of writing
    :param headers: names and values, in order

    >>> from airflow_pipelines.datastream.connectors import KafkaRecordSerializationSchema, ProducerRecord
    >>> class Sales(KafkaRecordSerializationSchema):
    ...     def serialize(self, element, timestamp):
    ...         shop, fruit = element
    ...         return ProducerRecord("sales", fruit.encode(), key=shop.encode(), timestamp=timestamp)
    >>> Sales().serialize(("shop 1", "pears"), 1_000).key
    b'shop 1'
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class KafkaTopicSelector(ABC):
    """A selector of the topic of an element.

    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> from airflow_pipelines.datastream.connectors import KafkaRecordSerializationSchema, KafkaTopicSelector
    >>> class ByLevel(KafkaTopicSelector):
    ...     def apply(self, data):
    ...         return "alerts" if data.startswith("error") else "log"
    >>> builder = KafkaRecordSerializationSchema.builder().set_topic_selector(ByLevel())
    >>> builder.set_value_serialization_schema(SimpleStringSchema()).build().serialize("error: disk is full", None).topic
    'alerts'
    """

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the topic of an element.

        :param data: the element
        :returns: the name of the topic
        """


class KafkaRecordSerializationSchema(ABC):
    """A schema that converts an element to a record. Use :meth:`builder` to make one, or derive a custom class."""

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Return a builder for a schema.

        :returns: the builder
        """
        return KafkaRecordSerializationSchemaBuilder()

    @abstractmethod
    def serialize(self, element: Any, timestamp: int | None) -> ProducerRecord | None:
        """Return the record of an element.

        :param element: the element
        :param timestamp: the event time in ms; None for an element without one
        :returns: the record; None to write nothing
        """


class KafkaRecordSerializationSchemaBuilder:
    """A builder of :class:`KafkaRecordSerializationSchema`.

    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> from airflow_pipelines.datastream.connectors import KafkaRecordSerializationSchema
    >>> builder = KafkaRecordSerializationSchema.builder().set_topic("fruits").set_key_serialization_schema(SimpleStringSchema())
    >>> record = builder.set_value_serialization_schema(SimpleStringSchema()).build().serialize("pears", 1_000)
    >>> record.topic, record.key, record.value, record.timestamp
    ('fruits', b'pears', b'pears', 1000)
    """

    def __init__(self) -> None:
        self._topic: str | None = None
        self._selector: Callable[[Any], str] | None = None
        self._key: SerializationSchema | None = None
        self._value: SerializationSchema | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Set the topic to write to.

        :param topic: the name of the topic
        :returns: this object
        """
        self._topic, self._selector = checks.text("topic", topic), None
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the selector of the topic of each element.

        :param topic_selector: an object derived from ``KafkaTopicSelector``, or a function that returns the topic of an element
        :returns: this object
        """
        if isinstance(topic_selector, KafkaTopicSelector):
            self._selector = topic_selector.apply
        else:
            self._selector = checks.function("topic_selector", topic_selector)
        self._topic = None
        return self

    def set_key_serialization_schema(self, key_serialization_schema: SerializationSchema) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema that converts the element to the key of a record. Records of a key are in one partition, in order.

        :param key_serialization_schema: the schema; no keys by default
        :returns: this object
        """
        schema = checks.instance("key_serialization_schema", key_serialization_schema, SerializationSchema, WRITING_HINT)
        self._key = schema
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema that converts the element to the value of a record.

        :param value_serialization_schema: the schema
        :returns: this object
        """
        schema = checks.instance("value_serialization_schema", value_serialization_schema, SerializationSchema, WRITING_HINT)
        self._value = schema
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """Make the schema.

        :returns: the schema
        :raises ValueError: if it has no topic, or no schema for values
        """
        if self._topic is None and self._selector is None:
            raise ValueError("The schema needs a topic: call set_topic('name') or set_topic_selector(...) before build()")
        if self._value is None:
            raise ValueError("The schema needs values: call set_value_serialization_schema(SimpleStringSchema()) before build()")
        return KeyAndValue(self._topic or "", self._selector, self._key, self._value)


class KeyAndValue(KafkaRecordSerializationSchema):
    """A schema that makes records with two schemas, for keys and values.

    :param topic: the topic
    :param selector: the function that selects the topic; None for ``topic``
    :param key: the schema of keys; None for no keys
    :param value: the schema of values
    :param has_timestamps: True if records get the timestamps of their elements
    """

    def __init__(
        self,
        topic: str,
        selector: Callable[[Any], str] | None,
        key: SerializationSchema | None,
        value: SerializationSchema,
        has_timestamps: bool = True,
    ) -> None:
        self.topic = topic
        self.selector = selector
        self.key = key
        self.value = value
        self.has_timestamps = has_timestamps

    def serialize(self, element: Any, timestamp: int | None) -> ProducerRecord | None:
        """See :meth:`KafkaRecordSerializationSchema.serialize`."""
        topic = self.topic if self.selector is None else self.selector(element)
        key = None if self.key is None else self.key.serialize(element)
        # A record cannot be older than 1970.
        time = timestamp if self.has_timestamps and timestamp is not None and timestamp >= 0 else None
        return ProducerRecord(topic, self.value.serialize(element), key, None, time)

    def __str__(self) -> str:
        return self.topic or "topics that are selected"
