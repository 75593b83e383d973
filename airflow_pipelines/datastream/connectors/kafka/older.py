"""The older classes for Kafka, which wrap the newer ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.serialization import DeserializationSchema, SerializationSchema
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.connectors.base import Sink, Source
from airflow_pipelines.datastream.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, Start
from airflow_pipelines.datastream.connectors.kafka.properties import (
    COMMIT,
    GROUP,
    OF_SINKS,
    OF_SOURCES,
    RESET,
    SERVERS,
    checked_properties,
    references_of,
)
from airflow_pipelines.datastream.connectors.kafka.reading_settings import ReadingSettings, TopicChoice
from airflow_pipelines.datastream.connectors.kafka.records import SCHEMA_HINT, ValueOnly
from airflow_pipelines.datastream.connectors.kafka.serialization import WRITING_HINT, KeyAndValue
from airflow_pipelines.datastream.connectors.kafka.shared_client import SharedClient
from airflow_pipelines.datastream.connectors.kafka.sink import DeliveryGuarantee, KafkaSink
from airflow_pipelines.datastream.connectors.kafka.source import KafkaSource, look_interval
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo
from airflow_pipelines.streams.sources import SourceReader

_TRANSACTIONAL_ID = "transactional.id"


class ProducerSemantic(Enum):
    """The delivery guarantee of a producer.

    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> from airflow_pipelines.datastream.connectors import KafkaProducer, Semantic
    >>> properties = {"bootstrap.servers": "kafka:9092", "transactional.id": "shop-sales"}
    >>> KafkaProducer("sales", SimpleStringSchema(), properties, semantic=Semantic.EXACTLY_ONCE).semantic
    <ProducerSemantic.EXACTLY_ONCE: 0>
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


Semantic = ProducerSemantic
_GUARANTEES = {
    ProducerSemantic.EXACTLY_ONCE: DeliveryGuarantee.EXACTLY_ONCE,
    ProducerSemantic.AT_LEAST_ONCE: DeliveryGuarantee.AT_LEAST_ONCE,
    ProducerSemantic.NONE: DeliveryGuarantee.NONE,
}


class KafkaConsumer(Source):
    """A source that reads topics of Kafka: :class:`KafkaSource` with a schema for values.

    It begins with the offsets of the group. If there are none, the property ``auto.offset.reset`` decides whether it begins with
    the oldest records or, by default, with future ones.

    :param topics: a topic, or a list of topics
    :param deserialization_schema: the schema that converts a value to an element
    :param properties: the properties of the client, at least ``bootstrap.servers``

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> from airflow_pipelines.datastream.connectors import KafkaConsumer
    >>> consumer = KafkaConsumer("sales", SimpleStringSchema(), {"bootstrap.servers": "kafka:9092", "group.id": "shop"})
    >>> sales = StreamExecutionEnvironment.get_execution_environment().add_source(consumer.set_start_from_earliest())
    >>> sales.get_type()
    Types.STRING()
    """

    def __init__(
        self, topics: str | Sequence[str], deserialization_schema: DeserializationSchema, properties: Mapping[str, str]
    ) -> None:
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names:
            raise ValueError("KafkaConsumer needs at least one topic")
        self.topics = [checks.text("topics", name) for name in names]
        schema = checks.instance("deserialization_schema", deserialization_schema, DeserializationSchema, SCHEMA_HINT)
        self.deserialization_schema = schema
        self.properties = _properties("properties", properties, OF_SOURCES)
        self.look_interval = look_interval(self.properties)
        self._start: KafkaOffsetsInitializer | None = None
        self._client = SharedClient()

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> KafkaConsumer:
        """Set whether offsets are committed to the group after each checkpoint.

        :param commit_on_checkpoints: True to commit them; True by default
        :returns: this object
        """
        self.properties[COMMIT] = "true" if checks.boolean("commit_on_checkpoints", commit_on_checkpoints) else "false"
        return self

    def set_start_from_earliest(self) -> KafkaConsumer:
        """Begin with the oldest record of each partition.

        :returns: this object
        """
        return self._start_from(KafkaOffsetsInitializer.earliest())

    def set_start_from_latest(self) -> KafkaConsumer:
        """Begin with future records.

        :returns: this object
        """
        return self._start_from(KafkaOffsetsInitializer.latest())

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> KafkaConsumer:
        """Begin with the first record that is not older than a time.

        :param startup_offsets_timestamp: milliseconds since 1970-01-01T00:00:00Z
        :returns: this object
        """
        return self._start_from(KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp))

    def set_start_from_group_offsets(self) -> KafkaConsumer:
        """Begin with the committed offsets of the group. This is the default.

        :returns: this object
        """
        self._start = None
        return self

    def _start_from(self, start: KafkaOffsetsInitializer) -> KafkaConsumer:
        self._start = start
        return self

    @property
    def starting(self) -> KafkaOffsetsInitializer:
        """The starting offsets of the first start."""
        if self._start is not None:
            return self._start
        reset = KafkaOffsetResetStrategy[self.properties.get(RESET, "latest").upper()]
        if GROUP in self.properties:
            return KafkaOffsetsInitializer.committed_offsets(reset)
        return KafkaOffsetsInitializer(Start.OFFSETS, reset_strategy=reset)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the elements.

        :returns: the type that the schema produces
        """
        return self.deserialization_schema.get_produced_type()

    @property
    def is_bounded(self) -> bool:
        """False, because it does not end."""
        return False

    @property
    def position_kind(self) -> str:
        """The kind of its positions, which ``KafkaSource`` shares, so that each can resume from positions of the other."""
        return self._source().position_kind

    @property
    def places(self) -> Sequence[str]:
        """The places of the source, see :meth:`KafkaSource.places`."""
        return self._source().places

    def references(self) -> Sequence[str]:
        """Return the references in the properties.

        :returns: references such as ``${secret:NAME}``
        """
        return references_of(self.properties)

    def splits(self, parallelism: int) -> Sequence[Any]:
        """See :meth:`KafkaSource.splits`.

        :param parallelism: without effect
        :returns: the partitions
        """
        return self._source().splits(parallelism)

    def more_splits(self, known: Sequence[Any]) -> Sequence[Any]:
        """See :meth:`KafkaSource.more_splits`.

        :param known: the partitions that are read
        :returns: new partitions
        """
        return self._source().more_splits(known)

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Return a reader of a partition.

        :param split: a partition from :meth:`splits`
        :param position: the offset of the next record; None for the first
        :returns: the reader
        """
        return self._source().open(split, position)

    def _source(self) -> KafkaSource:
        choice = TopicChoice(topics=tuple(dict.fromkeys(self.topics)))
        settings = ReadingSettings(choice, self.starting, None, ValueOnly(self.deserialization_schema), self.properties)
        return KafkaSource(settings, look_interval=self.look_interval, client=self._client)

    def __repr__(self) -> str:
        return f"KafkaConsumer({', '.join(self.topics)})"


