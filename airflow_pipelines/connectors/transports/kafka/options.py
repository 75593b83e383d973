"""The options of the connectors of Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator, model_validator

from airflow_pipelines.connectors.transports.kafka.headers import HeaderCondition
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.systems.kafka.properties import CONSUMER_PROPERTIES, PRODUCER_PROPERTIES, SHARED_PROPERTIES

PropertyValue: TypeAlias = str | int | float | bool
_SERVERS: Final = "bootstrap.servers"
_LOG_LEVELS: Final = ("emerg", "alert", "critical", "error", "warning", "notice", "info", "debug")
_WANTED_START: Final = (
    'a place to start from is "earliest", "latest", {"offsets": [0, 10]} with an offset for each partition, or {"timestamp": n} '
    "with milliseconds since 1970"
)


class TopicEnd(Enum):
    """An end of a topic."""

    EARLIEST = "earliest"
    LATEST = "latest"


class StartOffsets(BaseModel):
    """An offset for each partition, in the order of ``partitions``, or of their numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    offsets: tuple[int, ...] = Field(min_length=1)

    @field_validator("offsets")
    @classmethod
    def _not_negative(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if min(value) < 0:
            raise ValueError("an offset is at least 0")
        return value


class StartTimestamp(BaseModel):
    """A start at the first record of each partition that is not older than a timestamp, in milliseconds since 1970."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    timestamp: int = Field(ge=0)


class KafkaOptions(BaseModel):
    """The options that inputs and outputs have in common.

    :param topic: the name of the topic
    :param bootstrap_servers: brokers to begin with, ``host:port``, separated by commas; without any a pipeline does not start
    :param log_level: the minimum level of messages that the client logs
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    topic: str = Field(min_length=1)
    bootstrap_servers: str = Field(default="", alias=_SERVERS, min_length=1)
    log_level: str | int | None = None

    @field_validator("log_level")
    @classmethod
    def _level(cls, value: str | int | None) -> str | int | None:
        if value is not None and value not in _LOG_LEVELS and value not in range(len(_LOG_LEVELS)):
            raise ValueError(f"a level is one of {', '.join(_LOG_LEVELS)}")
        return value

    def properties(self) -> dict[str, PropertyValue]:
        """Return the properties of librdkafka that were given."""
        given: dict[str, PropertyValue] = {_SERVERS: self.bootstrap_servers}
        if self.log_level is not None:
            given["log_level"] = _LOG_LEVELS.index(self.log_level) if isinstance(self.log_level, str) else self.log_level
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name.startswith(_PROPERTY) and value is not None:
                given[str(field.alias)] = value
        return given


def check_servers(options: KafkaOptions, transport: str) -> None:
    """Refuse a declaration without brokers, which a program that is yet to be completed may have.

    :param options: the options of a connector
    :param transport: the name of its transport, for messages
    :raises InvalidOptionError: when there are none
    """
    if not options.bootstrap_servers:
        raise InvalidOptionError(
            f"{transport}: option {_SERVERS!r} is missing: it has the brokers to begin with, such as 'broker-1:9092,broker-2:9092'",
            _SERVERS,
        )


class KafkaInputOptions(KafkaOptions):
    """The options of ``kafka_input``, without the properties of librdkafka (:data:`KAFKA_INPUT_OPTIONS` has both).

    :param start_from: the place where a first start begins
    :param partitions: the partitions that are read; None for all, also those that are made later
    :param include_topic: True to have the name of the topic in the metadata of rows; likewise the other five
    :param synchronize_partitions: True to get records in the order of their timestamps, whatever their partitions are
    :param header_filter: the condition that the headers of a record must meet for it to be read; None for all records
    :param resume_earliest_if_data_expires: True to go on with the oldest record when the next one has been removed from the topic
    :param enable_partition_eof: True to end the input when all partitions have been read to their ends
    :param group_join_timeout_secs: accepted, without effect: no group is joined
    :param poller_threads: accepted, without effect: the client has threads of its own
    """

    start_from: TopicEnd | StartOffsets | StartTimestamp = TopicEnd.LATEST
    partitions: tuple[int, ...] | None = Field(default=None, min_length=1)
    include_topic: bool = False
    include_headers: bool = False
    include_partition: bool = False
    include_offset: bool = False
    include_timestamp: bool = False
    include_key: bool = False
    synchronize_partitions: bool = False
    header_filter: HeaderCondition | None = None
    resume_earliest_if_data_expires: bool = False
    enable_partition_eof: bool = Field(default=False, alias="enable.partition.eof")
    group_join_timeout_secs: int = Field(default=10, ge=0)
    poller_threads: int = Field(default=3, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _start_of_consumers(cls, given: Any) -> Any:
        """Use ``auto.offset.reset``, the start of consumers that have no position, as the default of ``start_from``."""
        if not isinstance(given, Mapping) or "auto.offset.reset" not in given:
            return given
        rest = dict(given)
        edge = {"earliest": "earliest", "beginning": "earliest", "smallest": "earliest"}.get(
            str(rest.pop("auto.offset.reset")), "latest"
        )
        return {"start_from": edge, **rest}

    @field_validator("start_from", mode="before")
    @classmethod
    def _start(cls, value: Any) -> Any:
        if isinstance(value, TopicEnd | StartOffsets | StartTimestamp):
            return value
        if isinstance(value, Mapping) and len(value) == 1:
            model = StartOffsets if "offsets" in value else StartTimestamp
            try:
                return model.model_validate(dict(value))
            except ValidationError:
                raise ValueError(_WANTED_START) from None
        try:
            return TopicEnd(value)
        except ValueError:
            raise ValueError(_WANTED_START) from None

    @field_validator("partitions")
    @classmethod
    def _distinct(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None and (len(set(value)) < len(value) or min(value) < 0):
            raise ValueError("partitions are numbers from 0 on, each once")
        return value

    @model_validator(mode="after")
    def _one_offset_each(self) -> KafkaInputOptions:
        start = self.start_from
        if isinstance(start, StartOffsets) and self.partitions is not None and len(start.offsets) != len(self.partitions):
            raise ValueError(f"'start_from' has {len(start.offsets)} offsets for {len(self.partitions)} partitions")
        return self


class Header(BaseModel):
    """A header of each record that an output writes; without a value it has only a name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str = Field(min_length=1)
    value: str | tuple[int, ...] | None = None

    @field_validator("value")
    @classmethod
    def _bytes(cls, value: Any) -> Any:
        if isinstance(value, tuple) and not all(0 <= each <= 255 for each in value):
            raise ValueError("a value is a text, or a list of bytes, which are numbers from 0 to 255")
        return value

    @property
    def data(self) -> bytes | None:
        """The value as bytes."""
        return self.value.encode() if isinstance(self.value, str) else None if self.value is None else bytes(self.value)


class KafkaOutputOptions(KafkaOptions):
    """The options of ``kafka_output``, without the properties of librdkafka (:data:`KAFKA_OUTPUT_OPTIONS` has both).

    :param headers: the headers of each record
    :param transactions: True to write each step as a transaction, with its number in it; False: a restart may write the last steps
        again
    :param transactional_id: the name of the producer; by default one made from the pipeline and the connector
    :param initialization_timeout_secs: accepted, without effect: a broker that does not answer is tried again
    :param auto_offset_reset: accepted, without effect: it says where consumers begin
    """

    headers: tuple[Header, ...] = ()
    transactions: bool = True
    transactional_id: str | None = Field(default=None, alias="transactional.id", min_length=1)
    initialization_timeout_secs: int = Field(default=60, ge=0)
    auto_offset_reset: PropertyValue | None = Field(default=None, alias="auto.offset.reset")


_PROPERTY: Final = "property_"


def _with_properties(base: type[Any], names: Iterable[str]) -> type[Any]:
    """Return a model that has the properties besides its own options, each by its own name."""
    fields: dict[str, Any] = {
        _PROPERTY + name.replace(".", "_"): (PropertyValue | None, Field(default=None, alias=name)) for name in sorted(names)
    }
    return create_model(base.__name__, __base__=base, __module__=__name__, **fields)


KAFKA_INPUT_OPTIONS: Final[type[KafkaInputOptions]] = _with_properties(KafkaInputOptions, SHARED_PROPERTIES | CONSUMER_PROPERTIES)
KAFKA_OUTPUT_OPTIONS: Final[type[KafkaOutputOptions]] = _with_properties(
    KafkaOutputOptions, SHARED_PROPERTIES | PRODUCER_PROPERTIES
)
