"""A writer with exactly-once delivery: the records of a checkpoint are written in a transaction when the checkpoint is durable."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException
from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy, error_of
from airflow_pipelines.datastream.connectors.kafka.properties import client_properties
from airflow_pipelines.datastream.connectors.kafka.serialization import KafkaRecordSerializationSchema, ProducerRecord
from airflow_pipelines.datastream.connectors.kafka.writing import send, sink_problems
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sinks import SinkWriter
from airflow_pipelines.systems.kafka.transactions import RENEWAL_S, NumberedTransactions

_log = logging.getLogger("airflow_pipelines.datastream")
_PATIENCE_S: Final = 120.0
"""The time in seconds for which a transaction is retried before the program ends. The next start retries it again."""
_PAUSE_S: Final = 0.5
_TRANSACTION_MS: Final = 120_000
_DEFAULT_MAX_BYTES: Final = 1_000_000
_OVERHEAD: Final = 512
"""The maximum number of bytes of a record besides its key and value, without headers."""

_Fields: TypeAlias = tuple[str, bytes | None, bytes | None, int | None, int | None, tuple[tuple[str, bytes | None], ...]]
_VERSION: Final = 1


@dataclass(frozen=True)
class Prepared:
    """The records of a checkpoint, which stay in the checkpoint until they are written.

    :param producer: the name of the producer, which is also the name of the group in which its number is committed
    :param number: the number of the transaction, one more than that of the previous one
    :param before: the number that was committed when this one was made; 0, with which earlier releases began, for none
    :param records: the records
    """

    producer: str
    number: int
    before: int
    records: tuple[_Fields, ...]

    def to_state(self) -> Any:
        """Return the state to store in a checkpoint."""
        return (_VERSION, self.producer, self.number, self.before, self.records)

    @classmethod
    def from_state(cls, state: Any) -> Prepared:
        """Return the records that a checkpoint stored."""
        version, *rest = state
        if version != _VERSION:
            raise StreamProgramError(f"Records for Kafka were kept in form {version}, and this release reads form {_VERSION}")
        return cls(*rest)


class TransactionalWriter(SinkWriter):
    """A writer that keeps the records of elements until their checkpoint is durable, and then writes them in one transaction.

    The transaction has a number, which it commits as the offset of a group that only this writer uses. So after any failure it is
    known whether the transaction was written.

    :param serializer: the schema that converts elements to records
    :param properties: the properties of the client
    :param name: the name of the producer and its group
    :param drops_unknown: True to drop records if the brokers no longer know whether they were written
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
        """Buffer the records of elements."""
        serialize, records, most = self._serialize, self._records, self._most_bytes
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            record = serialize(value, timestamp)
            if record is None:
                continue
            if len(record.value or b"") + len(record.key or b"") > most:
                # In a checkpoint, such a record could never be written.
                raise StreamProgramError(
                    f"{self._where}: a record of {len(record.value or b'')} bytes is larger than the client takes. Raise"
                    " 'message.max.bytes' of the sink and 'max.message.bytes' of the topic"
                )
            records.append((record.topic, record.value, record.key, record.partition, record.timestamp, record.headers))

    def prepare(self) -> Any | None:
        """Assign a number to the buffered records, and return them."""
        if not self._records:
            return None
        committed = self._renew_committed(self._records[0][0], time.monotonic() + _PATIENCE_S)
        self._last_number = max(self._last_number, committed) + 1
        prepared = Prepared(self._name, self._last_number, committed, tuple(self._records))
        self._records.clear()
        return prepared.to_state()

    def commit(self, prepared: Any) -> None:
        """Write prepared records, unless they were written before.

        :raises StreamProgramError: if that fails, or it is unknown whether they were written
        """
        wanted = Prepared.from_state(prepared)
        deadline = time.monotonic() + _PATIENCE_S
        if wanted.producer == self._name:
            self._commit(wanted, deadline)
            return
        # It was prepared by a task that no longer exists, because the parallelism has changed.
        other = Transactions(self._where, wanted.producer, self._properties)
        try:
            _retry(lambda: self._write(other, wanted), other, deadline)
        finally:
            other.close()

    def _commit(self, wanted: Prepared, deadline: float) -> None:
        own = self._own(deadline)
        _retry(lambda: self._write(own, wanted), own, deadline)

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

    def _renew_committed(self, topic: str, deadline: float) -> int:
        """Return the committed number after renewing it, so that the brokers keep it for as long as they can."""
        own = self._own(deadline)

        def renew() -> None:
            own.open()
            own.renew(topic)

        _retry(renew, own, deadline)
        if own.committed is None:
            raise AssertionError("a number that was committed is known")
        return own.committed

    def _own(self, deadline: float) -> Transactions:
        own = self._transactions = self._transactions or Transactions(self._where, self._name, self._properties)
        _retry(own.open, own, deadline)
        return own

    def close(self) -> None:
        """Disconnect from the brokers. Records without a durable checkpoint are dropped."""
        if self._transactions is not None:
            self._transactions.close()


