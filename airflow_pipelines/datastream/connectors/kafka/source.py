"""A source that reads topics of Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.serialization import DeserializationSchema
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.connectors.base import Source
from airflow_pipelines.datastream.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from airflow_pipelines.datastream.connectors.kafka.properties import (
    COMMIT,
    DISCOVERY,
    GROUP,
    OF_SOURCES,
    PREFIX,
    RESET,
    SERVERS,
    checked_properties,
    references_of,
)
from airflow_pipelines.datastream.connectors.kafka.reading_settings import ReadingSettings, TopicChoice
from airflow_pipelines.datastream.connectors.kafka.records import SCHEMA_HINT, KafkaRecordDeserializationSchema, ValueOnly
from airflow_pipelines.datastream.connectors.kafka.shared_client import SharedClient
from airflow_pipelines.streams.sources import SourceReader

_LOOK_S = 10.0
_OFFSETS_HINT = "use KafkaOffsetsInitializer.earliest() or another"


@dataclass(frozen=True)
class KafkaSource(Source):
    """A source that reads topics of Kafka. Use :meth:`builder` to make one.

    Each partition is a split with its own position and event time. Offsets are part of checkpoints, from which a program resumes.
    With a group, they are also committed to it after each checkpoint, for others to see.

    :param settings: the settings for reading
    :param is_bounded: True if the program ends where reading ends
    :param look_interval: seconds between two polls for new partitions; None for none
    """

    settings: ReadingSettings
    is_bounded: bool = False
    look_interval: float | None = None
    client: SharedClient = field(default_factory=SharedClient, repr=False, compare=False)

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Return a builder for a source.

        :returns: the builder
        """
        return KafkaSourceBuilder()

    @property
    def position_kind(self) -> str:
        """The kind of its positions, which the older class shares, so that each can resume from positions of the other."""
        return "KafkaSource"

    @property
    def places(self) -> Sequence[str]:
        """The topics of the source at each of its bootstrap brokers, whose order does not matter.

        One broker in common means the same cluster. Without polls for new partitions, a topic that is added is found at the
        beginning only.
        """
        choice = self.settings.choice.in_order()
        topics = tuple(f"topic {topic}" for topic in choice.topics) if choice.topics else (str(choice),)
        if self.look_interval is None:
            topics = (", ".join(topics),)
        servers = [server.strip() for server in self.settings.servers.split(",")]
        return tuple(f"{topic} at {server}" for topic in topics for server in servers)

    def references(self) -> Sequence[str]:
        """Return the references in the properties.

        :returns: references such as ``${secret:NAME}``
        """
        return references_of(self.settings.properties)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the elements.

        :returns: the type that the schema produces
        """
        return self.settings.deserializer.get_produced_type()

    def splits(self, parallelism: int) -> Sequence[Any]:
        """Return the partitions, with the offsets where each begins and ends.

        :param parallelism: without effect
        :returns: topic, number, first offset, and the offset behind the last one or None for each
        :raises StreamProgramError: if they cannot be determined
        """
        with self.client.borrow(self.settings) as client:
            return client.first_splits()

    def more_splits(self, known: Sequence[Any]) -> Sequence[Any]:
        """Return partitions that were made since, to be read from their beginnings.

        :param known: the known partitions, from :meth:`splits`
        :returns: new partitions in the same form
        """
        with self.client.borrow(self.settings) as client:
            return client.new_splits(known)

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Return a reader of a partition.

        :param split: a partition from :meth:`splits`
        :param position: the offset of the next record; None for the first
        :returns: the reader
        """
        return self.client.reader(self.settings, split, position)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.choice})"


