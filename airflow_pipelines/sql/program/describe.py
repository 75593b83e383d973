"""What the REST contract calls ``program_info``: the relations and connectors of a compiled program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.program.places import Span
from airflow_pipelines.program.relations import Column, Table, ViewKind
from airflow_pipelines.program.system_view import ERROR_VIEW_COLUMNS
from airflow_pipelines.sql.program.declarations import ParsedProgram, PropertyText, ViewDeclaration


def program_info(program: ParsedProgram, view_columns: Mapping[str, Sequence[Column]]) -> dict[str, Any]:
    """Describe a program as the REST contract does.

    :param program: the program
    :param view_columns: the columns of each view by its canonical name
    :returns: JSON-ready object; LOCAL views are not listed, the system view is
    """
    views = [view for view in program.views.values() if view.kind is not ViewKind.LOCAL]
    outputs = [_view(view, view_columns[view.name]) for view in views]
    outputs.append(_relation(SYSTEM_VIEW, False, ERROR_VIEW_COLUMNS, False, None, {}))
    connectors = program.connectors()
    return {
        "schema": {
            "inputs": [_table(table, program.table_properties[table.name]) for table in program.tables.values()],
            "outputs": outputs,
        },
        "udf_stubs": "",
        "input_connectors": {c.endpoint: _connector(c) for c in connectors if c.direction is ConnectorDirection.INPUT},
        "output_connectors": {c.endpoint: _connector(c) for c in connectors if c.direction is ConnectorDirection.OUTPUT},
    }


def _table(table: Table, properties: Mapping[str, PropertyText]) -> dict[str, Any]:
    return _relation(table.name, table.case_sensitive, table.columns, table.materialized, table.primary_key, properties)


def _view(view: ViewDeclaration, columns: Sequence[Column]) -> dict[str, Any]:
    return _relation(view.name, view.case_sensitive, columns, view.kind is ViewKind.MATERIALIZED, None, view.properties)


def _relation(
    name: str,
    case_sensitive: bool,
    columns: Sequence[Column],
    materialized: bool,
    primary_key: Sequence[str] | None,
    properties: Mapping[str, PropertyText],
) -> dict[str, Any]:
    return {
        "name": name,
        "case_sensitive": case_sensitive,
        "fields": [_field(column) for column in columns],
        "materialized": materialized,
        "primary_key": None if primary_key is None else list(primary_key),
        "properties": {key: _property(text) for key, text in properties.items()},
    }


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


def _property(text: PropertyText) -> dict[str, Any]:
    return {"value": text.value, "key_position": _position(text.key_span), "value_position": _position(text.value_span)}


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
