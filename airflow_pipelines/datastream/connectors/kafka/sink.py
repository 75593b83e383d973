"""A sink that writes to topics of Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.connectors.base import Sink
from airflow_pipelines.datastream.connectors.kafka.properties import OF_SINKS, SERVERS, checked_properties, references_of
from airflow_pipelines.datastream.connectors.kafka.serialization import KafkaRecordSerializationSchema
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo


class DeliveryGuarantee(Enum):
    """How often a record is written, whatever fails in between."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@dataclass(frozen=True)
class KafkaSink(Sink):
    """Writes a record for each element. Made with :meth:`builder`.

    :param serializer: makes the records
    :param guarantee: how often a record is written
    :param properties: of the client
    :param transactional_id_prefix: begins the names of the producers, for ``EXACTLY_ONCE``
    :param drops_unknown: whether records of which it is not known any more whether they were written are left out; else that is an
        error
    :param logs_failures_only: whether a record that cannot be written is only logged
    """

    serializer: KafkaRecordSerializationSchema
    guarantee: DeliveryGuarantee
    properties: Mapping[str, str] = field(repr=False)
    transactional_id_prefix: str = ""
    drops_unknown: bool = False
    logs_failures_only: bool = False

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Begin a sink.

        :returns: the builder
        """
        return KafkaSinkBuilder()

    def references(self) -> Sequence[str]:
        """Those of its properties.

        :returns: such as ``${secret:NAME}``
        """
        return references_of(self.properties)

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Begin to write.

        :param subtask: which task writes
        :returns: its writer
        """
        # Only programs that write to Kafka need its client.
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            from airflow_pipelines.datastream.connectors.kafka.transactions import TransactionalWriter

            return TransactionalWriter(
                self.serializer,
                self.properties,
                f"{self.transactional_id_prefix}-{subtask.index}",
                drops_unknown=self.drops_unknown,
            )
        from airflow_pipelines.datastream.connectors.kafka.writing import FlushingWriter, RecordWriter

        writer = FlushingWriter if self.guarantee is DeliveryGuarantee.AT_LEAST_ONCE else RecordWriter
        return writer(self.serializer, self.properties, logs_failures_only=self.logs_failures_only)


class KafkaSinkBuilder:
    """Makes a :class:`KafkaSink`."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._prefix = ""
        self._drops_unknown = False

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Set the brokers to begin with.

        :param bootstrap_servers: ``host:port``, separated by commas; may have references
        :returns: this object
        """
        return self.set_property(SERVERS, checks.text("bootstrap_servers", bootstrap_servers))

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Set what makes records of elements.

        :param record_serializer: from ``KafkaRecordSerializationSchema.builder()``
        :returns: this object
        """
        hint = "use KafkaRecordSerializationSchema.builder()"
        self._serializer = checks.instance("record_serializer", record_serializer, KafkaRecordSerializationSchema, hint)
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Set how often a record is written. ``EXACTLY_ONCE`` needs a prefix for transactional ids, and checkpoints: records are
        written when the checkpoint is durable that they belong to.

        :param delivery_guarantee: ``AT_LEAST_ONCE`` by default
        :returns: this object
        """
        self._guarantee = checks.member("delivery_guarantee", delivery_guarantee, DeliveryGuarantee)
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set how the names of the producers begin. No two sinks on the same brokers may have the same.

        :param transactional_id_prefix: the prefix, which stays the same over restarts
        :returns: this object
        """
        self._prefix = checks.text("transactional_id_prefix", transactional_id_prefix)
        return self

    def ignore_failures_after_transaction_timeout(self) -> KafkaSinkBuilder:
        """Set that records of the last checkpoint are left out when brokers have forgotten whether they were written.

        Otherwise that is an error when the program starts again.

        :returns: this object
        """
        self._drops_unknown = True
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Set a property of the client.

        :param key: its name in librdkafka
        :param value: its value, as text; may have references
        :returns: this object
        """
        self._properties.update(checked_properties("props", {key: value}, OF_SINKS))
        return self

    def build(self) -> KafkaSink:
        """Make the sink.

        :returns: the sink
        :raises ValueError: when something is missing
        """
        if not self._properties.get(SERVERS):
            raise ValueError("The sink needs brokers: call set_bootstrap_servers('host:9092') before build()")
        if self._serializer is None:
            raise ValueError(
                "The sink needs a schema: call set_record_serializer() with one from KafkaRecordSerializationSchema.builder()"
                " before build()"
            )
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and not self._prefix:
            raise ValueError("EXACTLY_ONCE needs a name for the producers: call set_transactional_id_prefix('name') before build()")
        return KafkaSink(self._serializer, self._guarantee, dict(self._properties), self._prefix, self._drops_unknown)
