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
    """The guarantee of the number of times that a record is written, whatever fails in between."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A sink that writes a record for each element. Use :meth:`builder` to make one.

    :param serializer: the schema that converts elements to records
    :param guarantee: the delivery guarantee
    :param properties: the properties of the client
    :param transactional_id_prefix: the prefix of the names of the producers, for ``EXACTLY_ONCE``
    :param drops_unknown: True to drop records if it is no longer known whether they were written; otherwise that is an error
    :param logs_failures_only: True to only log a record that cannot be written
    """

    serializer: KafkaRecordSerializationSchema
    guarantee: DeliveryGuarantee
    properties: Mapping[str, str] = field(repr=False)
    transactional_id_prefix: str = ""
    drops_unknown: bool = False
    logs_failures_only: bool = False

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Return a builder for a sink.

        :returns: the builder
        """
        return KafkaSinkBuilder()

    def references(self) -> Sequence[str]:
        """Return the references in the properties.

        :returns: references such as ``${secret:NAME}``
        """
        return references_of(self.properties)

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer for one task.

        :param subtask: the task that writes
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
    """A builder of :class:`KafkaSink`.

    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> from airflow_pipelines.datastream.connectors import DeliveryGuarantee, KafkaRecordSerializationSchema, KafkaSink
    >>> record = KafkaRecordSerializationSchema.builder().set_topic("sales").set_value_serialization_schema(SimpleStringSchema())
    >>> builder = KafkaSink.builder().set_bootstrap_servers("kafka:9092").set_record_serializer(record.build())
    >>> builder = builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("shop-sales")
    >>> builder.set_property("sasl.password", "${secret:kafka/password}").build().references()
    ('${secret:kafka/password}',)
    """

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._prefix = ""
        self._drops_unknown = False

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Set the bootstrap brokers.

        :param bootstrap_servers: ``host:port``, separated by commas; may contain references
        :returns: this object
        """
        return self.set_property(SERVERS, checks.text("bootstrap_servers", bootstrap_servers))

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Set the schema that converts elements to records.

        :param record_serializer: a schema from ``KafkaRecordSerializationSchema.builder()``
        :returns: this object
        """
        hint = "use KafkaRecordSerializationSchema.builder()"
        self._serializer = checks.instance("record_serializer", record_serializer, KafkaRecordSerializationSchema, hint)
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Set the delivery guarantee.

        ``EXACTLY_ONCE`` needs a prefix for transactional ids, and checkpoints: records are written when their checkpoint is
        durable.

        :param delivery_guarantee: the guarantee; ``AT_LEAST_ONCE`` by default
        :returns: this object
        """
        self._guarantee = checks.member("delivery_guarantee", delivery_guarantee, DeliveryGuarantee)
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set the prefix of the names of the producers. Two sinks on the same brokers must not have the same one.

        :param transactional_id_prefix: the prefix, which must stay the same across restarts
        :returns: this object
        """
        self._prefix = checks.text("transactional_id_prefix", transactional_id_prefix)
        return self

    def ignore_failures_after_transaction_timeout(self) -> KafkaSinkBuilder:
        """Drop records of the last checkpoint if the brokers have forgotten whether they were written.

        By default, that is an error when the program starts again.

        :returns: this object
        """
        self._drops_unknown = True
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Set a property of the client.

        :param key: the name of the property in librdkafka
        :param value: the value as text; may contain references
        :returns: this object
        """
        self._properties.update(checked_properties("props", {key: value}, OF_SINKS))
        return self

    def build(self) -> KafkaSink:
        """Make the sink.

        :returns: the sink
        :raises ValueError: if something is missing
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
