"""Kafka: the classes exist with all their options, and say what is missing when the program starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, NoReturn

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.serialization import DeserializationSchema, SerializationSchema
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.connectors.base import Sink, Source
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo
from airflow_pipelines.streams.sources import SourceReader

_SERVERS = "bootstrap.servers"
_UNAVAILABLE = "this release has no client for Kafka"


class KafkaNotAvailableError(StreamProgramError):
    """A program that uses Kafka was started, and this release has no client for it."""


class StartPosition(Enum):
    """Where a consumer begins without a checkpoint."""

    GROUP_OFFSETS = "group offsets"
    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"


class ProducerSemantic(Enum):
    """How exact a producer is."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class KafkaConsumer(Source):
    """Reads topics of Kafka. This release has no client for Kafka: a program with it is refused when it starts.

    :param topics: a topic, or a list of topics
    :param deserialization_schema: makes an element of a message
    :param properties: settings of the client, at least ``bootstrap.servers``
    """

    unavailable: ClassVar[str] = _UNAVAILABLE

    def __init__(
        self, topics: str | Sequence[str], deserialization_schema: DeserializationSchema, properties: Mapping[str, str]
    ) -> None:
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names:
            raise ValueError("KafkaConsumer needs at least one topic")
        self.topics = [checks.text("topics", name) for name in names]
        hint = "use SimpleStringSchema() or another schema that reads messages"
        self.deserialization_schema = checks.instance("deserialization_schema", deserialization_schema, DeserializationSchema, hint)
        self.properties = _properties("properties", properties)
        self.start_position = StartPosition.GROUP_OFFSETS
        self.start_timestamp: int | None = None
        self.commits_offsets_on_checkpoints = True

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> KafkaConsumer:
        """Set whether the offsets of the group are committed with each checkpoint.

        :param commit_on_checkpoints: whether they are; True by default
        :returns: this object
        """
        self.commits_offsets_on_checkpoints = checks.boolean("commit_on_checkpoints", commit_on_checkpoints)
        return self

    def set_start_from_earliest(self) -> KafkaConsumer:
        """Begin with the first message of each partition.

        :returns: this object
        """
        return self._start_from(StartPosition.EARLIEST)

    def set_start_from_latest(self) -> KafkaConsumer:
        """Begin with messages that come from now on.

        :returns: this object
        """
        return self._start_from(StartPosition.LATEST)

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> KafkaConsumer:
        """Begin with messages of a time.

        :param startup_offsets_timestamp: milliseconds since 1970-01-01T00:00:00Z
        :returns: this object
        """
        self.start_timestamp = checks.integer("startup_offsets_timestamp", startup_offsets_timestamp, 0)
        return self._start_from(StartPosition.TIMESTAMP)

    def set_start_from_group_offsets(self) -> KafkaConsumer:
        """Begin where the group has committed: the default.

        :returns: this object
        """
        return self._start_from(StartPosition.GROUP_OFFSETS)

    def _start_from(self, position: StartPosition) -> KafkaConsumer:
        self.start_position = position
        return self

    def get_produced_type(self) -> TypeInformation:
        """The type of the elements.

        :returns: that of the schema
        """
        return self.deserialization_schema.get_produced_type()

    @property
    def is_bounded(self) -> bool:
        """It does not end."""
        return False

    def splits(self, parallelism: int) -> Sequence[Any]:
        """Refused.

        :param parallelism: how many tasks would read
        :raises KafkaNotAvailableError: always
        """
        _refuse(f"reads {', '.join(self.topics)}", parallelism)

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Refused.

        :param split: never made
        :param position: never made
        :raises KafkaNotAvailableError: always
        """
        _refuse(f"reads {', '.join(self.topics)}", (split, position))

    def __repr__(self) -> str:
        return f"KafkaConsumer({', '.join(self.topics)})"


class KafkaProducer(Sink):
    """Writes to a topic of Kafka. This release has no client for Kafka: a program with it is refused when it starts.

    :param topic: the topic
    :param serialization_schema: makes a message of an element
    :param producer_config: settings of the client, at least ``bootstrap.servers``
    :param kafka_producer_pool_size: how many producers there are for ``EXACTLY_ONCE``
    :param semantic: how exact it is
    """

    Semantic = ProducerSemantic
    unavailable: ClassVar[str] = _UNAVAILABLE

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: ProducerSemantic = ProducerSemantic.AT_LEAST_ONCE,
    ) -> None:
        self.topic = checks.text("topic", topic)
        hint = "use SimpleStringSchema() or another schema that writes messages"
        self.serialization_schema = checks.instance("serialization_schema", serialization_schema, SerializationSchema, hint)
        self.producer_config = _properties("producer_config", producer_config)
        self.pool_size = checks.integer("kafka_producer_pool_size", kafka_producer_pool_size, 1)
        self.semantic = checks.member("semantic", semantic, ProducerSemantic)
        self.logs_failures_only = False
        self.flushes_on_checkpoint = True
        self.writes_timestamps = False
        self.ignores_failures_after_timeout = False

    def set_log_failures_only(self, log_failures_only: bool) -> KafkaProducer:
        """Set whether a message that cannot be written is only logged.

        :param log_failures_only: whether it is; False by default
        :returns: this object
        """
        self.logs_failures_only = checks.boolean("log_failures_only", log_failures_only)
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> KafkaProducer:
        """Set whether a checkpoint waits until all messages are acknowledged.

        :param flush_on_checkpoint: whether it does; True by default
        :returns: this object
        """
        self.flushes_on_checkpoint = checks.boolean("flush_on_checkpoint", flush_on_checkpoint)
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> KafkaProducer:
        """Set whether messages get the timestamps of their elements.

        :param write_timestamp_to_kafka: whether they do; False by default
        :returns: this object
        """
        self.writes_timestamps = checks.boolean("write_timestamp_to_kafka", write_timestamp_to_kafka)
        return self

    def ignore_failures_after_transaction_timeout(self) -> KafkaProducer:
        """Set that a transaction which timed out is no error when the program starts again.

        :returns: this object
        """
        self.ignores_failures_after_timeout = True
        return self

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Refused.

        :param subtask: which task would write
        :raises KafkaNotAvailableError: always
        """
        _refuse(f"writes {self.topic}", subtask)

    def __repr__(self) -> str:
        return f"KafkaProducer({self.topic})"


def _properties(parameter: str, properties: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(properties, Mapping):
        raise TypeError(f"{parameter} takes a dict such as {{'{_SERVERS}': 'host:9092'}}, not a {type(properties).__name__}")
    wrong = [key for key, value in properties.items() if not (isinstance(key, str) and isinstance(value, str))]
    if wrong:
        raise TypeError(f"{parameter} takes texts by name, and {wrong[0]!r} is none: write {wrong[0]!r}: '...'")
    if not properties.get(_SERVERS):
        raise ValueError(f"{parameter} needs {_SERVERS!r}, such as 'host:9092'")
    return dict(properties)


def _refuse(what: str, _: Any) -> NoReturn:
    raise KafkaNotAvailableError(
        f"The program {what} with Kafka, for which this release has no client. "
        "Use FileSource, FileSink or JdbcSink, or a source or sink of your own, derived from connectors.Source or connectors.Sink."
    )


Semantic = ProducerSemantic
