"""The ``program_info`` of the REST contract: the relations and connectors of a program that compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.reasons import RecomputedPart
from airflow_pipelines.program.spans import Span
from airflow_pipelines.program.streams import StreamProgram
from airflow_pipelines.rows.schema import Column


@dataclass(frozen=True, slots=True)
class PropertyInfo:
    """A property of a relation as it was written, with the spans of its key and of its value."""

    value: str
    key_span: Span
    value_span: Span

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"value": self.value, "key_position": _position(self.key_span), "value_position": _position(self.value_span)}


@dataclass(frozen=True, slots=True)
class RelationInfo:
    """A table or view.

    :param primary_key: the key's columns in order, None if there is no key
    """

    name: str
    columns: tuple[Column, ...]
    case_sensitive: bool = False
    materialized: bool = False
    primary_key: tuple[str, ...] | None = None
    properties: Mapping[str, PropertyInfo] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "case_sensitive": self.case_sensitive,
            "fields": [_field(column) for column in self.columns],
            "materialized": self.materialized,
            "primary_key": None if self.primary_key is None else list(self.primary_key),
            "properties": {key: each.to_wire() for key, each in self.properties.items()},
        }


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """The tables and visible views of a program, its connectors and stream program, and the parts of its views that are recomputed.

    Its JSON form has a place for the dataflow graph, which only the engine knows (:mod:`airflow_pipelines.engine.dataflow`).
    """

    inputs: tuple[RelationInfo, ...]
    outputs: tuple[RelationInfo, ...]
    connectors: tuple[Connector, ...] = ()
    streams: StreamProgram | None = None
    recomputed: tuple[RecomputedPart, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form, with fields for the stream program and for recomputed parts only if there are such."""
        return {
            "schema": {"inputs": [each.to_wire() for each in self.inputs], "outputs": [each.to_wire() for each in self.outputs]},
            "udf_stubs": "",
            "input_connectors": self._connectors_to_wire(ConnectorDirection.INPUT),
            "output_connectors": self._connectors_to_wire(ConnectorDirection.OUTPUT),
            "dataflow": None,
            **({} if self.streams is None else {"streams": self.streams.to_json()}),
            **({} if not self.recomputed else {"recomputed": [part.to_wire() for part in self.recomputed]}),
        }

    def _connectors_to_wire(self, direction: ConnectorDirection) -> dict[str, Any]:
        return {each.endpoint: _connector(each) for each in self.connectors if each.direction is direction}


def _field(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "case_sensitive": column.case_sensitive,
        "columntype": column.type.to_wire(),
        "default": column.default,
        "lateness": column.lateness,
        "watermark": None,
        "unused": False,
    }


def _position(span: Span) -> dict[str, int]:
    return {
        "start_line_number": span.start_line,
        "start_column": span.start_column,
        "end_line_number": span.end_line,
        "end_column": span.end_column,
    }


def _connector(connector: Connector) -> dict[str, Any]:
    described: dict[str, Any] = {
        "stream": connector.relation,
        "transport": {"name": connector.transport, "config": dict(connector.transport_config)},
        "format": None,
        "labels": [],
        "start_after": None,
        "paused": False,
        **connector.options,
    }
    if connector.format is not None:
        described["format"] = {"name": connector.format, "config": dict(connector.format_config)}
    return described