class KafkaProducer(Sink):
    """A sink that writes to a topic of Kafka: :class:`KafkaSink` with a schema for values.

    For ``EXACTLY_ONCE``, the names of its producers begin with the property ``transactional.id`` or, without it, with the names of
    the topic and the sink. Two programs that write to one topic need different ones.

    :param topic: the topic
    :param serialization_schema: the schema that converts an element to a value
    :param producer_config: the properties of the client, at least ``bootstrap.servers``
    :param kafka_producer_pool_size: kept, without effect: each task has one producer
    :param semantic: the delivery guarantee

    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> from airflow_pipelines.datastream.connectors import KafkaProducer
    >>> properties = {"bootstrap.servers": "kafka:9092", "sasl.password": "${env:KEY}"}
    >>> producer = KafkaProducer("sales", SimpleStringSchema(), properties)
    >>> producer.set_write_timestamp_to_kafka(True), producer.semantic.name, producer.references()
    (KafkaProducer(sales), 'AT_LEAST_ONCE', ('${env:KEY}',))
    """

    Semantic = ProducerSemantic

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: ProducerSemantic = ProducerSemantic.AT_LEAST_ONCE,
    ) -> None:
        self.topic = checks.text("topic", topic)
        self.serialization_schema = checks.instance("serialization_schema", serialization_schema, SerializationSchema, WRITING_HINT)
        self.producer_config = _properties("producer_config", producer_config, OF_SINKS | {_TRANSACTIONAL_ID})
        self.pool_size = checks.integer("kafka_producer_pool_size", kafka_producer_pool_size, 1)
        self.semantic = checks.member("semantic", semantic, ProducerSemantic)
        self.logs_failures_only = False
        self.flushes_on_checkpoint = True
        self.writes_timestamps = False
        self.ignores_failures_after_timeout = False

    def set_log_failures_only(self, log_failures_only: bool) -> KafkaProducer:
        """Set whether a record that cannot be written is only logged. It has no effect on ``EXACTLY_ONCE``.

        :param log_failures_only: True to only log it; False by default
        :returns: this object
        """
        self.logs_failures_only = checks.boolean("log_failures_only", log_failures_only)
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> KafkaProducer:
        """Set whether a checkpoint waits until brokers have all records. If it does not, ``AT_LEAST_ONCE`` degrades to ``NONE``.

        :param flush_on_checkpoint: True to wait; True by default
        :returns: this object
        """
        self.flushes_on_checkpoint = checks.boolean("flush_on_checkpoint", flush_on_checkpoint)
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> KafkaProducer:
        """Set whether records get the timestamps of their elements.

        :param write_timestamp_to_kafka: True to write timestamps; False by default
        :returns: this object
        """
        self.writes_timestamps = checks.boolean("write_timestamp_to_kafka", write_timestamp_to_kafka)
        return self

    def ignore_failures_after_transaction_timeout(self) -> KafkaProducer:
        """Drop records when the program starts again, if it is no longer known whether they were written.

        :returns: this object
        """
        self.ignores_failures_after_timeout = True
        return self

    def references(self) -> Sequence[str]:
        """Return the references in the properties.

        :returns: references such as ``${secret:NAME}``
        """
        return references_of(self.producer_config)

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer for one task.

        :param subtask: the task that writes
        :returns: its writer
        """
        guarantee = _GUARANTEES[self.semantic]
        if guarantee is DeliveryGuarantee.AT_LEAST_ONCE and not self.flushes_on_checkpoint:
            guarantee = DeliveryGuarantee.NONE
        properties = {name: value for name, value in self.producer_config.items() if name != _TRANSACTIONAL_ID}
        return KafkaSink(
            KeyAndValue(self.topic, None, None, self.serialization_schema, self.writes_timestamps),
            guarantee,
            properties,
            self.producer_config.get(_TRANSACTIONAL_ID, f"{self.topic}-{subtask.name}"),
            self.ignores_failures_after_timeout,
            self.logs_failures_only,
        ).open(subtask)

    def __repr__(self) -> str:
        return f"KafkaProducer({self.topic})"


def _properties(parameter: str, properties: Mapping[str, str], known: frozenset[str]) -> dict[str, str]:
    checked = checked_properties(parameter, properties, known)
    if not checked.get(SERVERS):
        raise ValueError(f"{parameter} needs {SERVERS!r}, such as 'host:9092'")
    return checked
