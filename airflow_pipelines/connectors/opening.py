"""Construction of the inputs and outputs of declarations, with their references replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel

from airflow_pipelines.common.references import References, ReferenceWithoutValueError, has_reference
from airflow_pipelines.connectors.base import ConnectorFailure, InputTransport, OutputTransport
from airflow_pipelines.connectors.client_libraries import missing_libraries
from airflow_pipelines.connectors.declarations import connector_options, format_of, place_of, run_check
from airflow_pipelines.connectors.definition import (
    ConnectorDefinition,
    InputContext,
    InputDefinition,
    OutputContext,
    OutputDefinition,
    PipelineReference,
)
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.option_models import read_options
from airflow_pipelines.connectors.parsers import new_parser
from airflow_pipelines.connectors.registry import find_connector
from airflow_pipelines.connectors.transports.relation_end import RelationEnd, RelationEndOptions
from airflow_pipelines.connectors.transports.stream_source import StreamSourceInput, StreamSourceOptions
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.rows.formats.defaults import Now, wall_clock
from airflow_pipelines.rows.formats.definition import ChangeEncoder, FormatDefinition
from airflow_pipelines.rows.formats.messages import MessageEncoder
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError, UnknownOptionError
from airflow_pipelines.rows.formats.parsed import Parser
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.streams.reading.client import ReadingProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_input(
    connector: Connector,
    schema: RelationSchema,
    references: References,
    pipeline: PipelineReference,
    now: Now = wall_clock,
    spark: SparkSession | None = None,
) -> InputTransport:
    """Return the input of a declaration. It is not opened yet.

    :param connector: the declaration
    :param schema: the schema of its relation
    :param references: the values of references in its options
    :param pipeline: the pipeline that it is an input of
    :param now: the clock that a DEFAULT may read
    :param spark: the Spark application of the pipeline, which an input can use to read large data; None without one
    :raises UnknownOptionError: if the declaration is invalid, see :func:`validate`
    :raises ConnectorFailure: if a reference has no value, or its value is invalid for the option
    """
    validate(connector, schema)
    ready = _resolve(connector, references)
    if not isinstance(ready.definition, InputDefinition):
        raise ConnectorFailure(f"{place_of(connector)}: transport {connector.transport!r} is not an input")
    _check_resolved(connector, schema, ready)
    context = InputContext(
        endpoint=connector.endpoint,
        schema=schema,
        format=ready.format_name,
        new_parser=lambda: _new_parser(connector, schema, ready, now),
        now=now,
        pipeline=pipeline,
        common=connector_options(connector),
        format_options=ready.format_options,
        spark=spark,
    )
    return ready.definition.open(ready.options, context)


def open_stream_source(connector: Connector, schema: RelationSchema, process: Callable[[], ReadingProcess]) -> InputTransport:
    """Return the input that reads a source of a stream program. It is not opened yet.

    :param connector: the declaration of the source's hidden table
    :param schema: the schema of the table
    :param process: the function that returns the process that reads the sources of the program
    """
    return StreamSourceInput(StreamSourceOptions.model_validate(dict(connector.transport_config)), schema, process)


def open_relation_end(connector: Connector, schema: RelationSchema, have_ended: Callable[[], bool]) -> InputTransport:
    """Return the input that reports the end of a relation that a stream program reads. It is not opened yet.

    :param connector: the declaration of the hidden table
    :param schema: the schema of the table
    :param have_ended: the function that returns True once the connectors of the relation have ended, and steps have processed their
        data
    """
    return RelationEnd(RelationEndOptions.model_validate(dict(connector.transport_config)), schema, have_ended)


def open_output(
    connector: Connector,
    schema: RelationSchema,
    references: References,
    pipeline: PipelineReference,
    key: tuple[str, ...] = (),
    positions: Path | None = None,
    fence: Fence | None = None,
    left_out: LeftOutRows | None = None,
) -> OutputTransport:
    """Return the output of a declaration. It is not opened yet.

    :param connector: the declaration
    :param schema: the schema of its relation
    :param references: the values of references in its options
    :param pipeline: the pipeline that it is an output of
    :param key: the columns of its index
    :param positions: a folder of the pipeline's storage in which outputs keep their positions; None without storage
    :param fence: the epoch of the run in that storage, after which outputs no longer write
    :param left_out: the collector of rows that the target rejects; None if nobody asks for them
    :raises UnknownOptionError: if the declaration is invalid, see :func:`validate`
    :raises ConnectorFailure: if a reference has no value, or its value is invalid for the option
    """
    validate(connector, schema)
    ready = _resolve(connector, references)
    if not isinstance(ready.definition, OutputDefinition):
        raise ConnectorFailure(f"{place_of(connector)}: transport {connector.transport!r} is not an output")
    _check_resolved(connector, schema, ready)
    common = connector_options(connector)
    context = OutputContext(
        endpoint=connector.endpoint,
        schema=schema,
        key=key,
        format=ready.format_name,
        format_options=ready.format_options,
        new_encoder=lambda: _new_encoder(connector, schema, ready),
        positions=positions / f"{quote(connector.endpoint, safe='')}.steps" if positions is not None else None,
        fence=fence,
        pipeline=pipeline,
        common=common,
        new_message_encoder=_message_encoder(schema, ready, key),
        left_out=left_out or LeftOutRows(key, common.on_error),
    )
    return ready.definition.open(ready.options, context)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A declaration with its references replaced. It must never be stored or shown."""

    definition: ConnectorDefinition
    options: BaseModel
    format: FormatDefinition | None
    format_options: BaseModel | None

    @property
    def format_name(self) -> str | None:
        return None if self.format is None else self.format.name


