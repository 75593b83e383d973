"""Outputs that write the changes of a view to a topic of Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import OutputContext
from airflow_pipelines.connectors.left_out import records_that_fit
from airflow_pipelines.connectors.transports.kafka.failures import connector_problems, failures_of_format
from airflow_pipelines.connectors.transports.kafka.options import KafkaOutputOptions
from airflow_pipelines.connectors.transports.kafka.single_records import TOO_LARGE, SingleRecords
from airflow_pipelines.kafka.problems import configuration, serve_callbacks
from airflow_pipelines.kafka.properties import SHARED_PROPERTIES
from airflow_pipelines.rows.formats.keyed_documents import KeyedDocuments
from airflow_pipelines.rows.formats.messages import MessageEncoder, WrittenMessage

_ANSWER_S: Final = 5.0
"""The maximum time, in seconds, that a broker may take for an answer."""
_LOOK_S: Final = 1.0
_STEP_S: Final = 300.0
"""The maximum time, in seconds, to write a step before it is retried."""
_BUFFER_S: Final = 0.1
_TRANSACTION_MS: Final = 600_000
_RENEWAL_S: Final = 3600.0
"""The interval, in seconds, at which offsets are written again.

Brokers forget offsets after days, and at the earliest after minutes: see offsets.retention.minutes.
"""
_NO_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
_OF_BOTH: Final = SHARED_PROPERTIES | {"bootstrap.servers", "log_level"}
_FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
Delivered: TypeAlias = Callable[["KafkaError | None", Message], None]
_TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE})


class _TooLargeFailure(ConnectorFailure):
    """The failure for a record, or several together, larger than the client or the topic takes."""


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
        self._producer: Producer | None = None
        self._failed: KafkaError | None = None
        self._more: dict[str, Any] = {}

    def open(self, resumed: bool) -> None:  # noqa: ARG002 - a topic goes on where it ends in any case
        """Connect, and check that the topic exists.

        :raises ConnectorFailure: when a broker refuses, or a property has a bad value
        :raises TransientConnectorFailure: when no broker answers, or there is no such topic yet
        """
        self._producer = self._new_producer({"enable.idempotence": True})
        self._find_topic(self._producer)
        self._open_format()

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step's changes; they are in the topic when this returns.

        :returns: the number of records and the number of bytes that were written
        :raises ConnectorFailure: when a broker refuses them
        :raises TransientConnectorFailure: when they cannot be written at the moment
        """
        try:
            producer = self._require_producer()
            written = self._produce(producer, changes)
            self._flush(producer)
        except _TooLargeFailure:
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

    def _send_single(self, producer: Producer, single: SingleRecords, *, again: bool) -> tuple[int, int]:
        self._begin_step()
        deadline = time.monotonic() + _STEP_S

        def send(message: WrittenMessage, refused: Callable[[], None]) -> None:
            def note_delivery(error: KafkaError | None, record: Message) -> None:
                if error is not None and error.code() in _TOO_LARGE:
                    refused()
                else:
                    self._note_delivery(error, record)

            try:
                self._send(producer, message, deadline, note_delivery)
            except _TooLargeFailure:
                refused()

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
            with suppress(KafkaException, SystemError):
                # A client that has failed raises its error again.
                producer.purge()
                serve_callbacks(lambda: producer.flush(0), self._problems)

    def _new_producer(self, own: dict[str, Any]) -> Producer:
        config = configuration({"linger.ms": 5, **self._options.properties(), **own, **self._more}, self._problems)
        try:
            return Producer(config)
        except (KafkaException, ValueError, TypeError) as error:
            problem = error.args[0] if error.args else error
            text = problem.str() if isinstance(problem, KafkaError) else str(problem)
            raise ConnectorFailure(f"{self._where}: an option has no value that Kafka's client accepts: {text}") from error

    def _find_topic(self, producer: Producer) -> None:
        deadline = time.monotonic() + _ANSWER_S
        while True:
            try:
                topic = producer.list_topics(self._options.topic, timeout=_LOOK_S).topics[self._options.topic]
                break
            except KafkaException as error:
                # The answer does not contain the refusal of a broker; poll reports it.
                serve_callbacks(lambda: producer.poll(0), self._problems)
                if self._problems.are_serious or time.monotonic() > deadline:
                    raise self._problems.failure(error.args[0]) from error
        if topic.error is not None:
            raise self._failure(topic.error)
        self._problems.clear_transient()

    def _open_format(self) -> None:
        with failures_of_format(self._where):
            self._encoder.open(self._options.topic)

    def _produce(self, producer: Producer, changes: Changes) -> tuple[int, int]:
        self._begin_step()
        records = size = 0
        deadline = time.monotonic() + _STEP_S
        with failures_of_format(self._where):
            for table in changes.tables():
                for message in records_that_fit(table, self._encoder.messages, self._left_out):
                    self._send(producer, message, deadline)
                    records += 1
                    size += message.size
        return records, size

    def _begin_step(self) -> None:
        if self._fence is not None:
            self._fence.check()
        self._failed = None

    def _send(self, producer: Producer, message: WrittenMessage, deadline: float, delivered: Delivered | None = None) -> None:
        headers = [*self._headers, *message.headers] if message.headers else self._headers
        while True:
            try:
                producer.produce(
                    self._options.topic, message.value, message.key, headers=headers, on_delivery=delivered or self._note_delivery
                )
                return
            except BufferError as error:
                serve_callbacks(lambda: producer.poll(_BUFFER_S), self._problems)
                if self._failed is not None or self._problems.are_serious or time.monotonic() > deadline:
                    raise self._failure(self._failed) from error
            except KafkaException as error:
                raise self._failure(error.args[0], message.size) from error

    def _flush(self, producer: Producer) -> None:
        self._settle(producer)
        if self._failed is not None or self._problems.fatal is not None:
            raise self._failure(self._failed)

    def _settle(self, producer: Producer, is_lost: Callable[[], bool] = lambda: False) -> None:
        """Wait until it is known of each record whether it was written.

        :param is_lost: a function that returns True if nothing more is written anyway
        """
        deadline = time.monotonic() + _STEP_S
        while serve_callbacks(lambda: producer.flush(_LOOK_S), self._problems) and not is_lost():
            if self._problems.are_serious or time.monotonic() > deadline:
                raise self._failure(self._failed)

    def _note_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and (self._failed is None or self._failed.code() == KafkaError._PURGE_QUEUE):
            self._failed = error

    def _failure(self, error: KafkaError | None, size: int | None = None) -> ConnectorFailure:
        if error is not None and error.code() in _NO_TOPIC:
            return TransientConnectorFailure(
                f"{self._where}: there is no such topic at {self._options.bootstrap_servers}. It is looked for again until "
                "somebody makes it; if the name is wrong, correct 'topic' of the connector"
            )
        if error is not None and error.code() in _TOO_LARGE:
            return _TooLargeFailure(f"{self._where}: {TOO_LARGE.format(size='?' if size is None else size)}")
        return self._problems.failure(error)

    def _require_producer(self) -> Producer:
        """Return the producer, if the brokers were there all the time.

        A producer that has to find them again takes longer than a new one.

        :raises TransientConnectorFailure: when they were not
        """
        producer = self._producer
        if producer is None:
            raise ConnectorFailure(f"{self._where}: it is not open")
        serve_callbacks(lambda: producer.poll(0), self._problems)
        if self._problems.are_serious:
            raise self._failure(None)
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
        self._steps: Consumer | None = None

    def open(self, resumed: bool) -> None:  # noqa: ARG002 - a topic goes on where it ends in any case
        """Connect, abort unfinished transactions of an earlier run, and keep that run from writing.

        :raises ConnectorFailure: when a broker refuses, or a property has a bad value
        :raises TransientConnectorFailure: when no broker answers, or there is no such topic yet
        """
        limit = self._options.properties().get("transaction.timeout.ms", _TRANSACTION_MS)
        # After a rebootstrap this client would never find its transaction coordinator again.
        keeps_brokers = {"metadata.recovery.strategy": "none"}
        own = {"transactional.id": self._name, "transaction.timeout.ms": limit, **keeps_brokers}
        producer = self._producer = self._new_producer(own)
        self._find_topic(producer)
        self._open_format()
        try:
            producer.init_transactions(_ANSWER_S * 4)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error
        shared = {name: value for name, value in self._options.properties().items() if name in _OF_BOTH}
        reads = {"group.id": self._name, "enable.auto.commit": False, "isolation.level": "read_committed"}
        self._steps = Consumer(configuration({**shared, **reads}, self._problems))

    @property
    def renewal_s(self) -> float:
        """The number of seconds without a step after which its number is written again."""
        return _RENEWAL_S

    def renew(self, step: int) -> None:
        """Write the number of a step again, before the brokers forget it.

        :raises ConnectorFailure: when a broker refuses, or another run of the output has begun
        :raises TransientConnectorFailure: when it cannot be written at the moment
        """
        producer = self._require_producer()
        try:
            producer.begin_transaction()
            self._commit(producer, step)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def was_written(self) -> bool:
        """Return True if the topic has, or had, records.

        :raises ConnectorFailure: when it cannot be found out
        """
        if self._steps is None:
            return False
        try:
            partitions = self._steps.list_topics(self._options.topic, timeout=_ANSWER_S).topics[self._options.topic].partitions
            places = [TopicPartition(self._options.topic, number) for number in partitions]
            return any(self._steps.get_watermark_offsets(place, timeout=_ANSWER_S)[1] > 0 for place in places)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def committed_step(self) -> int | None:
        """Return the newest step in the topic, or None if there is none.

        :raises ConnectorFailure: when it cannot be found out
        """
        if self._steps is None:
            return None
        try:
            (place,) = self._steps.committed([TopicPartition(self._options.topic, 0)], timeout=_ANSWER_S)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error
        if place.error is not None:
            raise self._failure(place.error)
        return None if place.offset < 0 else place.offset

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step's changes and its number; both are in the topic when this returns.

        :returns: the number of records and the number of bytes that were written
        :raises ConnectorFailure: when a broker refuses them, or another run of the output has begun
        :raises TransientConnectorFailure: when they cannot be written, or it is not known whether they were
        """
        try:
            producer = self._require_producer()
            producer.begin_transaction()
            written = self._produce(producer, changes)
            self._settle(producer, self._is_too_large)
            if self._is_too_large():
                raise self._failure(self._failed)
            # All other errors of records fail the transaction, which reports them.
            self._commit(producer, step)
        except (KafkaException, ConnectorFailure) as error:
            if isinstance(error, _TooLargeFailure) or self._has_too_large():
                return self._write_what_fits(step, changes)
            if isinstance(error, ConnectorFailure):
                raise
            raise self._failure(error.args[0]) from error
        return written

    def _has_too_large(self) -> bool:
        """Return True if a transaction fails because a record is too large; at first the client reports only that it fails."""
        producer = self._producer
        if producer is not None:
            with suppress(KafkaException, SystemError):
                serve_callbacks(lambda: producer.flush(_LOOK_S), self._problems)
        return self._is_too_large()

    def _is_too_large(self) -> bool:
        return self._failed is not None and self._failed.code() in _TOO_LARGE

    def _round(self, step: int, single: SingleRecords) -> tuple[int, int]:
        producer = self._require_producer()
        try:
            producer.begin_transaction()
            written = self._send_single(producer, single, again=True)
            self._settle(producer, lambda: single.has_found)
            if not single.has_found:
                self._commit(producer, step)
                return written
        except (KafkaException, ConnectorFailure) as error:
            self._has_too_large()
            if isinstance(error, ConnectorFailure) and not single.has_found:
                raise
            if not single.has_found:
                raise self._failure(error.args[0]) from error
        # A single refused record fails the transaction.
        self._open_again(self._more)
        return 0, 0

    def close(self) -> None:
        """Close the clients; what was not committed is aborted."""
        producer, steps = self._producer, self._steps
        self._steps = None
        if steps is not None:
            steps.close()
        if producer is not None:
            self._take_back(producer)
        super().close()

    def _commit(self, producer: Producer, step: int) -> None:
        """Commit a transaction with the number of a step."""
        if self._steps is None:
            raise ConnectorFailure(f"{self._where}: it is not open")
        number = TopicPartition(self._options.topic, 0, step)
        producer.send_offsets_to_transaction([number], self._steps.consumer_group_metadata(), _ANSWER_S * 4)
        producer.commit_transaction(_ANSWER_S * 4)

    def _take_back(self, producer: Producer) -> None:
        if self._problems.are_serious:
            # The next run aborts it, or the broker when the transaction times out.
            return
        with suppress(KafkaException, SystemError):
            # Usually there is no transaction; otherwise it ends as if the client were unreachable.
            producer.purge()
            producer.abort_transaction(_LOOK_S)

    def _failure(self, error: KafkaError | None, size: int | None = None) -> ConnectorFailure:
        if any(each is not None and each.code() in _FENCED for each in (error, self._problems.fatal)):
            return ConnectorFailure(
                f"{self._where}: another producer has begun with the 'transactional.id' {self._name!r}: a later run of the "
                "pipeline, or an output that was given the same id. Nothing was written twice. Give each output an id of its own"
            )
        return super()._failure(error, size)
