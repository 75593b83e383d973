"""What a definition says of itself, and what is refused of a declaration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from airflow_pipelines.common.references import References
from airflow_pipelines.connectors.definition import ConnectorDefinition, Guarantee, InputDefinition
from airflow_pipelines.connectors.registry import find_connector
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError, UnknownOptionError
from airflow_pipelines.rows.schema import RelationSchema

SECRET = "hunter2-of-the-conformance-suite"


def definition_of(connector: Connector) -> ConnectorDefinition:
    """The definition of a connector's transport."""
    found = find_connector(connector.transport)
    assert found is not None, f"{connector.transport} is not registered"
    return found


def check_definition(connector: Connector) -> None:
    """What a definition says goes together."""
    definition = definition_of(connector)
    assert definition.name == connector.transport
    assert definition.direction is connector.direction
    assert definition.options.model_config.get("extra") in {"forbid", "allow"}, "what is not known is refused, or handed on"
    if isinstance(definition, InputDefinition) and not definition.seekable:
        assert definition.guarantee is not Guarantee.EXACTLY_ONCE, "without positions rows come again after a crash"
    if definition.packages:
        assert definition.extra is not None, "a message has to say what to install"


def check_refusals(connector: Connector, schema: RelationSchema) -> None:
    """What is wrong with a declaration is named, with its place and what there is instead, and no value is."""
    validate(connector, schema)
    definition = definition_of(connector)
    place = f"connector '{connector.endpoint}'"
    _refused(replace(connector, options={**connector.options, "pasued": True}), schema, place, "'pasued'", "did you mean 'paused'")
    if definition.options.model_config.get("extra") == "forbid":
        unknown = replace(connector, transport_config={**connector.transport_config, "no_such_option": SECRET})
        message = _refused(unknown, schema, place, "unknown option 'no_such_option'")
        assert not _names(definition.options) or any(name in message for name in _names(definition.options))
    for name, field in definition.options.model_fields.items():
        option = field.alias or name
        if field.is_required():
            rest = {key: value for key, value in connector.transport_config.items() if key != option}
            _refused(replace(connector, transport_config=rest), schema, place, option)
        if field.annotation in {int, float, bool} or field.is_required():
            wrong: Any = {"wrong": SECRET}
            _refused(replace(connector, transport_config={**connector.transport_config, option: wrong}), schema, place, option)
    if definition.formats:
        _refused(replace(connector, format=None), schema, place, "needs a format", definition.formats[0])
        _refused(replace(connector, format="no_such_format"), schema, place, "no_such_format", definition.formats[0])
        _refused(replace(connector, format_config={"no_such_option": SECRET}), schema, place, "no_such_option")


def check_references(connector: Connector, schema: RelationSchema) -> References:
    """Options may be references; what they stand for is compiled into nothing.

    :returns: references that stand for the connector's options
    """
    texts = {name: value for name, value in connector.transport_config.items() if isinstance(value, str)}
    hidden = replace(connector, transport_config={**connector.transport_config, **{name: f"${{env:{name}}}" for name in texts}})
    validate(hidden, schema)
    return References(texts)


def _refused(connector: Connector, schema: RelationSchema, *parts: str) -> str:
    with pytest.raises(UnknownOptionError) as error:
        validate(connector, schema)
    message = str(error.value)
    for part in parts:
        assert part in message
    assert SECRET not in message
    assert isinstance(error.value, InvalidOptionError) or "known" in message
    return message


def _names(model: type[BaseModel]) -> list[str]:
    return sorted(field.alias or name for name, field in model.model_fields.items())
