"""Outputs that write the changes of a view to a topic of Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import OutputContext
from airflow_pipelines.connectors.left_out import records_that_fit
from airflow_pipelines.connectors.transports.kafka.failures import connector_problems, failures_of_format
from airflow_pipelines.connectors.transports.kafka.options import KafkaOutputOptions
from airflow_pipelines.connectors.transports.kafka.single_records import SingleRecords
from airflow_pipelines.rows.formats.keyed_documents import KeyedDocuments
from airflow_pipelines.rows.formats.messages import MessageEncoder, WrittenMessage
from airflow_pipelines.systems.kafka.producer import RecordProducer
from airflow_pipelines.systems.kafka.topics import find_topics
from airflow_pipelines.systems.kafka.transactions import RENEWAL_S, NumberedTransactions

_STEP_S: Final = 300.0
"""The maximum time, in seconds, to write a step before it is retried."""
_TRANSACTION_MS: Final = 600_000
OutputProducer: TypeAlias = RecordProducer[ConnectorFailure]


class KafkaOutput:
    """An output that writes each change as a record, keyed by the columns of the index, or by the whole row.

    After a crash some records may come again.
    """

    def __init__(self, options: KafkaOutputOptions, context: OutputContext) -> None:
        """Make an output that is not open yet.

        :param options: the options that say where to write
        :param context: the context of the connector, with the view, its format and the writer
        """
        self._options = options
        self._fence = context.fence
        self._left_out = context.left_out
        self._headers: list[tuple[str, str | bytes | None]] = [(each.key, each.data) for each in options.headers]
        self._where = f"kafka_output {options.topic}"
        with failures_of_format(self._where):
            self._encoder: MessageEncoder = (
                KeyedDocuments(context.new_encoder(), context.key)
                if context.new_message_encoder is None
                else context.new_message_encoder()
            )
        self._problems = connector_problems(self._where, options.bootstrap_servers)
        self._producer: OutputProducer | None = None
        self._more: dict[str, Any] = {}

    def open(self, resumed: bool) -> None:  # noqa: ARG002 - a topic goes on where it ends in any case
        """Connect, and check that the topic exists.

        :raises ConnectorFailure: when a broker refuses, or a property has a bad value
        :raises TransientConnectorFailure: when no broker answers, or there is no such topic yet
        """
        properties = {**self._options.properties(), "enable.idempotence": True, **self._more}
        self._producer = RecordProducer(properties, self._problems, waits_for_brokers=False)
        self._check_topic(self._producer)
        self._open_format()

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step's changes; they are in the topic when this returns.

        :returns: the number of records and the number of bytes that were written
        :raises ConnectorFailure: when a broker refuses them
        :raises TransientConnectorFailure: when they cannot be written at the moment
        """
        producer = self._require_producer()
        try:
            written = self._produce(producer, changes)
            self._flush(producer)
        except ConnectorFailure:
            if not producer.has_too_large:
                raise
            return self._write_what_fits(step, changes)
        return written

    def _write_what_fits(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step without its records that are too large. The part of it that was written before is written again."""
        single = self._single(changes)
        # Send single records, since brokers refuse batches as a whole.
        self._open_again({"batch.num.messages": 1})
        records = size = 0
        while True:
            sent, bytes_of = self._round(step, single)
            records, size = records + sent, size + bytes_of
            if not single.has_found:
                break
        self._open_again({})
        return records, size

    def _round(self, step: int, single: SingleRecords) -> tuple[int, int]:  # noqa: ARG002 - a transaction has a step
        """Send the rest of a step; afterwards it is known which records are too large."""
        producer = self._require_producer()
        written = self._send_single(producer, single, again=False)
        self._flush(producer)
        return written

    def _single(self, changes: Changes) -> SingleRecords:
        given = self._options.properties()
        kind = given.get("compression.type", given.get("compression.codec", "none"))
        return SingleRecords(changes, self._encoder, self._left_out, is_compressed=kind != "none")

    def _send_single(self, producer: OutputProducer, single: SingleRecords, *, again: bool) -> tuple[int, int]:
        self._begin_step(producer)
        deadline = time.monotonic() + _STEP_S

        def send(message: WrittenMessage, refused: Callable[[], None]) -> None:
            self._send(producer, message, deadline, refused)

        with failures_of_format(self._where):
            return single.send(send, again=again)

    def _open_again(self, more: dict[str, Any]) -> None:
        """Replace the producer by a new one.

        :param more: the additional properties of the new one
        """
        self.close()
        self._more = more
        self.open(True)

    def close(self) -> None:
        """Close the producer; records that were not acknowledged are no longer sent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def _check_topic(self, producer: OutputProducer) -> None:
        name = self._options.topic
        topic = find_topics(producer.client, name, self._problems)[name]
        if topic.error is not None:
            raise self._problems.failure(topic.error)
        self._problems.clear_transient()

    def _open_format(self) -> None:
        with failures_of_format(self._where):
            self._encoder.open(self._options.topic)

    def _produce(self, producer: OutputProducer, changes: Changes) -> tuple[int, int]:
        self._begin_step(producer)
        records = size = 0
        deadline = time.monotonic() + _STEP_S
        with failures_of_format(self._where):
            for table in changes.tables():
                for message in records_that_fit(table, self._encoder.messages, self._left_out):
                    self._send(producer, message, deadline)
                    records += 1
                    size += message.size
        return records, size

    def _begin_step(self, producer: OutputProducer) -> None:
        if self._fence is not None:
            self._fence.check()
        producer.failed = None

    def _send(
        self, producer: OutputProducer, message: WrittenMessage, deadline: float, refused: Callable[[], None] | None = None
    ) -> None:
        headers = [*self._headers, *message.headers] if message.headers else self._headers
        producer.send(self._options.topic, message.value, message.key, headers=headers, deadline=deadline, on_refusal=refused)

    def _flush(self, producer: OutputProducer) -> None:
        producer.flush(time.monotonic() + _STEP_S)
        # Brokers that were away meanwhile do not matter any more.
        if producer.failed is not None or self._problems.fatal is not None:
            raise self._problems.failure(producer.failed)

    def _require_producer(self) -> OutputProducer:
        """Return the producer, if the brokers were there all the time.

        A producer that has to find them again takes longer than a new one.

        :raises TransientConnectorFailure: when they were not
        """
        producer = self._producer
        if producer is None:
            raise ConnectorFailure(f"{self._where}: it is not open")
        producer.serve()
        if self._problems.are_serious:
            raise self._problems.failure()
        return producer


class TransactionalKafkaOutput(KafkaOutput):
    """An output that writes each step as a transaction, together with the step's number.

    The number is committed as an offset of a group that only this output uses. Consumers that read only committed records see
    each step once, and as a whole.
    """

    def __init__(self, options: KafkaOutputOptions, context: OutputContext) -> None:
        """Make an output that is not open yet.

        :param options: the options that say where to write
        :param context: the context of the connector, with the view, its format and the writer
        """
        super().__init__(options, context)
        self._name = options.transactional_id or f"airflow-pipelines-{context.writer}"
        self._transactions: NumberedTransactions[ConnectorFailure] | None = None

    def open(self, resumed: bool) -> None:  # noqa: ARG002 - a topic goes on where it ends in any case
        """Connect, abort unfinished transactions of an earlier run, and keep that run from writing.

        :raises ConnectorFailure: when a broker refuses, or a property has a bad value
        :raises TransientConnectorFailure: when no broker answers, or there is no such topic yet
        """
        properties = {**self._options.properties(), **self._more}
        self._transactions = NumberedTransactions(properties, self._problems, self._name, _TRANSACTION_MS, waits_for_brokers=False)
        self._producer = self._transactions.producer
        self._check_topic(self._producer)
        self._open_format()
        with self._failures():
            self._transactions.open()

    @property
    def renewal_s(self) -> float:
        """The number of seconds without a step after which its number is written again."""
        return RENEWAL_S

    def renew(self, step: int) -> None:
        """Write the number of a step again, before the brokers forget it.

        :raises ConnectorFailure: when a broker refuses, or another run of the output has begun
        :raises TransientConnectorFailure: when it cannot be written at the moment
        """
        with self._failures():
            transactions = self._begin()
            transactions.commit(self._options.topic, step)

    def was_written(self) -> bool:
        """Return True if the topic has, or had, records.

        :raises ConnectorFailure: when it cannot be found out
        """
        with self._failures():
            return self._transactions is not None and self._transactions.has_records(self._options.topic)

    def committed_step(self) -> int | None:
        """Return the newest step in the topic, or None if there is none.

        :raises ConnectorFailure: when it cannot be found out
        """
        with self._failures():
            return None if self._transactions is None else self._transactions.find_committed(self._options.topic)

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step's changes and its number; both are in the topic when this returns.

        :returns: the number of records and the number of bytes that were written
        :raises ConnectorFailure: when a broker refuses them, or another run of the output has begun
        :raises TransientConnectorFailure: when they cannot be written, or it is not known whether they were
        """
        with self._failures():
            transactions = self._begin()
            producer = transactions.producer
            try:
                written = self._produce(producer, changes)
                producer.flush(time.monotonic() + _STEP_S, lambda: producer.has_too_large)
                if not producer.has_too_large:
                    # All other errors of records fail the transaction, which reports them.
                    transactions.commit(self._options.topic, step)
                    return written
            except (KafkaException, ConnectorFailure):
                if not self._has_too_large(producer):
                    raise
        return self._write_what_fits(step, changes)

    def _begin(self) -> NumberedTransactions[ConnectorFailure]:
        self._require_producer()
        if self._transactions is None:
            raise ConnectorFailure(f"{self._where}: it is not open")
        self._transactions.begin()
        return self._transactions

    def _has_too_large(self, producer: OutputProducer) -> bool:
        """Return True if a transaction fails because a record is too large; at first the client reports only that it fails."""
        with suppress(KafkaException, SystemError, ConnectorFailure):
            producer.flush(0.0)
        return producer.has_too_large

    def _round(self, step: int, single: SingleRecords) -> tuple[int, int]:
        with self._failures():
            transactions = self._begin()
            producer = transactions.producer
            try:
                written = self._send_single(producer, single, again=True)
                producer.flush(time.monotonic() + _STEP_S, lambda: single.has_found)
                if not single.has_found:
                    transactions.commit(self._options.topic, step)
                    return written
            except (KafkaException, ConnectorFailure):
                self._has_too_large(producer)
                if not single.has_found:
                    raise
        # A single refused record fails the transaction.
        self._open_again(self._more)
        return 0, 0

    def close(self) -> None:
        """Close the clients; what was not committed is aborted."""
        transactions, self._transactions = self._transactions, None
        self._producer = None
        if transactions is not None:
            transactions.close()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors of the client into failures of the connector, and say so if another run of the output has begun."""
        try:
            yield
        except (KafkaException, ConnectorFailure) as error:
            reason: KafkaError | None = error.args[0] if isinstance(error, KafkaException) else None
            if self._transactions is not None and self._transactions.is_fenced(reason):
                raise ConnectorFailure(
                    f"{self._where}: another producer has begun with the 'transactional.id' {self._name!r}: a later run of the "
                    "pipeline, or an output that was given the same id. Nothing was written twice. Give each output an id of its "
                    "own"
                ) from error
            if isinstance(error, ConnectorFailure):
                raise
            raise self._problems.failure(reason) from error
