"""The definitions of the connectors of Kafka, which import its client only when something is opened."""

from __future__ import annotations

from typing import Final

from airflow_pipelines.connectors.base import ConnectorFailure, InputTransport, OutputTransport
from airflow_pipelines.connectors.definition import (
    Declared,
    Guarantee,
    InputContext,
    InputDefinition,
    OutputContext,
    OutputDefinition,
)
from airflow_pipelines.connectors.transports.kafka.options import (
    KAFKA_INPUT_OPTIONS,
    KAFKA_OUTPUT_OPTIONS,
    KafkaInputOptions,
    KafkaOptions,
    KafkaOutputOptions,
    check_servers,
)
from airflow_pipelines.rows.formats.avro.options import AvroOptions
from airflow_pipelines.rows.formats.avro.options import check_messages_read as check_avro_messages_read
from airflow_pipelines.rows.formats.messages import message_parser
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions
from airflow_pipelines.rows.formats.protobuf.options import check_messages_read as check_protobuf_messages_read


def _open_input(options: KafkaInputOptions, context: InputContext) -> InputTransport:
    from airflow_pipelines.connectors.transports.kafka.cluster import cluster_reader
    from airflow_pipelines.connectors.transports.kafka.input import KafkaInput

    _check_opened(options, "kafka_input")
    parser = message_parser(context.schema, context.new_parser())
    return KafkaInput(options, parser, context.endpoint, cluster_reader(options, context))


def _open_output(options: KafkaOutputOptions, context: OutputContext) -> OutputTransport:
    from airflow_pipelines.connectors.transports.kafka.output import KafkaOutput, TransactionalKafkaOutput

    _check_opened(options, "kafka_output")
    return TransactionalKafkaOutput(options, context) if options.transactions else KafkaOutput(options, context)


def _check_opened(options: KafkaOptions, transport: str) -> None:
    """Check the brokers again when the connector is opened, since references are resolved only then."""
    try:
        check_servers(options, transport)
    except InvalidOptionError as error:
        raise ConnectorFailure(str(error)) from error


def _check_input_start(options: KafkaInputOptions, _: Declared) -> None:
    check_servers(options, "kafka_input")


def _check_output_start(options: KafkaOutputOptions, _: Declared) -> None:
    check_servers(options, "kafka_output")


def _check_input(_: KafkaInputOptions, declared: Declared) -> None:
    match declared.format_options:
        case AvroOptions() as options:
            check_avro_messages_read(options)
        case ProtobufOptions() as options:
            check_protobuf_messages_read(options)


KAFKA_INPUT: Final = InputDefinition(
    name="kafka_input",
    options=KAFKA_INPUT_OPTIONS,
    open=_open_input,
    formats=("avro", "csv", "json", "protobuf", "raw"),
    check=_check_input,
    check_start=_check_input_start,
    guarantee=Guarantee.EXACTLY_ONCE,
    packages=("confluent_kafka",),
    extra="kafka",
)
"""An input that reads a topic."""

KAFKA_OUTPUT: Final = OutputDefinition(
    name="kafka_output",
    options=KAFKA_OUTPUT_OPTIONS,
    open=_open_output,
    formats=("avro", "csv", "json", "protobuf", "raw"),
    writes_messages=True,
    idle_options=frozenset({"auto.offset.reset"}),
    check_start=_check_output_start,
    guarantee=Guarantee.EXACTLY_ONCE,
    packages=("confluent_kafka",),
    extra="kafka",
)
"""An output that writes to a topic."""
