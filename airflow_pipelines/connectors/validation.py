"""The check that a program with a declaration of a connector compiles."""

from __future__ import annotations

from pydantic import BaseModel

from airflow_pipelines.connectors.declarations import (
    connector_options,
    format_of,
    format_options,
    place_of,
    run_check,
    transport_options,
)
from airflow_pipelines.connectors.definition import ConnectorDefinition, OutputDefinition
from airflow_pipelines.connectors.option_models import unknown
from airflow_pipelines.connectors.parsers import new_parser
from airflow_pipelines.connectors.planned_transports import PLANNED_TRANSPORTS
from airflow_pipelines.connectors.registry import connector_names, find_connector, format_names
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.streams import STREAM_END, STREAM_SOURCE
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError, UnknownOptionError
from airflow_pipelines.rows.schema import RelationSchema


def validate(connector: Connector, schema: RelationSchema) -> None:
    """Check a declaration: names, options, their values, and whether the format can read the relation's columns.

    :param connector: the declaration
    :param schema: the schema of its table or view
    :raises UnknownOptionError: if a name is unknown; the message lists the alternatives. :class:`InvalidOptionError`, a subclass,
        if the name is known but the value, the direction or the combination is not allowed
    """
    where = place_of(connector)
    definition = _find_definition(connector)
    common = connector_options(connector)
    if connector.direction is ConnectorDirection.INPUT and common.soft_delete and schema.primary_key:
        raise InvalidOptionError(f"{where}: option 'soft_delete' is not for a table with a primary key", "soft_delete")
    if definition is None:
        return
    options = transport_options(connector, definition)
    options_of_format = _check_format(connector, definition, schema) if definition.formats else None
    if isinstance(definition, OutputDefinition) and definition.needs_index and common.index is None:
        message = "needs an 'index', by whose columns it tells which rows are the same. Name one that CREATE INDEX makes"
        raise InvalidOptionError(f"{where}: transport {connector.transport!r} {message}")
    if isinstance(definition, OutputDefinition) and definition.writes_messages and options_of_format is not None:
        _check_messages_written(connector, options_of_format, has_index=common.index is not None)
    if definition.check is not None and options is not None:
        run_check(definition.check, options, connector, schema, options_of_format)


def _find_definition(connector: Connector) -> ConnectorDefinition | None:
    """Return the definition of a connector after checking its direction; None for a planned transport."""
    where = place_of(connector)
    if connector.transport in (STREAM_SOURCE, STREAM_END):
        message = f"transport {connector.transport!r} belongs to the hidden tables of stream programs, and cannot be declared"
        raise InvalidOptionError(f"{where}: {message}", connector.transport)
    definition = find_connector(connector.transport)
    transport = definition or PLANNED_TRANSPORTS.get(connector.transport)
    if transport is None:
        message = unknown("transport", connector.transport, connector_names(connector.direction))
        raise UnknownOptionError(f"{where}: {message}", connector.transport)
    if transport.direction is not connector.direction:
        goes, is_on = ("an output", "a table") if connector.direction is ConnectorDirection.INPUT else ("an input", "a view")
        known = ", ".join(sorted(connector_names(connector.direction)))
        raise InvalidOptionError(
            f"{where}: transport {connector.transport!r} is {goes}, but the connector is on {is_on}; "
            f"known transports here: {known}",
            connector.transport,
        )
    return definition


def _check_format(connector: Connector, definition: ConnectorDefinition, schema: RelationSchema) -> BaseModel | None:
    """Return the options of the format after checking that the transport carries it and that it can read the table."""
    where, formats = place_of(connector), definition.formats
    if connector.format is None:
        listed = ", ".join(formats)
        raise InvalidOptionError(f"{where}: transport {connector.transport!r} needs a format; known formats: {listed}")
    if connector.format not in formats:
        if connector.format in format_names():
            # It may be a format of this transport in another release.
            return None
        raise UnknownOptionError(f"{where}: {unknown('format', connector.format, formats)}", connector.format)
    format_definition, options = format_of(connector), format_options(connector)
    if connector.direction is ConnectorDirection.INPUT and format_definition is not None and options is not None:
        new_parser(format_definition, schema, options, where, wall_clock)
    return options


def _check_messages_written(connector: Connector, options: BaseModel, *, has_index: bool) -> None:
    """Check that the format of an output can be written as messages."""
    definition = format_of(connector)
    if definition is None or definition.check_messages_written is None:
        return
    try:
        definition.check_messages_written(options, has_index)
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{place_of(connector)}: {error}", error.word) from error
