"""Transactions of a producer that have numbers, so that it is known after a failure which of them were committed.

Each transaction commits its number as an offset of a group that only this producer uses (KIP-98).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_pipelines.systems.kafka.clients import new_group_member
from airflow_pipelines.systems.kafka.problems import FENCED, Problems
from airflow_pipelines.systems.kafka.producer import RecordProducer
from airflow_pipelines.systems.kafka.properties import CLIENT_PROPERTIES

FailureT = TypeVar("FailureT", bound=Exception)
_ANSWER_S: Final = 20.0
"""The maximum time in seconds that a broker may take to answer about transactions."""
_ABORT_S: Final = 1.0
RENEWAL_S: Final = 3600.0
"""The age in seconds after which the last number is to be committed again.

Brokers forget the offsets of an idle group after days, and at the earliest after minutes: see ``offsets.retention.minutes``.
"""


class NumberedTransactions(Generic[FailureT]):
    """The numbered transactions of a producer.

    Methods raise ``KafkaException`` when a broker does not do what it is asked, and it is then not known what it has done.

    :param properties: the properties of the client
    :param problems: the problems of the client, which make the errors of records
    :param name: the transactional id of the producer, which is also the name of its group
    :param timeout_ms: the time in milliseconds after which brokers abort a transaction, unless the properties have it
    :param waits_for_brokers: see :class:`RecordProducer`
    """

    def __init__(
        self, properties: Mapping[str, Any], problems: Problems[FailureT], name: str, timeout_ms: int, *, waits_for_brokers: bool
    ) -> None:
        own = {
            "transactional.id": name,
            # After a rebootstrap, the client never finds its transaction coordinator again.
            "metadata.recovery.strategy": "none",
        }
        self.producer = RecordProducer(
            {"transaction.timeout.ms": timeout_ms, **properties, **own}, problems, waits_for_brokers=waits_for_brokers
        )
        self._properties = properties
        self._name = name
        self._group: Consumer | None = None

    def open(self) -> None:
        """Fence other producers of this name, and abort what they left unfinished."""
        self.producer.client.init_transactions(_ANSWER_S)
        self._group = new_group_member(self._properties, self.producer.problems, self._name)

    def find_committed(self, topic: str | None = None) -> int | None:
        """Return the number of the last transaction that was committed; None if brokers know of none.

        :param topic: the topic that the transactions write to; None if that varies
        """
        # The answer contains the errors, so the client need not log them.
        shared = {name: value for name, value in self._properties.items() if name in CLIENT_PROPERTIES}
        admin = AdminClient({**shared, "log_level": 0})
        asked = [ConsumerGroupTopicPartitions(self._name)]
        answer = admin.list_consumer_group_offsets(asked, require_stable=True, request_timeout=_ANSWER_S)[self._name]
        try:
            offsets = answer.result(2 * _ANSWER_S).topic_partitions or ()
        except FutureTimeoutError as error:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error
        places = [each for each in offsets if topic in (None, each.topic)]
        for each in places:
            if each.error is not None:
                raise KafkaException(each.error)
        return max((each.offset for each in places if each.offset >= 0), default=None)

    def begin(self) -> None:
        """Begin a transaction. Records that the producer sends from now on belong to it."""
        self.producer.client.begin_transaction()

    def commit(self, topic: str, number: int) -> None:
        """Commit the transaction with its number.

        :param topic: a topic that it writes to
        :param number: the number, greater than those before
        """
        if self._group is None:
            raise AssertionError("transactions begin after open()")
        place = TopicPartition(topic, 0, number)
        self.producer.client.send_offsets_to_transaction([place], self._group.consumer_group_metadata(), _ANSWER_S)
        self.producer.client.commit_transaction(_ANSWER_S)

    def has_records(self, topic: str) -> bool:
        """Return True if a topic has, or had, records.

        :param topic: the name of the topic
        """
        if self._group is None:
            return False
        partitions = self._group.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions
        places = [TopicPartition(topic, number) for number in partitions]
        return any(self._group.get_watermark_offsets(place, timeout=_ANSWER_S)[1] > 0 for place in places)

    def is_fenced(self, error: KafkaError | None) -> bool:
        """Return True if another producer of this name has begun.

        :param error: the error that a call returned; None if only the problems of the client know one
        """
        return any(each is not None and each.code() in FENCED for each in (error, self.producer.problems.fatal))

    def close(self) -> None:
        """Disconnect from the brokers, and abort a transaction that was not committed.

        If brokers are away, the next producer of this name aborts it, or they do when it times out.
        """
        group, self._group = self._group, None
        if group is not None:
            group.close()
        if not self.producer.problems.are_serious:
            with suppress(KafkaException, SystemError):
                # Usually there is no transaction to abort.
                self.producer.client.purge()
                self.producer.client.abort_transaction(_ABORT_S)
        self.producer.close()
