"""Types of rows from JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo, Types

_FORMATS = {"date": Types.SQL_DATE(), "time": Types.SQL_TIME(), "date-time": Types.SQL_TIMESTAMP()}


def row_type_of(json_schema: str) -> RowTypeInfo:
    """Return the type of the rows that a JSON schema describes.

    :param json_schema: text of the schema, which must have the type ``object``
    :returns: the type of a row with a field for each property
    :raises ValueError: if it is not such a schema
    """
    try:
        schema = json.loads(json_schema)
    except ValueError as error:
        raise ValueError(f"The JSON schema is no JSON: {error}") from None
    type_ = _type_of(schema, "the schema", schema)
    if not isinstance(type_, RowTypeInfo):
        raise ValueError("The JSON schema must describe an object with properties")  # noqa: TRY004 (its text is wrong, not its type)
    return type_


def _type_of(schema: Any, place: str, root: Any) -> TypeInformation:
    if not isinstance(schema, Mapping):
        raise ValueError(f"{place} of the JSON schema is {schema!r:.80}: an object is needed")  # noqa: TRY004 (as above)
    if "$ref" in schema:
        return _type_of(_resolve_reference(str(schema["$ref"]), root), place, root)
    match _single(schema.get("type"), place):
        case "object":
            properties = schema.get("properties", {})
            return Types.ROW_NAMED(properties, [_type_of(each, f"property {name!r}", root) for name, each in properties.items()])
        case "array":
            return Types.OBJECT_ARRAY(_type_of(schema.get("items"), f"items of {place}", root))
        case "string":
            if schema.get("contentEncoding") == "base64":
                return Types.PRIMITIVE_ARRAY(Types.BYTE())
            return _FORMATS.get(schema.get("format", ""), Types.STRING())
        case "number":
            return Types.BIG_DEC()
        case "integer":
            return Types.BIG_INT()
        case "boolean":
            return Types.BOOLEAN()
        case other:
            raise ValueError(f"{place} of the JSON schema has the unknown type {other!r}")


def _single(type_: Any, place: str) -> Any:
    if not isinstance(type_, list):
        return type_
    types = [each for each in type_ if each != "null"]
    if len(types) != 1:
        raise ValueError(f"{place} of the JSON schema has the types {type_}: only one beside 'null' is possible")
    return types[0]


def _resolve_reference(reference: str, root: Any) -> Any:
    target = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if not reference.startswith("#/") or not isinstance(target, Mapping) or part not in target:
            raise ValueError(f"The JSON schema refers to {reference!r}, which is not in it")
        target = target[part]
    return target
