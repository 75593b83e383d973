"""Starting and stopping offsets of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from airflow_pipelines.datastream.common import checks


@dataclass(frozen=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic.

    :param topic: the topic
    :param partition: the number of the partition, from 0

    >>> from airflow_pipelines.datastream.connectors import KafkaTopicPartition
    >>> sorted([KafkaTopicPartition("sales", 1), KafkaTopicPartition("sales", 0)])
    [KafkaTopicPartition(topic='sales', partition=0), KafkaTopicPartition(topic='sales', partition=1)]
    """

    topic: str
    partition: int

    def __post_init__(self) -> None:
        checks.text("topic", self.topic)
        checks.integer("partition", self.partition, 0)


class KafkaOffsetResetStrategy(Enum):
    """The strategy for a missing offset.

    >>> from airflow_pipelines.datastream.connectors import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
    >>> KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST).reset_strategy
    <KafkaOffsetResetStrategy.EARLIEST: 1>
    """

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class Start(Enum):
    """The kinds of offsets."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    COMMITTED = "committed"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """An offset for each partition. Use its static methods to make one.

    :param kind: the kind of the offsets
    :param at: the timestamp in ms, for the kind ``TIMESTAMP``
    :param given: the offsets, for the kind ``OFFSETS``
    :param reset_strategy: the strategy for a partition without an offset

    >>> from airflow_pipelines.datastream.connectors import KafkaOffsetsInitializer, KafkaSource, KafkaTopicPartition
    >>> start = KafkaOffsetsInitializer.offsets({KafkaTopicPartition("sales", 0): 500})
    >>> builder = KafkaSource.builder().set_starting_offsets(start).set_bounded(KafkaOffsetsInitializer.latest())
    >>> start.given
    ((KafkaTopicPartition(topic='sales', partition=0), 500),)
    """

    kind: Start
    at: int = 0
    given: tuple[tuple[KafkaTopicPartition, int], ...] = ()
    reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Return the offsets of the oldest records.

        :returns: the offsets
        """
        return KafkaOffsetsInitializer(Start.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Return the end offsets, as they are when the program starts for the first time.

        :returns: the offsets
        """
        return KafkaOffsetsInitializer(Start.LATEST)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Return the offsets of the first records that are not older than a time, or the end offsets where there are none.

        :param timestamp: milliseconds since 1970-01-01T00:00:00Z
        :returns: the offsets
        """
        return KafkaOffsetsInitializer(Start.TIMESTAMP, at=checks.integer("timestamp", timestamp, 0))

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Return the committed offsets of the group.

        :param offset_reset_strategy: the strategy for partitions without a committed offset; NONE for an error
        :returns: the offsets
        """
        strategy = checks.member("offset_reset_strategy", offset_reset_strategy, KafkaOffsetResetStrategy)
        return KafkaOffsetsInitializer(Start.COMMITTED, reset_strategy=strategy)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Return given offsets by partition.

        :param offsets: the offsets
        :param offset_reset_strategy: the strategy for other partitions, if the group has committed nothing for them either
        :returns: the offsets
        """
        if not isinstance(offsets, Mapping) or not offsets:
            raise TypeError("offsets takes a dict such as {KafkaTopicPartition('topic', 0): 10}")
        given = tuple(
            (
                checks.instance("offsets", partition, KafkaTopicPartition, "use KafkaTopicPartition('topic', 0)"),
                checks.integer("an offset", offset, 0),
            )
            for partition, offset in offsets.items()
        )
        strategy = checks.member("offset_reset_strategy", offset_reset_strategy, KafkaOffsetResetStrategy)
        return KafkaOffsetsInitializer(Start.OFFSETS, given=given, reset_strategy=strategy)

    @property
    def needs_group(self) -> bool:
        """True if the offsets cannot be found without a group."""
        return self.kind is Start.COMMITTED
