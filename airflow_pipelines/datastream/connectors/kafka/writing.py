"""Writers of records without transactions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from airflow_pipelines.datastream.connectors.kafka.properties import client_properties
from airflow_pipelines.datastream.connectors.kafka.serialization import KafkaRecordSerializationSchema, ProducerRecord
from airflow_pipelines.kafka.problems import Problems, configuration, serve_callbacks
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sinks import SinkWriter

_log = logging.getLogger("airflow_pipelines.datastream")
_LOOK_S: Final = 1.0
_BUFFER_S: Final = 0.1
_LAST_S: Final = 5.0
"""The maximum time in seconds to flush records without a guarantee at the end."""
_NO_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
_TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE})


class RecordProducer:
    """A producer, and the failures of its records.

    :param where: the name of the sink, for messages
    :param properties: the properties of the client
    :param own: other properties, which the sink sets
    :raises StreamProgramError: if a property has an invalid value
    """

    def __init__(self, where: str, properties: Mapping[str, str], own: Mapping[str, Any]) -> None:
        self._where = where
        given = client_properties(properties)
        self.problems = Problems(where, str(given["bootstrap.servers"]), "the sink", StreamProgramError, StreamProgramError)
        self._failed: KafkaError | None = None
        config = configuration({"linger.ms": 5, **given, **own, "delivery.report.only.error": True}, self.problems)
        try:
            self.client = Producer({**config, "on_delivery": self._note})
        except (KafkaException, ValueError, TypeError) as error:
            problem = error.args[0] if error.args else error
            text = problem.str() if isinstance(problem, KafkaError) else str(problem)
            raise StreamProgramError(f"{where}: a property has no value that Kafka's client accepts: {text}") from error

    def send(self, record: ProducerRecord) -> None:
        """Enqueue a record in the client.

        :param record: the record
        :raises StreamProgramError: if the client does not accept it
        """
        more: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        if record.timestamp is not None:
            more["timestamp"] = record.timestamp
        if record.headers:
            more["headers"] = list(record.headers)
        while True:
            try:
                self.client.produce(record.topic, record.value, record.key, **more)
                return
            except BufferError:
                serve_callbacks(lambda: self.client.poll(_BUFFER_S), self.problems)
                self.check()
            except KafkaException as error:
                raise self.failure(error.args[0], record) from error

    def serve(self) -> None:
        """Serve the callbacks of the client."""
        serve_callbacks(lambda: self.client.poll(0), self.problems)

    def check(self) -> None:
        """Raise an error if a record was not written.

        :raises StreamProgramError: if a record was not written, or a broker refuses
        """
        if self._failed is not None or self.problems.is_refused or self.problems.fatal is not None:
            raise self.failure(self._failed)

    def check_sizes(self) -> None:
        """Raise an error if a record was too large for the brokers.

        :raises StreamProgramError: if one was too large
        """
        if self._failed is not None and self._failed.code() in _TOO_LARGE:
            raise self.failure(self._failed)

    def take_failure(self) -> StreamProgramError | None:
        """Return the failure of a record that was not written, and clear it; None if there is none."""
        failed, self._failed = self._failed, None
        return None if failed is None else self.failure(failed)

    def flush(self) -> None:
        """Wait until the outcome of each record is known, for as long as the client retries (``message.timeout.ms``).

        :raises StreamProgramError: if a broker refuses
        """
        while serve_callbacks(lambda: self.client.flush(_LOOK_S), self.problems):
            if self.problems.is_refused or self.problems.fatal is not None:
                raise self.failure(None)

    def failure(self, error: KafkaError | None, record: ProducerRecord | None = None) -> StreamProgramError:
        """Return the error for a failed write.

        :param error: the error that a call returned
        :param record: the record that was to be written
        """
        if error is not None and error.code() in _NO_TOPIC:
            topic = f"topic {record.topic!r}" if record is not None else "such topic"
            return StreamProgramError(f"{self._where}: there is no {topic} at these brokers. Make it, or correct its name")
        if error is not None and error.code() in _TOO_LARGE:
            return StreamProgramError(
                f"{self._where}: a record is larger than the client or the topic takes. Raise 'message.max.bytes' of the sink and"
                " 'max.message.bytes' of the topic"
            )
        return self.problems.failure(error)

    def close(self, seconds: float = 0) -> None:
        """Disconnect from the brokers. Records that were not acknowledged by then are dropped.

        :param seconds: the time to wait for acknowledgements
        """
        with suppress(KafkaException, SystemError):
            # A client that has failed for good raises again.
            if seconds:
                serve_callbacks(lambda: self.client.flush(seconds), self.problems)
            self.client.purge()
            serve_callbacks(lambda: self.client.flush(0), self.problems)

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and error.code() != KafkaError._PURGE_QUEUE:
            self._failed = self._failed or error


class RecordWriter(SinkWriter):
    """A writer that sends records as they come. Records that the client has not sent are lost when the program ends in an error.

    :param serializer: the schema that converts elements to records
    :param properties: the properties of the client
    :param logs_failures_only: True to only log a record that cannot be written
    """

    def __init__(
        self, serializer: KafkaRecordSerializationSchema, properties: Mapping[str, str], *, logs_failures_only: bool
    ) -> None:
        is_idempotent = not {"acks", "request.required.acks", "enable.idempotence"} & set(properties)
        self._producer = RecordProducer(
            f"KafkaSink {serializer}", properties, {"enable.idempotence": True} if is_idempotent else {}
        )
        self._serialize = serializer.serialize
        self._logs_failures_only = logs_failures_only

    def write(self, batch: Batch) -> None:
        """Write elements."""
        send, serialize = self._producer.send, self._serialize
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            record = serialize(value, timestamp)
            if record is not None:
                send(record)
        self._producer.serve()
        self._look_at_failures()

    def _look_at_failures(self) -> None:
        failure = self._producer.take_failure()
        if failure is not None:
            if not self._logs_failures_only:
                raise failure
            _log.warning("%s", failure)
        self._producer.check()

    def close(self) -> None:
        """Disconnect from the brokers."""
        self._producer.close(_LAST_S)


class FlushingWriter(RecordWriter):
    """A writer that sends records as they come. A checkpoint waits until the brokers have acknowledged all of them."""

    def prepare(self) -> Any | None:
        """Wait for the brokers, so that a checkpoint holds none of the records."""
        self._producer.flush()
        self._look_at_failures()
        return None

    def close(self) -> None:
        """Disconnect from the brokers."""
        self._producer.close()
