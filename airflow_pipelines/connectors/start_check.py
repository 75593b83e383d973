"""The check that a pipeline can start with a declaration of a connector that compiles."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_pipelines.connectors.client_libraries import missing_libraries
from airflow_pipelines.connectors.declarations import (
    connector_options,
    format_of,
    format_options,
    formats_of,
    make_declared,
    transport_options,
)
from airflow_pipelines.connectors.definition import OutputDefinition
from airflow_pipelines.connectors.indexes import key_columns
from airflow_pipelines.connectors.planned_transports import PLANNED_TRANSPORTS, PlannedTransport
from airflow_pipelines.connectors.registry import find_connector
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.relations import Index
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema


def check_usable(connector: Connector, schema: RelationSchema, indexes: Iterable[Index] = ()) -> None:
    """Check that a pipeline can start with a declaration that compiles.

    :param connector: the declaration
    :param schema: the schema of its table or view
    :param indexes: the indexes of the program
    :raises Problem: if its transport or format is not part of this release, or its settings cannot work
    """
    planned = PLANNED_TRANSPORTS.get(connector.transport)
    if planned is not None and find_connector(connector.transport) is None:
        raise _make_missing_transport_problem(connector, planned)
    formats = formats_of(connector.transport)
    if formats and connector.format not in formats:
        is_input = connector.direction is ConnectorDirection.INPUT
        raise _make_problem(
            ErrorCode.UNKNOWN_INPUT_FORMAT if is_input else ErrorCode.UNKNOWN_OUTPUT_FORMAT,
            connector,
            f"format {connector.format!r} of transport {connector.transport!r} is not part of this release. What there is instead: "
            f"{', '.join(formats)}",
        )
    _check_processors(connector)
    if connector.direction is ConnectorDirection.OUTPUT:
        _check_output(connector, indexes)
    try:
        _check_definition(connector, schema)
    except InvalidOptionError as error:
        raise _make_problem(ErrorCode.INVALID_TRANSPORT_CONFIG, connector, str(error)) from error


def _check_processors(connector: Connector) -> None:
    options = connector_options(connector)
    name, processor, instead = (
        (
            "preprocessor",
            options.preprocessor,
            "let the connector read what the preprocessor would give, or transform rows in a view",
        )
        if connector.direction is ConnectorDirection.INPUT
        else ("postprocessor", options.postprocessor, "transform rows in the view, or what the connector wrote afterwards")
    )
    if processor:
        raise _make_problem(
            ErrorCode.INVALID_TRANSPORT_CONFIG,
            connector,
            f"option {name!r} is not part of this release, and without it the data would not be as declared. Remove it: {instead}",
        )


def _check_output(connector: Connector, indexes: Iterable[Index]) -> None:
    try:
        key_columns(connector_options(connector).index, connector.relation, indexes)
        _check_written(connector)
    except InvalidOptionError as error:
        raise _make_problem(ErrorCode.INVALID_TRANSPORT_CONFIG, connector, str(error)) from error


def _check_definition(connector: Connector, schema: RelationSchema) -> None:
    definition = find_connector(connector.transport)
    if definition is None:
        return
    for needs in (definition, format_of(connector)):
        missing = None if needs is None else missing_libraries(needs)
        if missing is not None:
            raise InvalidOptionError(missing)
    if definition.check_start is not None:
        options = transport_options(connector, definition)
        if options is not None:
            definition.check_start(options, make_declared(connector, schema, format_options(connector)))


def _check_written(connector: Connector) -> None:
    """Check that the format of an output can be written with its options."""
    definition, options = format_of(connector), format_options(connector)
    if definition is None or definition.check_written is None or options is None:
        return
    transport = find_connector(connector.transport)
    if isinstance(transport, OutputDefinition) and transport.writes_messages and definition.check_messages_written is not None:
        # This was checked when the program was compiled.
        return
    definition.check_written(options)


def _make_missing_transport_problem(connector: Connector, planned: PlannedTransport) -> Problem:
    is_input = planned.direction is ConnectorDirection.INPUT
    return _make_problem(
        ErrorCode.UNKNOWN_INPUT_TRANSPORT if is_input else ErrorCode.UNKNOWN_OUTPUT_TRANSPORT,
        connector,
        f"transport {connector.transport!r} is not part of this release. What there is instead: {planned.instead}. Replace the "
        "connector, or remove it",
    )


def _make_problem(code: ErrorCode, connector: Connector, reason: str) -> Problem:
    details = {"connector": connector.endpoint, "transport": connector.transport}
    return Problem(code, f"Connector {connector.endpoint!r} cannot start: {reason}.", details)
