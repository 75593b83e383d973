"""Writes records exactly once: what a checkpoint has is written in a transaction when the checkpoint is durable."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_pipelines.datastream.connectors.kafka.properties import client_properties
from airflow_pipelines.datastream.connectors.kafka.serialization import KafkaRecordSerializationSchema, ProducerRecord
from airflow_pipelines.datastream.connectors.kafka.writing import RecordProducer
from airflow_pipelines.kafka.problems import configuration
from airflow_pipelines.kafka.properties import SHARED_PROPERTIES
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sinks import SinkWriter

_log = logging.getLogger("airflow_pipelines.datastream")
_ANSWER_S: Final = 20.0
"""How long a broker may take for an answer about transactions."""
_PATIENCE_S: Final = 120.0
"""How long a transaction is tried again, before the program ends; the next start tries it again."""
_PAUSE_S: Final = 0.5
_TRANSACTION_MS: Final = 120_000
_RENEWAL_S: Final = 3600.0
"""The last number is committed again when it is older: brokers forget the offsets of a group in which nothing is committed."""
_DEFAULT_MAX_BYTES: Final = 1_000_000
_OVERHEAD: Final = 512
"""What a record has besides its key and value, at most, without headers."""
_OF_BOTH: Final = SHARED_PROPERTIES | {"bootstrap.servers"}
_FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})

_Fields: TypeAlias = tuple[str, bytes | None, bytes | None, int | None, int | None, tuple[tuple[str, bytes | None], ...]]
_VERSION: Final = 1


@dataclass(frozen=True)
class Prepared:
    """The records of a checkpoint, which are in the checkpoint until they are written.

    :param producer: the name of the producer, which is also that of the group in which its number is committed
    :param number: its number: one more than that of the transaction before
    :param before: the number that was committed when this one was made; 0, which earlier releases began with, for none
    :param records: the records
    """

    producer: str
    number: int
    before: int
    records: tuple[_Fields, ...]

    def to_state(self) -> Any:
        """What is kept of it."""
        return (_VERSION, self.producer, self.number, self.before, self.records)

    @classmethod
    def from_state(cls, state: Any) -> Prepared:
        """Read what was kept."""
        version, *rest = state
        if version != _VERSION:
            raise StreamProgramError(f"Records for Kafka were kept in form {version}, and this release reads form {_VERSION}")
        return cls(*rest)


class TransactionalWriter(SinkWriter):
    """Keeps the records of elements until they are part of a durable checkpoint, and writes them then in one transaction.

    The transaction has a number, which is committed in it as the offset of a group that only this writer has. So it is known after
    any failure whether it was written.

    :param serializer: makes records
    :param properties: of the client
    :param name: of the producer and its group
    :param drops_unknown: whether records are left out of which brokers do not know any more whether they were written
    """

    def __init__(
        self, serializer: KafkaRecordSerializationSchema, properties: Mapping[str, str], name: str, *, drops_unknown: bool
    ) -> None:
        self._where = f"KafkaSink {serializer}"
        self._serialize = serializer.serialize
        self._properties = properties
        self._name = name
        self._drops_unknown = drops_unknown
        self._most_bytes = int(properties.get("message.max.bytes", _DEFAULT_MAX_BYTES)) - _OVERHEAD
        self._records: list[_Fields] = []
        self._last_number = 0
        self._transactions: Transactions | None = None

    def write(self, batch: Batch) -> None:
        """Take elements."""
        serialize, records, most = self._serialize, self._records, self._most_bytes
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            record = serialize(value, timestamp)
            if record is None:
                continue
            if len(record.value or b"") + len(record.key or b"") > most:
                # Once a checkpoint has it, it could never be written.
                raise StreamProgramError(
                    f"{self._where}: a record of {len(record.value or b'')} bytes is larger than the client takes. Raise"
                    " 'message.max.bytes' of the sink and 'max.message.bytes' of the topic"
                )
            records.append((record.topic, record.value, record.key, record.partition, record.timestamp, record.headers))

    def prepare(self) -> Any | None:
        """Number what was taken."""
        if not self._records:
            return None
        committed = self._renewed(self._records[0][0], time.monotonic() + _PATIENCE_S)
        self._last_number = max(self._last_number, committed) + 1
        prepared = Prepared(self._name, self._last_number, committed, tuple(self._records))
        self._records.clear()
        return prepared.to_state()

    def commit(self, prepared: Any) -> None:
        """Write it, unless it was written before.

        :raises StreamProgramError: when that cannot be done, or it is not known whether it was
        """
        wanted = Prepared.from_state(prepared)
        deadline = time.monotonic() + _PATIENCE_S
        if wanted.producer == self._name:
            self._commit(wanted, deadline)
            return
        # It was prepared by a task that is not there any more, since the parallelism is another one.
        other = Transactions(self._where, wanted.producer, self._properties)
        try:
            _patiently(lambda: self._write(other, wanted), other, deadline)
        finally:
            other.close()

    def _commit(self, wanted: Prepared, deadline: float) -> None:
        own = self._own(deadline)
        _patiently(lambda: self._write(own, wanted), own, deadline)

    def _write(self, transactions: Transactions, wanted: Prepared) -> None:
        transactions.open()
        committed = transactions.committed
        if committed is not None and committed >= wanted.number:
            return
        if committed is None and wanted.before > 0:
            self._unknown(wanted)
            return
        transactions.write(wanted)

    def _unknown(self, wanted: Prepared) -> None:
        what = (
            f"{self._where}: brokers have forgotten the offsets of the group {wanted.producer!r}, so it is not known whether"
            f" {len(wanted.records)} records of the last checkpoint were written"
        )
        if not self._drops_unknown:
            raise StreamProgramError(
                f"{what}. Look into the topic; ignore_failures_after_transaction_timeout() leaves them out. Raise"
                " 'offsets.retention.minutes' of the brokers for programs that stand still for long"
            )
        _log.warning("%s: they are left out", what)

    def _renewed(self, topic: str, deadline: float) -> int:
        """The number that is committed, after it was made sure that brokers will know it for as long as they can."""
        own = self._own(deadline)

        def renew() -> None:
            own.open()
            own.renew(topic)

        _patiently(renew, own, deadline)
        if own.committed is None:
            raise AssertionError("a number that was committed is known")
        return own.committed

    def _own(self, deadline: float) -> Transactions:
        own = self._transactions = self._transactions or Transactions(self._where, self._name, self._properties)
        _patiently(own.open, own, deadline)
        return own

    def close(self) -> None:
        """Let go of the brokers. What no durable checkpoint has is dropped."""
        if self._transactions is not None:
            self._transactions.close()


class Transactions:
    """The transactions of a producer, with their numbers.

    :param where: the sink, for messages
    :param name: of the producer
    :param properties: of the client
    """

    def __init__(self, where: str, name: str, properties: Mapping[str, str]) -> None:
        self._where = where
        self._name = name
        self._properties = properties
        self._producer: RecordProducer | None = None
        self._group: Consumer | None = None
        self.committed: int | None = None
        """The number of the last transaction; None for none that is known."""
        self._committed_at: float | None = None

    def open(self) -> None:
        """Have no other producer of this name write any more, end what it left unfinished, and find the last number.

        :raises KafkaException: when that cannot be done
        """
        if self._producer is not None:
            return
        own = {
            "transactional.id": self._name,
            "transaction.timeout.ms": self._properties.get("transaction.timeout.ms", _TRANSACTION_MS),
            # Once it has forgotten its brokers, this client never finds the one again that coordinates its transactions.
            "metadata.recovery.strategy": "none",
        }
        producer = self._producer = RecordProducer(self._where, self._properties, own)
        producer.client.init_transactions(_ANSWER_S)
        shared = {name: value for name, value in client_properties(self._properties).items() if name in _OF_BOTH}
        self._group = Consumer(configuration({**shared, "group.id": self._name, "enable.auto.commit": False}, producer.problems))
        self.committed = self._find_number(shared)

    def _find_number(self, shared: Mapping[str, Any]) -> int | None:
        # What goes wrong is in its answer.
        admin = AdminClient({**shared, "log_level": 0})
        asked = [ConsumerGroupTopicPartitions(self._name)]
        answer = admin.list_consumer_group_offsets(asked, require_stable=True, request_timeout=_ANSWER_S)[self._name]
        found = answer.result(2 * _ANSWER_S).topic_partitions or ()
        return max((each.offset for each in found if each.offset >= 0), default=None)

    def write(self, prepared: Prepared) -> None:
        """Write records and their number in one transaction.

        :param prepared: the records
        :raises KafkaException: when that cannot be done, or it is not known whether it was
        """
        producer = self._begun()
        for fields in prepared.records:
            producer.send(ProducerRecord(*fields))
        producer.flush()
        # Whatever else went wrong with a record fails the transaction, which says why.
        producer.check_sizes()
        self._commit(producer, prepared.records[0][0], prepared.number)

    def renew(self, topic: str) -> None:
        """Commit the last number again, unless that was done lately. Without one it is 1, so that there is one from now on.

        :param topic: any topic that is written
        :raises KafkaException: when that cannot be done, or it is not known whether it was
        """
        if self._committed_at is None or time.monotonic() - self._committed_at > _RENEWAL_S:
            self._commit(self._begun(), topic, self.committed or 1)

    def _begun(self) -> RecordProducer:
        producer = self._producer
        assert producer is not None  # noqa: S101 (it was opened)
        producer.client.begin_transaction()
        return producer

    def _commit(self, producer: RecordProducer, topic: str, number: int) -> None:
        group = self._group
        assert group is not None  # noqa: S101 (it was opened)
        place = TopicPartition(topic, 0, number)
        producer.client.send_offsets_to_transaction([place], group.consumer_group_metadata(), _ANSWER_S)
        producer.client.commit_transaction(_ANSWER_S)
        self.committed, self._committed_at = number, time.monotonic()

    def failure(self, error: KafkaError) -> StreamProgramError:
        """Why something cannot be done.

        :param error: what a call answered
        """
        fatal = None if self._producer is None else self._producer.problems.fatal
        if any(each is not None and each.code() in _FENCED for each in (error, fatal)):
            return StreamProgramError(
                f"{self._where}: another producer has begun with the transactional id {self._name!r}: a later run of the program,"
                " or a sink with the same prefix. Nothing was written twice. Give each sink a prefix of its own"
            )
        if self._producer is None:
            return StreamProgramError(f"{self._where}: {error.str()}")
        return self._producer.failure(error)

    def is_lasting(self, error: KafkaError) -> bool:
        """Whether it is of no use to try again.

        :param error: what a call answered
        """
        problems = None if self._producer is None else self._producer.problems
        codes = [error.code(), *([] if problems is None or problems.fatal is None else [problems.fatal.code()])]
        return (problems is not None and problems.is_refused) or any(code in _FENCED for code in codes)

    def close(self) -> None:
        """Let go of the brokers; what was not committed is taken back."""
        producer, self._producer = self._producer, None
        group, self._group = self._group, None
        self.committed = self._committed_at = None
        if group is not None:
            group.close()
        if producer is not None:
            if not producer.problems.are_serious:
                with suppress(KafkaException, SystemError):
                    # Mostly because there is none.
                    producer.client.purge()
                    producer.client.abort_transaction(1.0)
            producer.close()


def _patiently(call: Callable[[], None], transactions: Transactions, deadline: float) -> None:
    """Do something until it is done.

    :raises StreamProgramError: when it cannot be done
    """
    while True:
        try:
            call()
            return
        except KafkaException as error:
            problem: KafkaError = error.args[0]
            failure = transactions.failure(problem)
            is_over = transactions.is_lasting(problem) or time.monotonic() > deadline
            transactions.close()
            if is_over:
                raise failure from error
            _log.warning("%s. It is tried again", failure)
            time.sleep(_PAUSE_S)
