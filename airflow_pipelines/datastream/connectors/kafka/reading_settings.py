"""The settings of a source that reads Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_pipelines.datastream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from airflow_pipelines.datastream.connectors.kafka.properties import COMMIT, GROUP, RESET, SERVERS
from airflow_pipelines.datastream.connectors.kafka.records import KafkaRecordDeserializationSchema


@dataclass(frozen=True)
class TopicChoice:
    """The choice of partitions to read.

    :param topics: the topics of which all partitions are read
    :param pattern: the pattern of the full names of topics of which all partitions are read; None for none
    :param partitions: the individual partitions to read
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def in_order(self) -> TopicChoice:
        """Return the same choice in a canonical order.

        :returns: the choice
        """
        partitions = sorted(self.partitions, key=lambda each: (each.topic, each.partition))
        return TopicChoice(tuple(sorted(self.topics)), self.pattern, tuple(partitions))

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics like {self.pattern}"
        if self.partitions:
            return ", ".join(f"{each.topic}/{each.partition}" for each in self.partitions)
        return ", ".join(self.topics)


@dataclass(frozen=True)
class ReadingSettings:
    """The settings of a source that reads Kafka.

    :param choice: the partitions to read
    :param starting: the starting offsets of the first start
    :param stopping: the offsets where reading ends; None for never
    :param deserializer: the schema that converts records to elements
    :param properties: the properties of the client
    """

    choice: TopicChoice
    starting: KafkaOffsetsInitializer
    stopping: KafkaOffsetsInitializer | None
    deserializer: KafkaRecordDeserializationSchema
    properties: Mapping[str, str] = field(repr=False)

    @property
    def servers(self) -> str:
        """The bootstrap brokers."""
        return self.properties[SERVERS]

    @property
    def group(self) -> str | None:
        """The group to which offsets are committed, and whose offsets can be a start."""
        return self.properties.get(GROUP)

    @property
    def commits(self) -> bool:
        """True if offsets are committed to the group."""
        return self.group is not None and self.properties.get(COMMIT, "true") == "true"

    @property
    def after_expiry(self) -> KafkaOffsetResetStrategy:
        """The strategy for records that were removed before they were read."""
        return KafkaOffsetResetStrategy[self.properties.get(RESET, "none").upper()]
