"""The registry of connectors and formats by name: those of this package, and those of other packages."""

from __future__ import annotations

from typing import Final

from airflow_pipelines.connectors.built_in import BUILT_IN_FORMATS, BUILT_IN_INPUTS, BUILT_IN_OUTPUTS
from airflow_pipelines.connectors.definition import ConnectorDefinition, InputDefinition, OutputDefinition
from airflow_pipelines.connectors.lookup import DefinitionLookup
from airflow_pipelines.program.connectors import ConnectorDirection
from airflow_pipelines.rows.formats.definition import FormatDefinition
from airflow_pipelines.rows.formats.option_errors import UnknownOptionError

CONNECTORS_OF_OTHERS: Final = "airflow_pipelines.connectors"
"""The group of entry points by which other packages add connectors."""
FORMATS_OF_OTHERS: Final = "airflow_pipelines.formats"
"""The group of entry points by which other packages add formats."""

_CONNECTORS: Final[DefinitionLookup[ConnectorDefinition]] = DefinitionLookup(
    "transport", (InputDefinition, OutputDefinition), {**BUILT_IN_INPUTS, **BUILT_IN_OUTPUTS}, CONNECTORS_OF_OTHERS
)
_FORMATS: Final[DefinitionLookup[FormatDefinition]] = DefinitionLookup(
    "format", (FormatDefinition,), BUILT_IN_FORMATS, FORMATS_OF_OTHERS
)


def find_connector(transport: str) -> ConnectorDefinition | None:
    """Return the definition of a connector of this or another package; None if there is none.

    :param transport: the name of the transport
    :raises UnknownOptionError: if another package declares it, and it cannot be imported
    """
    return _CONNECTORS.find(transport)


def connector_names(direction: ConnectorDirection) -> frozenset[str]:
    """Return the names of the connectors of a direction, including those of other packages.

    :param direction: the direction
    """
    own = BUILT_IN_INPUTS if direction is ConnectorDirection.INPUT else BUILT_IN_OUTPUTS
    return frozenset(
        {*own, *(name for name in _CONNECTORS.names() if _CONNECTORS.of_others(name) and _has_direction(name, direction))}
    )


def find_format(name: str) -> FormatDefinition | None:
    """Return the definition of a format of this or another package; None if there is none.

    :param name: the name of the format
    :raises UnknownOptionError: if another package declares it, and it cannot be imported
    """
    return _FORMATS.find(name)


def format_names() -> frozenset[str]:
    """Return the names of all formats, including those of other packages."""
    return _FORMATS.names()


def _has_direction(name: str, direction: ConnectorDirection) -> bool:
    try:
        definition = find_connector(name)
    except UnknownOptionError:
        # It is unusable; a program that names it gets the reason.
        return False
    return definition is not None and definition.direction is direction