def _resolve(connector: Connector, references: References) -> _Ready:
    """Return a declaration with its references replaced.

    :raises ConnectorFailure: if a reference has no value, or its value is invalid for the option
    """
    where = place_of(connector)
    definition = find_connector(connector.transport)
    if definition is None:
        raise ConnectorFailure(f"{where}: transport {connector.transport!r} is not part of this release")
    if (missing := missing_libraries(definition)) is not None:
        raise ConnectorFailure(f"{where}: {missing}")
    format_definition = format_of(connector)
    try:
        options = read_options(
            definition.options, references.resolve(connector.transport_config), f"transport {connector.transport!r}", where
        )
        format_options = (
            None
            if format_definition is None
            else read_options(
                format_definition.options, references.resolve(connector.format_config), f"format {format_definition.name!r}", where
            )
        )
    except ReferenceWithoutValueError as error:
        raise ConnectorFailure(f"{where}: {error}") from error
    except UnknownOptionError as error:
        raise ConnectorFailure(str(error)) from error
    return _Ready(definition, options, format_definition, format_options)


def _check_resolved(connector: Connector, schema: RelationSchema, ready: _Ready) -> None:
    """Check the options again with the values of their references.

    :raises ConnectorFailure: if the declaration cannot work with these values
    """
    if ready.definition.check is None or not has_reference(connector.transport_config):
        return
    try:
        run_check(ready.definition.check, ready.options, connector, schema, ready.format_options)
    except InvalidOptionError as error:
        raise ConnectorFailure(str(error)) from error


def _new_parser(connector: Connector, schema: RelationSchema, ready: _Ready, now: Now) -> Parser:
    if ready.format is None or ready.format_options is None:
        raise ConnectorFailure(f"{place_of(connector)}: transport {connector.transport!r} reads no format")
    return new_parser(ready.format, schema, ready.format_options, place_of(connector), now)


def _new_encoder(connector: Connector, schema: RelationSchema, ready: _Ready) -> ChangeEncoder:
    if ready.format is None or ready.format.new_encoder is None:
        raise ConnectorFailure(f"{place_of(connector)}: transport {connector.transport!r} has no format that can be written")
    return ready.format.new_encoder(schema, ready.format_options)


def _message_encoder(schema: RelationSchema, ready: _Ready, key: tuple[str, ...]) -> Callable[[], MessageEncoder] | None:
    if ready.format is None or ready.format.new_message_encoder is None:
        return None
    return partial(ready.format.new_message_encoder, schema, ready.format_options, key)
