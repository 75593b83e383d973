"""Writers of records without transactions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from airflow_pipelines.datastream.connectors.kafka.properties import SERVERS, client_properties
from airflow_pipelines.datastream.connectors.kafka.serialization import KafkaRecordSerializationSchema, ProducerRecord
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sinks import SinkWriter
from airflow_pipelines.systems.kafka.problems import Problems
from airflow_pipelines.systems.kafka.producer import RecordProducer

_log = logging.getLogger("airflow_pipelines.datastream")
_LAST_S: Final = 5.0
"""The maximum time in seconds to flush records without a guarantee at the end."""
SinkProducer: TypeAlias = RecordProducer[StreamProgramError]


def sink_problems(where: str, properties: Mapping[str, Any]) -> Problems[StreamProgramError]:
    """Return the record of the problems that the client of a sink reports.

    :param where: the sink and its topic, for messages
    :param properties: the properties of the client
    """
    return Problems(where, str(properties[SERVERS]), "the sink", StreamProgramError, StreamProgramError)


def send(producer: SinkProducer, record: ProducerRecord) -> None:
    """Enqueue a record in the client.

    :param producer: the producer
    :param record: the record
    :raises StreamProgramError: if the client does not accept it
    """
    producer.send(
        record.topic, record.value, record.key, headers=record.headers, partition=record.partition, timestamp=record.timestamp
    )


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
        given = {**client_properties(properties), **({"enable.idempotence": True} if is_idempotent else {})}
        problems = sink_problems(f"KafkaSink {serializer}", given)
        self._producer = RecordProducer(given, problems, waits_for_brokers=True)
        self._serialize = serializer.serialize
        self._logs_failures_only = logs_failures_only

    def write(self, batch: Batch) -> None:
        """Write elements."""
        producer, serialize = self._producer, self._serialize
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            record = serialize(value, timestamp)
            if record is not None:
                send(producer, record)
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
