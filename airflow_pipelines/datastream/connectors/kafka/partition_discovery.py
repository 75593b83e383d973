"""Discovery of the partitions that a source reads, and of the offsets where each begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from confluent_kafka import Consumer, KafkaException, TopicPartition

from airflow_pipelines.datastream.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, Start
from airflow_pipelines.datastream.connectors.kafka.reading_settings import ReadingSettings
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.systems.kafka.problems import Problems
from airflow_pipelines.systems.kafka.topics import ANSWER_S, LOOK_S, TopicOfBroker, find_topics

Split: TypeAlias = tuple[str, int, int, int | None]
"""Topic, number of the partition, offset of the first record, and offset behind the last one; None for no end."""

_INTERNAL: Final = "__"

_Key: TypeAlias = tuple[str, int]


class PartitionDiscovery:
    """The queries of a source to the brokers.

    :param settings: the settings for reading
    :param consumer: the consumer that queries the brokers
    :param problems: the problems of the client, which explain a missing answer
    :param where: the name of the source, for messages
    """

    def __init__(self, settings: ReadingSettings, consumer: Consumer, problems: Problems[StreamProgramError], where: str) -> None:
        self._settings = settings
        self._consumer = consumer
        self._problems = problems
        self._where = where

    def first_splits(self) -> list[Split]:
        """Return the existing partitions, in the order of their topics and numbers.

        :raises StreamProgramError: if they cannot be determined
        """
        partitions = self._partitions(ANSWER_S)
        starts = self._offsets(self._settings.starting, partitions, "starting")
        stopping = self._settings.stopping
        stops: dict[_Key, int | None] = {**dict.fromkeys(partitions)}
        if stopping is not None:
            stops = {**self._offsets(stopping, partitions, "stopping")}
        return [(*key, starts[key], stops[key]) for key in partitions]

    def new_splits(self, known: Iterable[Split]) -> list[Split]:
        """Return partitions that were made since, from their beginnings.

        :param known: the partitions that are read already
        """
        read = {(topic, partition) for topic, partition, *_ in known}
        try:
            partitions = self._partitions(LOOK_S)
            return [(*key, self._ends(key)[0], None) for key in partitions if key not in read]
        except StreamProgramError:
            # Readers report a broker that is away, and the next poll finds the new partitions.
            return []

    def _partitions(self, patience: float) -> list[_Key]:
        choice = self._settings.choice
        if choice.partitions:
            existing = set(self._find_existing({each.topic for each in choice.partitions}, patience))
            missing = [
                f"{each.topic}/{each.partition}" for each in choice.partitions if (each.topic, each.partition) not in existing
            ]
            if missing:
                raise StreamProgramError(f"{self._where}: there is no partition {', '.join(missing)} at {self._settings.servers}")
            return [(each.topic, each.partition) for each in choice.partitions]
        if choice.pattern is None:
            return self._find_existing(choice.topics, patience)
        pattern = re.compile(choice.pattern)
        topics = self._ask(None, patience)
        wanted = [name for name in topics if pattern.fullmatch(name) and not name.startswith(_INTERNAL)]
        return sorted((name, number) for name in wanted for number in topics[name].partitions)

    def _find_existing(self, names: Iterable[str], patience: float) -> list[_Key]:
        keys: list[_Key] = []
        for name in sorted(names):
            topic = self._ask(name, patience)[name]
            if topic.error is not None:
                raise StreamProgramError(
                    f"{self._where}: topic {name!r} cannot be read at {self._settings.servers}: {topic.error.str()}. Make it,"
                    " correct its name, or use set_topic_pattern() for topics that are made later"
                )
            keys += ((name, number) for number in sorted(topic.partitions))
        return keys

    def _ask(self, name: str | None, patience: float) -> Mapping[str, Any]:
        return find_topics(self._consumer, name, self._problems, patience)

    def _offsets(self, initializer: KafkaOffsetsInitializer, partitions: Sequence[_Key], what: str) -> dict[_Key, int]:
        match initializer.kind:
            case Start.EARLIEST:
                return {key: self._ends(key)[0] for key in partitions}
            case Start.LATEST:
                return {key: self._ends(key)[1] for key in partitions}
            case Start.TIMESTAMP:
                return self._find_at_time(partitions, initializer.at)
            case Start.COMMITTED | Start.OFFSETS:
                return self._find_offsets(initializer, partitions, what)

    def _find_offsets(self, initializer: KafkaOffsetsInitializer, partitions: Sequence[_Key], what: str) -> dict[_Key, int]:
        offsets = {(each.topic, each.partition): offset for each, offset in initializer.given}
        others = [key for key in partitions if key not in offsets]
        if self._settings.group is not None and others:
            offsets.update(self._fetch_committed(others))
        for key in others:
            if key not in offsets:
                offsets[key] = self._apply_reset_strategy(initializer.reset_strategy, key, what)
        return offsets

    def _apply_reset_strategy(self, strategy: KafkaOffsetResetStrategy, key: _Key, what: str) -> int:
        match strategy:
            case KafkaOffsetResetStrategy.EARLIEST:
                return self._ends(key)[0]
            case KafkaOffsetResetStrategy.LATEST:
                return self._ends(key)[1]
            case KafkaOffsetResetStrategy.NONE:
                raise self._make_missing_offset_error(key, what)

    def _make_missing_offset_error(self, key: _Key, what: str) -> StreamProgramError:
        group = self._settings.group
        missing = "no offset was given" if group is None else f"the group {group!r} has committed no offset"
        return StreamProgramError(
            f"{self._where}: {missing} for partition {key[1]} of {key[0]}, so its {what} offset is not known. Give a"
            " KafkaOffsetResetStrategy with the offsets"
        )

    def _fetch_committed(self, keys: Sequence[_Key]) -> dict[_Key, int]:
        try:
            committed = self._consumer.committed([TopicPartition(*key) for key in keys], timeout=ANSWER_S)
        except KafkaException as error:
            raise self._problems.failure(error.args[0]) from error
        for each in committed:
            if each.error is not None:
                raise self._problems.failure(each.error)
        return {(each.topic, each.partition): each.offset for each in committed if each.offset >= 0}

    def _ends(self, key: _Key) -> tuple[int, int]:
        return TopicOfBroker(self._consumer, key[0], self._problems).ends(key[1])

    def _find_at_time(self, partitions: Sequence[_Key], timestamp: int) -> dict[_Key, int]:
        offsets: dict[_Key, int] = {}
        for topic in sorted({topic for topic, _ in partitions}):
            numbers = [number for name, number in partitions if name == topic]
            asked = TopicOfBroker(self._consumer, topic, self._problems).at_time(numbers, timestamp)
            offsets.update({(topic, number): offset for number, offset in asked.items()})
        return offsets
