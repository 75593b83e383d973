"""Avro schemas that refer to others in a registry."""

from __future__ import annotations

import json
from typing import Any

from airflow_pipelines.rows.formats.avro.rows import Schema
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.registered.registry import RegisteredSchema, SchemaRegistry


def definition_of(schema: RegisteredSchema, registry: SchemaRegistry, what: str, within: tuple[str, ...] = ()) -> Schema:
    """Replace the names of the schemas to which a schema refers by their definitions.

    :param schema: the schema in the registry
    :param registry: the registry with the others
    :param what: the name of the schema in messages
    :param within: the names of those that refer to it
    :raises RecordProblem: when it is no Avro schema, or refers to a missing one
    :raises FormatFailure: when the registry refuses to answer
    """
    if schema.kind != "AVRO":
        raise RecordProblem(f"{what} is one of {schema.kind}, and not of Avro")
    definition = json.loads(schema.text) if schema.text.lstrip()[:1] in ("{", "[", '"') else schema.text
    others: dict[str, Any] = {}
    for reference in schema.references:
        if reference.name in within:
            raise RecordProblem(f"{what} refers to itself by {reference.name!r}")
        referenced = registry.fetch_referenced(reference, what)
        called = f"{reference.subject} {reference.version}"
        others[reference.name] = definition_of(referenced, registry, called, (*within, reference.name))
    return _insert_others(definition, others) if others else definition


def _insert_others(schema: Any, others: dict[str, Any]) -> Any:
    """Put the definition of each other schema at the first occurrence of its name."""
    if isinstance(schema, str):
        return _insert_others(others.pop(schema), others) if schema in others else schema
    if isinstance(schema, list):
        return [_insert_others(member, others) for member in schema]
    if isinstance(schema, dict):
        parts = {"type", "items", "values"}
        changed = {name: _insert_others(value, others) if name in parts else value for name, value in schema.items()}
        if "fields" in schema:
            changed["fields"] = [{**field, "type": _insert_others(field["type"], others)} for field in schema["fields"]]
        return changed
    return schema
