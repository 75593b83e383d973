"""Queries to brokers about topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from airflow_pipelines.kafka.problems import Problems

_ANSWER_S: Final = 5.0
"""The maximum time in seconds that a broker may take to answer."""


class TopicOfBroker:
    """The queries to brokers about a topic."""

    def __init__(self, consumer: Consumer, name: str, problems: Problems[Any]) -> None:
        """Create the queries for a topic.

        :param consumer: the consumer that queries the brokers
        :param name: the name of the topic
        :param problems: the problems of the client, which explain a missing answer
        """
        self._consumer = consumer
        self._name = name
        self._problems = problems

    def ends(self, partition: int) -> tuple[int, int]:
        """Return the offset of the oldest record of a partition, and that of the next record to be written."""
        try:
            offsets = self._consumer.get_watermark_offsets(TopicPartition(self._name, partition), timeout=_ANSWER_S)
        except KafkaException as error:
            raise self._problems.failure(error.args[0]) from error
        if offsets is None:
            raise self._problems.failure()
        return offsets

    def find_loss(self, partition: int, wanted: int, asked: int) -> tuple[int, int] | None:
        """Return the ends of a partition if the wanted offset is lost, after the client has reported an offset out of range.

        The report may be late: it may concern an offset that was requested before the partition was reassigned.

        :param partition: the number of the partition
        :param wanted: the offset of the next record
        :param asked: the offset that the report is about
        :returns: the ends of the partition; None if the report is about another offset, and the wanted one exists
        """
        oldest, end = self.ends(partition)
        return None if asked != wanted and oldest <= wanted <= end else (oldest, end)

    def at_time(self, partitions: Sequence[int], timestamp: int) -> Mapping[int, int]:
        """Return by partition the offset of the first record that is not older than a time.

        Without such a record, the offset is that of the next record.
        """
        asked = [TopicPartition(self._name, partition, timestamp) for partition in partitions]
        try:
            offsets = self._consumer.offsets_for_times(asked, timeout=_ANSWER_S)
        except KafkaException as error:
            raise self._problems.failure(error.args[0]) from error
        return {each.partition: each.offset if each.offset >= 0 else self.ends(each.partition)[1] for each in offsets}
