"""Queries to brokers about topics and their offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from airflow_pipelines.systems.kafka.problems import Problems, serve_callbacks

ANSWER_S: Final = 5.0
"""The maximum time in seconds that a broker may take to answer."""
LOOK_S: Final = 1.0
"""The time in seconds after which the reason for a missing answer is looked for."""


def find_topics(
    client: Consumer | Producer,
    name: str | None,
    problems: Problems[Any],
    patience_s: float = ANSWER_S,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Mapping[str, Any]:
    """Return what the brokers know of a topic, by name: its partitions, or an error.

    :param client: the client that asks
    :param name: the name of the topic; None for all topics
    :param problems: the problems of the client, which explain a missing answer
    :param patience_s: the maximum time in seconds that the brokers may take to answer
    :param is_cancelled: the function that returns True if nobody waits any longer
    :raises Exception: the failure of the problems if no broker answers
    """

    def serve() -> int:
        client.poll(0)
        return 0

    deadline = time.monotonic() + patience_s
    while True:
        try:
            return dict(client.list_topics(name, timeout=LOOK_S).topics)
        except KafkaException as error:
            # The answer does not contain the refusal of a broker, so serve the callbacks, which report it.
            serve_callbacks(serve, problems)
            if problems.are_serious or time.monotonic() > deadline or is_cancelled():
                raise problems.failure(error.args[0]) from error


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
            offsets = self._consumer.get_watermark_offsets(TopicPartition(self._name, partition), timeout=ANSWER_S)
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
            offsets = self._consumer.offsets_for_times(asked, timeout=ANSWER_S)
        except KafkaException as error:
            raise self._problems.failure(error.args[0]) from error
        return {each.partition: each.offset if each.offset >= 0 else self.ends(each.partition)[1] for each in offsets}
