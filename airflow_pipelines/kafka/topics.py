"""Asks brokers about topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from airflow_pipelines.kafka.problems import Problems

_ANSWER_S: Final = 5.0
"""How long a broker may take for an answer."""


class TopicOfBroker:
    """Asks brokers about a topic."""

    def __init__(self, consumer: Consumer, name: str, problems: Problems[Any]) -> None:
        """Make it.

        :param consumer: asks
        :param name: of the topic
        :param problems: says why there is no answer
        """
        self._consumer = consumer
        self._name = name
        self._problems = problems

    def ends(self, partition: int) -> tuple[int, int]:
        """The offset of the oldest record of a partition, and that of the next one that somebody writes."""
        try:
            found = self._consumer.get_watermark_offsets(TopicPartition(self._name, partition), timeout=_ANSWER_S)
        except KafkaException as error:
            raise self._problems.failure(error.args[0]) from error
        if found is None:
            raise self._problems.failure()
        return found

    def find_loss(self, partition: int, wanted: int, asked: int) -> tuple[int, int] | None:
        """Look whether a place is gone, after the client has reported that one is not in the partition.

        The report may be late: of a place that was asked for before the partition was assigned anew.

        :param partition: the number of the partition
        :param wanted: the offset of the record that comes next
        :param asked: the offset that the report is about
        :returns: the ends of the partition; None when the report is of another place, and the wanted one is there
        """
        oldest, end = self.ends(partition)
        return None if asked != wanted and oldest <= wanted <= end else (oldest, end)

    def at_time(self, partitions: Sequence[int], timestamp: int) -> Mapping[int, int]:
        """By partition the offset of the first record that is not older; of the next one where there is none."""
        asked = [TopicPartition(self._name, partition, timestamp) for partition in partitions]
        try:
            found = self._consumer.offsets_for_times(asked, timeout=_ANSWER_S)
        except KafkaException as error:
            raise self._problems.failure(error.args[0]) from error
        return {each.partition: each.offset if each.offset >= 0 else self.ends(each.partition)[1] for each in found}
