"""Access to a declaration of a connector: its place for messages, its options and format, and properties of its definition."""

from __future__ import annotations

from pydantic import BaseModel

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.definition import (
    Check,
    ConnectorDefinition,
    Declared,
    Delivery,
    InputDefinition,
    OutputDefinition,
)
from airflow_pipelines.connectors.option_models import read_declared_options, read_options
from airflow_pipelines.connectors.registry import find_connector, find_format
from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.rows.formats.definition import FormatDefinition
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema


def place_of(connector: Connector) -> str:
    """Return the name of a connector for messages.

    :param connector: the declaration
    """
    return f"connector {connector.endpoint!r}"


def connector_options(connector: Connector) -> ConnectorOptions:
    """Return the options of a connector that do not depend on its transport.

    :param connector: the declaration
    :raises UnknownOptionError: if an option is unknown, or a value is invalid
    """
    return read_options(ConnectorOptions, connector.options, "", place_of(connector))


def transport_options(connector: Connector, definition: ConnectorDefinition) -> BaseModel | None:
    """Return the options of a connector's transport; None if they cannot be known before their references are replaced.

    :param connector: the declaration
    :param definition: the definition of the transport
    :raises UnknownOptionError: if an option is unknown or missing, or a value is invalid
    """
    of = f"transport {connector.transport!r}"
    return read_declared_options(definition.options, connector.transport_config, of, place_of(connector))


def formats_of(transport: str) -> tuple[str, ...]:
    """Return the formats that a transport can carry; none for a transport without formats.

    :param transport: the name of the transport
    """
    definition = find_connector(transport)
    return () if definition is None else definition.formats


def format_of(connector: Connector) -> FormatDefinition | None:
    """Return the format of a connector whose transport carries it; None for any other.

    :param connector: the declaration
    """
    if connector.format is None or connector.format not in formats_of(connector.transport):
        return None
    return find_format(connector.format)


def format_options(connector: Connector) -> BaseModel | None:
    """Return the options of a connector's format; None if its transport does not carry it, or they are not known yet.

    :param connector: the declaration
    :raises UnknownOptionError: if an option is unknown or missing, or a value is invalid
    """
    definition = format_of(connector)
    if definition is None:
        return None
    return read_declared_options(definition.options, connector.format_config, f"format {definition.name!r}", place_of(connector))


def mirrors(connector: Connector) -> bool:
    """Return True if the target of an output is to equal its view.

    :param connector: the declaration
    """
    definition = find_connector(connector.transport)
    if not isinstance(definition, OutputDefinition) or definition.mirrors is None:
        return False
    return definition.mirrors(connector.transport_config)


def idle_transport_options(connector: Connector) -> tuple[str, ...]:
    """Return the given options of a connector's transport that have no effect.

    :param connector: the declaration
    """
    definition = find_connector(connector.transport)
    if not isinstance(definition, OutputDefinition):
        return ()
    return tuple(sorted(definition.idle_options & connector.transport_config.keys()))


def is_seekable(transport: str) -> bool:
    """Return True if an input can be opened at a position.

    :param transport: the name of its transport
    """
    definition = find_connector(transport)
    return not isinstance(definition, InputDefinition) or definition.seekable


def delivery_of(connector: Connector) -> Delivery:
    """Return the time at which an output receives the changes of a step.

    :param connector: the declaration
    """
    definition = find_connector(connector.transport)
    if not isinstance(definition, OutputDefinition):
        return Delivery.QUEUED
    return definition.delivery if definition.delivery_of is None else definition.delivery_of(connector.transport_config)


def make_declared(connector: Connector, schema: RelationSchema, options_of_format: BaseModel | None) -> Declared:
    """Return the rest of a declaration that a definition's checks need besides the options of the transport.

    :param connector: the declaration
    :param schema: the schema of its table or view
    :param options_of_format: the options of the format; None if it has none, or they are not known
    """
    return Declared(connector.endpoint, schema, connector_options(connector), connector.format, options_of_format)


def run_check(
    check: Check, options: BaseModel, connector: Connector, schema: RelationSchema, options_of_format: BaseModel | None
) -> None:
    """Run a definition's check, and add the connector's place to its errors.

    :param check: one of the definition's checks
    :param options: the options of the transport
    :param connector: the declaration
    :param schema: the schema of its table or view
    :param options_of_format: the options of the format; None if it has none, or they are not known
    :raises InvalidOptionError: if the declaration cannot work
    """
    try:
        check(options, make_declared(connector, schema, options_of_format))
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{place_of(connector)}: {error}", error.word) from error