class Transactions:
    """The transactions of a writer, with the number of the last one.

    :param where: the name of the sink, for messages
    :param name: the name of the producer
    :param properties: the properties of the client
    """

    def __init__(self, where: str, name: str, properties: Mapping[str, str]) -> None:
        self._where = where
        self._name = name
        self._properties = properties
        self._transactions: NumberedTransactions[StreamProgramError] | None = None
        self.committed: int | None = None
        """The number of the last transaction; None if none is known."""
        self._committed_at: float | None = None

    def open(self) -> None:
        """Fence other producers of this name, abort what they left unfinished, and find the last number.

        :raises KafkaException: if that fails
        """
        if self._transactions is not None:
            return
        given = client_properties(self._properties)
        problems = sink_problems(self._where, given)
        # They are closed when a step of this fails.
        own = self._transactions = NumberedTransactions(given, problems, self._name, _TRANSACTION_MS, waits_for_brokers=True)
        own.open()
        self.committed = own.find_committed()

    def write(self, prepared: Prepared) -> None:
        """Write records and their number in one transaction.

        :param prepared: the records
        :raises KafkaException: if that fails, or it is unknown whether it was written
        """
        own = self._begin_transaction()
        for fields in prepared.records:
            send(own.producer, ProducerRecord(*fields))
        own.producer.flush()
        if own.producer.has_too_large:
            # Other errors of a record fail the transaction, which reports the reason.
            own.producer.check()
        self._commit(own, prepared.records[0][0], prepared.number)

    def renew(self, topic: str) -> None:
        """Commit the last number again, unless that was done recently. Without one, commit 1, so that one exists from now on.

        :param topic: any topic that is written to
        :raises KafkaException: if that fails, or it is unknown whether it was written
        """
        if self._committed_at is None or time.monotonic() - self._committed_at > RENEWAL_S:
            self._commit(self._begin_transaction(), topic, self.committed or 1)

    def _begin_transaction(self) -> NumberedTransactions[StreamProgramError]:
        own = self._transactions
        assert own is not None  # noqa: S101 (it was opened)
        own.begin()
        return own

    def _commit(self, own: NumberedTransactions[StreamProgramError], topic: str, number: int) -> None:
        own.commit(topic, number)
        self.committed, self._committed_at = number, time.monotonic()

    def failure(self, error: KafkaError) -> StreamProgramError:
        """Return the error for a failed transaction.

        :param error: the error that a call returned
        """
        own = self._transactions
        if own is None:
            return StreamProgramError(f"{self._where}: {error.str()}")
        if own.is_fenced(error):
            return StreamProgramError(
                f"{self._where}: another producer has begun with the transactional id {self._name!r}: a later run of the program,"
                " or a sink with the same prefix. Nothing was written twice. Give each sink a prefix of its own"
            )
        return own.producer.problems.failure(error)

    def is_lasting(self, error: KafkaError) -> bool:
        """Return True if a retry is useless.

        :param error: the error that a call returned
        """
        own = self._transactions
        return own is not None and (own.producer.problems.is_refused or own.is_fenced(error))

    def close(self) -> None:
        """Disconnect from the brokers, and abort a transaction that was not committed."""
        own, self._transactions = self._transactions, None
        self.committed = self._committed_at = None
        if own is not None:
            own.close()


class _TransientFailure(StreamProgramError):
    """The error of a transaction that may succeed at another attempt."""


def _retry(call: Callable[[], None], transactions: Transactions, deadline: float) -> None:
    """Call a function until it succeeds or the deadline has passed.

    :raises StreamProgramError: if it fails for good
    """

    def attempt() -> None:
        try:
            call()
        except KafkaException as error:
            failure, is_lasting = transactions.failure(error.args[0]), transactions.is_lasting(error.args[0])
            transactions.close()
            raise failure if is_lasting else _TransientFailure(str(failure)) from error

    policy = RetryPolicy(first_wait_s=_PAUSE_S, longest_wait_s=_PAUSE_S, limit_s=max(0.0, deadline - time.monotonic()))
    policy.retrying(
        retry_if_exception_type(_TransientFailure),
        before_sleep=lambda state: _log.warning("%s. It is tried again", error_of(state)),
    )(attempt)
