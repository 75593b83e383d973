"""What is read of Kafka, and how."""

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
    """Which partitions are read.

    :param topics: all partitions of these
    :param pattern: all partitions of the topics whose whole name matches; None for none
    :param partitions: these
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def in_order(self) -> TopicChoice:
        """Name the same partitions in an order that does not depend on who named them.

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
    """What is read, and how.

    :param choice: which partitions
    :param starting: where the first start begins
    :param stopping: where reading ends; None for never
    :param deserializer: makes elements of records
    :param properties: of the client
    """

    choice: TopicChoice
    starting: KafkaOffsetsInitializer
    stopping: KafkaOffsetsInitializer | None
    deserializer: KafkaRecordDeserializationSchema
    properties: Mapping[str, str] = field(repr=False)

    @property
    def servers(self) -> str:
        """The brokers to begin with."""
        return self.properties[SERVERS]

    @property
    def group(self) -> str | None:
        """The group to which offsets are committed, and whose offsets may be a start."""
        return self.properties.get(GROUP)

    @property
    def commits(self) -> bool:
        """Whether offsets are committed to the group."""
        return self.group is not None and self.properties.get(COMMIT, "true") == "true"

    @property
    def after_expiry(self) -> KafkaOffsetResetStrategy:
        """What follows when records were removed before they were read."""
        return KafkaOffsetResetStrategy[self.properties.get(RESET, "none").upper()]