class KafkaSourceBuilder:
    """A builder of :class:`KafkaSource`.

    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> from airflow_pipelines.datastream.connectors import KafkaOffsetsInitializer, KafkaSource
    >>> builder = KafkaSource.builder().set_bootstrap_servers("kafka:9092").set_topics("sales", "returns").set_group_id("shop")
    >>> builder = builder.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.latest())
    >>> source = builder.build()
    >>> source.is_bounded, source.get_produced_type()
    (True, Types.STRING())
    """

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._choice: TopicChoice | None = None
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._is_bounded = False
        self._deserializer: KafkaRecordDeserializationSchema | None = None

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Set the bootstrap brokers.

        :param bootstrap_servers: ``host:port``, separated by commas; may contain references
        :returns: this object
        """
        return self.set_property(SERVERS, checks.text("bootstrap_servers", bootstrap_servers))

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Set the group to which offsets are committed. Partitions are not shared with its other members.

        :param group_id: the name of the group
        :returns: this object
        """
        return self.set_property(GROUP, checks.text("group_id", group_id))

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Set the name by which brokers know the client.

        :param prefix: the name
        :returns: this object
        """
        return self.set_property(PREFIX, checks.text("prefix", prefix))

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read all partitions of some topics, including those that are made later.

        :param topics: the names of the topics
        :returns: this object
        """
        if not topics:
            raise ValueError("set_topics needs at least one topic")
        return self._choose(TopicChoice(topics=tuple(dict.fromkeys(checks.text("topics", topic) for topic in topics))))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all topics whose names match a pattern, including those that are made later.

        :param topic_pattern: a regular expression for the whole name
        :returns: this object
        """
        try:
            re.compile(checks.text("topic_pattern", topic_pattern))
        except re.error as error:
            raise ValueError(f"topic_pattern is no regular expression: {error}") from None
        return self._choose(TopicChoice(pattern=topic_pattern))

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read some partitions and no others.

        :param partitions: the partitions
        :returns: this object
        """
        hint = "use KafkaTopicPartition('topic', 0)"
        chosen = {checks.instance("partitions", each, KafkaTopicPartition, hint) for each in partitions}
        if not chosen:
            raise ValueError("set_partitions needs at least one KafkaTopicPartition")
        return self._choose(TopicChoice(partitions=tuple(sorted(chosen))))

    def _choose(self, choice: TopicChoice) -> KafkaSourceBuilder:
        if self._choice is not None:
            raise ValueError(f"The source reads {self._choice}: call one of set_topics, set_topic_pattern and set_partitions, once")
        self._choice = choice
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set the offsets where the first start begins. They are ignored if there is a checkpoint.

        :param starting_offsets_initializer: a value from ``KafkaOffsetsInitializer``; the oldest records by default
        :returns: this object
        """
        self._starting = checks.instance(
            "starting_offsets_initializer", starting_offsets_initializer, KafkaOffsetsInitializer, _OFFSETS_HINT
        )
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set the offsets where reading ends, in a program that still counts as unbounded.

        :param stopping_offsets_initializer: a value from ``KafkaOffsetsInitializer``
        :returns: this object
        """
        return self._stop(stopping_offsets_initializer, is_bounded=False)

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set the offsets where reading ends. Partitions that are made later are not read.

        :param stopping_offsets_initializer: a value from ``KafkaOffsetsInitializer``
        :returns: this object
        """
        return self._stop(stopping_offsets_initializer, is_bounded=True)

    def _stop(self, stopping: KafkaOffsetsInitializer, *, is_bounded: bool) -> KafkaSourceBuilder:
        self._stopping = checks.instance("stopping_offsets_initializer", stopping, KafkaOffsetsInitializer, _OFFSETS_HINT)
        self._is_bounded = is_bounded
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> KafkaSourceBuilder:
        """Set the schema that converts values to elements. Records without a value are skipped.

        :param deserialization_schema: a schema such as ``SimpleStringSchema()``
        :returns: this object
        """
        schema = checks.instance("deserialization_schema", deserialization_schema, DeserializationSchema, SCHEMA_HINT)
        self._deserializer = ValueOnly(schema)
        return self

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
        """Set the schema that converts whole records, with key, headers and offset, to elements.

        :param record_deserializer: a schema derived from ``KafkaRecordDeserializationSchema``
        :returns: this object
        """
        hint = "derive a class from it, or use set_value_only_deserializer(...)"
        self._deserializer = checks.instance("record_deserializer", record_deserializer, KafkaRecordDeserializationSchema, hint)
        return self

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """Set a property of the client.

        :param key: the name of the property in librdkafka; or ``partition.discovery.interval.ms``, the interval between two polls
            for new partitions (0 for never); ``commit.offsets.on.checkpoint``; or ``auto.offset.reset``, the place to resume at if
            records were removed from the topic before they were read (without it, that is an error)
        :param value: the value as text; may contain references
        :returns: this object
        """
        return self.set_properties({key: value})

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        """Set properties of the client.

        :param props: properties by name, see :meth:`set_property`
        :returns: this object
        """
        self._properties.update(checked_properties("props", props, OF_SOURCES))
        return self

    def build(self) -> KafkaSource:
        """Make the source.

        :returns: the source
        :raises ValueError: if something is missing, or does not fit
        """
        if not self._properties.get(SERVERS):
            raise ValueError("The source needs brokers: call set_bootstrap_servers('host:9092') before build()")
        if self._choice is None:
            raise ValueError("The source needs topics: call set_topics('name') before build()")
        if self._deserializer is None:
            raise ValueError("The source needs a schema: call set_value_only_deserializer(SimpleStringSchema()) before build()")
        for offsets in (self._starting, self._stopping):
            if offsets is not None and offsets.needs_group and not self._properties.get(GROUP):
                raise ValueError("Committed offsets are those of a group: call set_group_id('name') before build()")
        choice, stops = self._choice, self._stopping is not None
        settings = ReadingSettings(choice, self._starting, self._stopping, self._deserializer, dict(self._properties))
        interval = look_interval(self._properties)
        return KafkaSource(settings, self._is_bounded, None if stops or choice.partitions else interval)


def look_interval(properties: Mapping[str, str]) -> float | None:
    """Return the interval between two polls for new partitions.

    :param properties: the properties of the source
    :returns: seconds; None for never
    :raises ValueError: if a property has an invalid value
    """
    if properties.get(RESET, "earliest") not in ("earliest", "latest", "none"):
        raise ValueError(f"{RESET} takes 'earliest', 'latest' or 'none', not {properties[RESET]!r}")
    if properties.get(COMMIT, "true") not in ("true", "false"):
        raise ValueError(f"{COMMIT} takes 'true' or 'false', not {properties[COMMIT]!r}")
    text = properties.get(DISCOVERY)
    if text is None:
        return _LOOK_S
    try:
        milliseconds = int(text)
    except ValueError:
        raise ValueError(f"{DISCOVERY} takes milliseconds, not {text!r}") from None
    return milliseconds / 1000 if milliseconds > 0 else None
