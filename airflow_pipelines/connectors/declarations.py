"""What a declaration of a connector says: its place for messages, its options, its format, and what its definition says of them."""

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
    """The connector as messages call it.

    :param connector: its declaration
    """
    return f"connector {connector.endpoint!r}"


def connector_options(connector: Connector) -> ConnectorOptions:
    """The options of a connector that do not depend on its transport.

    :param connector: its declaration
    :raises UnknownOptionError: for an unknown option or a bad value
    """
    return read_options(ConnectorOptions, connector.options, "", place_of(connector))


def transport_options(connector: Connector, definition: ConnectorDefinition) -> BaseModel | None:
    """The options of a connector's transport; None while what references in them stand for has to be known.

    :param connector: its declaration
    :param definition: of the transport
    :raises UnknownOptionError: for an unknown option, a missing one or a bad value
    """
    of = f"transport {connector.transport!r}"
    return read_declared_options(definition.options, connector.transport_config, of, place_of(connector))


def formats_of(transport: str) -> tuple[str, ...]:
    """The formats that a transport can carry; none for one that needs none.

    :param transport: its name
    """
    definition = find_connector(transport)
    return () if definition is None else definition.formats


def format_of(connector: Connector) -> FormatDefinition | None:
    """The format of a connector whose transport carries it; None for any other.

    :param connector: its declaration
    """
    if connector.format is None or connector.format not in formats_of(connector.transport):
        return None
    return find_format(connector.format)


def format_options(connector: Connector) -> BaseModel | None:
    """The options of the format of a connector whose transport carries it; None for any other, and while they are not known.

    :param connector: its declaration
    :raises UnknownOptionError: for an unknown option, a missing one or a bad value
    """
    found = format_of(connector)
    if found is None:
        return None
    return read_declared_options(found.options, connector.format_config, f"format {found.name!r}", place_of(connector))


def mirrors(connector: Connector) -> bool:
    """Whether the target of an output is to equal its view.

    :param connector: its declaration
    """
    definition = find_connector(connector.transport)
    if not isinstance(definition, OutputDefinition) or definition.mirrors is None:
        return False
    return definition.mirrors(connector.transport_config)


def idle_transport_options(connector: Connector) -> tuple[str, ...]:
    """The options of a connector's transport that were given and have no effect.

    :param connector: its declaration
    """
    definition = find_connector(connector.transport)
    if not isinstance(definition, OutputDefinition):
        return ()
    return tuple(sorted(definition.idle_options & connector.transport_config.keys()))


def is_seekable(transport: str) -> bool:
    """Whether an input can be opened in the middle.

    :param transport: the name of its transport
    """
    definition = find_connector(transport)
    return not isinstance(definition, InputDefinition) or definition.seekable


def delivery_of(connector: Connector) -> Delivery:
    """When an output gets the changes of a step.

    :param connector: its declaration
    """
    definition = find_connector(connector.transport)
    if not isinstance(definition, OutputDefinition):
        return Delivery.QUEUED
    return definition.delivery if definition.delivery_of is None else definition.delivery_of(connector.transport_config)


def declared(connector: Connector, schema: RelationSchema, options_of_format: BaseModel | None) -> Declared:
    """What a definition's checks get besides the options of the transport.

    :param connector: the declaration
    :param schema: of its table or view
    :param options_of_format: those of the format; None where it has none, or they are not known
    """
    return Declared(connector.endpoint, schema, connector_options(connector), connector.format, options_of_format)


def run_check(
    check: Check, options: BaseModel, connector: Connector, schema: RelationSchema, options_of_format: BaseModel | None
) -> None:
    """Have a definition check what the options alone do not say, and put the connector's place before what it says.

    :param check: one of the definition's checks
    :param options: those of the transport
    :param connector: the declaration
    :param schema: of its table or view
    :param options_of_format: those of the format; None where it has none, or they are not known
    :raises InvalidOptionError: when the declaration cannot work
    """
    try:
        check(options, declared(connector, schema, options_of_format))
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{place_of(connector)}: {error}", error.word) from error
