"""Where the reading of partitions begins and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from airflow_pipelines.datastream.common import checks


@dataclass(frozen=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic.

    :param topic: the topic
    :param partition: its number, from 0
    """

    topic: str
    partition: int

    def __post_init__(self) -> None:
        checks.text("topic", self.topic)
        checks.integer("partition", self.partition, 0)


class KafkaOffsetResetStrategy(Enum):
    """What follows where an offset is not there."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class Start(Enum):
    """Kinds of places."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    COMMITTED = "committed"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """An offset for each partition. Made with its static methods.

    :param kind: of the place
    :param at: the timestamp in ms, where it is one
    :param given: the offsets, where they were given
    :param reset_strategy: what follows where a partition has none
    """

    kind: Start
    at: int = 0
    given: tuple[tuple[KafkaTopicPartition, int], ...] = ()
    reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The oldest record.

        :returns: the place
        """
        return KafkaOffsetsInitializer(Start.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The end, as it is when the program starts for the first time.

        :returns: the place
        """
        return KafkaOffsetsInitializer(Start.LATEST)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record that is not older than a time; the end where there is none.

        :param timestamp: milliseconds since 1970-01-01T00:00:00Z
        :returns: the place
        """
        return KafkaOffsetsInitializer(Start.TIMESTAMP, at=checks.integer("timestamp", timestamp, 0))

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """What the group has committed.

        :param offset_reset_strategy: what follows where it has committed nothing; NONE for an error
        :returns: the place
        """
        strategy = checks.member("offset_reset_strategy", offset_reset_strategy, KafkaOffsetResetStrategy)
        return KafkaOffsetsInitializer(Start.COMMITTED, reset_strategy=strategy)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Offsets by partition.

        :param offsets: the offsets
        :param offset_reset_strategy: what follows for other partitions, when the group has committed nothing for them either
        :returns: the place
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
        """Whether it cannot be found without a group."""
        return self.kind is Start.COMMITTED
