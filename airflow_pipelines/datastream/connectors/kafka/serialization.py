"""How elements become records."""

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
    """A record that is written.

    :param topic: the topic
    :param value: the value's bytes; None for none
    :param key: the key's bytes; None for none
    :param partition: number of the partition; None for the one that follows from the key
    :param timestamp: milliseconds since 1970; None for the time of writing
    :param headers: names and values, in order
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class KafkaTopicSelector(ABC):
    """Chooses the topic of an element."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic.

        :param data: the element
        :returns: name of its topic
        """


class KafkaRecordSerializationSchema(ABC):
    """Makes a record of an element. Made with :meth:`builder`, or a class of one's own."""

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Begin a schema.

        :returns: the builder
        """
        return KafkaRecordSerializationSchemaBuilder()

    @abstractmethod
    def serialize(self, element: Any, timestamp: int | None) -> ProducerRecord | None:
        """The record of an element.

        :param element: the element
        :param timestamp: its event time in ms; None for an element without
        :returns: the record; None to write nothing
        """


class KafkaRecordSerializationSchemaBuilder:
    """Makes a :class:`KafkaRecordSerializationSchema`."""

    def __init__(self) -> None:
        self._topic: str | None = None
        self._selector: Callable[[Any], str] | None = None
        self._key: SerializationSchema | None = None
        self._value: SerializationSchema | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Write to one topic.

        :param topic: its name
        :returns: this object
        """
        self._topic, self._selector = checks.text("topic", topic), None
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Choose a topic for each element.

        :param topic_selector: derived from ``KafkaTopicSelector``, or a function that gives the topic of an element
        :returns: this object
        """
        if isinstance(topic_selector, KafkaTopicSelector):
            self._selector = topic_selector.apply
        else:
            self._selector = checks.function("topic_selector", topic_selector)
        self._topic = None
        return self

    def set_key_serialization_schema(self, key_serialization_schema: SerializationSchema) -> KafkaRecordSerializationSchemaBuilder:
        """Set what makes the key of a record, also from the element. Records of a key are in one partition, in order.

        :param key_serialization_schema: the schema; no keys by default
        :returns: this object
        """
        schema = checks.instance("key_serialization_schema", key_serialization_schema, SerializationSchema, WRITING_HINT)
        self._key = schema
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set what makes the value of a record.

        :param value_serialization_schema: the schema
        :returns: this object
        """
        schema = checks.instance("value_serialization_schema", value_serialization_schema, SerializationSchema, WRITING_HINT)
        self._value = schema
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """Make the schema.

        :returns: the schema
        :raises ValueError: when it has no topic, or nothing for values
        """
        if self._topic is None and self._selector is None:
            raise ValueError("The schema needs a topic: call set_topic('name') or set_topic_selector(...) before build()")
        if self._value is None:
            raise ValueError("The schema needs values: call set_value_serialization_schema(SimpleStringSchema()) before build()")
        return KeyAndValue(self._topic or "", self._selector, self._key, self._value)


class KeyAndValue(KafkaRecordSerializationSchema):
    """Makes records with two schemas.

    :param topic: where they go
    :param selector: chooses where they go; None for ``topic``
    :param key: makes keys; None for none
    :param value: makes values
    :param has_timestamps: whether records have the timestamps of their elements
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
