"""The converter of a column type: from JSON or text to values that Arrow accepts, including collections and their elements."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.rows.formats import jsontext, variant
from airflow_pipelines.rows.formats.converting import Converter, make_mismatch, nullable_converter
from airflow_pipelines.rows.formats.flavors import DEFAULT_FORMS, ValueForms
from airflow_pipelines.rows.formats.intervals import interval_converter
from airflow_pipelines.rows.formats.numbers import (
    NAMED_FLOATS,
    decimal_converter,
    float_converter,
    integer_converter,
    number_of_text,
)
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.rows.formats.strings import binary_converter, string_converter, uuid_of
from airflow_pipelines.rows.formats.times import times_converter
from airflow_pipelines.rows.types import ColumnType


def json_converter(kind: ColumnType, forms: ValueForms = DEFAULT_FORMS) -> Converter:
    """Make a converter from parsed JSON (floats parsed as Decimal) to values of ``kind``.

    :param kind: the type
    :param forms: the forms of values besides the default ones
    :raises RecordProblem: when values of ``kind`` cannot be read; it is raised at once
    """
    if kind.component is not None:
        return _list_converter(kind.component, forms)
    if kind.key is not None and kind.value is not None:
        return _map_converter(kind.key, kind.value, forms)
    if kind.fields is not None:
        return _struct_converter(kind.fields, forms)
    if kind.is_integer:
        return integer_converter(kind)
    if kind.is_decimal:
        return decimal_converter(kind)
    if kind.is_floating:
        return float_converter(kind)
    if kind.is_text:
        return string_converter(kind)
    if kind.is_binary:
        return binary_converter(kind, forms.binary)
    if kind.is_interval:
        return interval_converter(kind)
    if kind.is_temporal:
        return times_converter(kind.name, forms)
    simple: dict[str, Converter] = {
        "BOOLEAN": _boolean,
        "UUID": uuid_of,
        "VARIANT": _variant_of_text if forms.variants_are_texts else variant.encode,
    }
    if kind.name in simple:
        return simple[kind.name]
    raise RecordProblem(f"values of type {kind.name} cannot be read from an input")


def text_converter(kind: ColumnType) -> Converter:
    """Make a converter from text, in a CSV field or a map's key, to values of ``kind``.

    Arrays, maps, structs, binary and variant values are written as JSON. Blanks around anything but a string are ignored.

    :raises RecordProblem: when values of ``kind`` cannot be read; it is raised at once
    """
    convert = json_converter(kind)
    if kind.is_text:
        return convert
    if kind.is_integer or kind.is_decimal:
        return lambda text: convert(number_of_text(text.strip(" \t")))
    if kind.is_floating:
        return lambda text: convert(word if (word := text.strip(" \t")) in NAMED_FLOATS else number_of_text(word))
    if kind.is_boolean:
        return _boolean_of_text
    if kind.is_temporal or kind.is_uuid or kind.is_interval:
        return lambda text: convert(text.strip(" \t"))

    def from_json(text: str) -> Any:
        try:
            value = jsontext.loads(text)
        except jsontext.MALFORMED as error:
            raise RecordProblem(f"{excerpt(text)!r} is not JSON, which {kind.name} values are written as: {error}") from error
        return None if value is None and not kind.is_variant else convert(value)

    return from_json


def is_null_text(text: str) -> bool:
    """Return True if a CSV field represents NULL in a column that is not a string."""
    return text.strip(" \t") in {"", "NULL", "null"}


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise make_mismatch("true or false", value)


def _boolean_of_text(text: str) -> bool:
    word = text.strip(" \t").lower()
    if word in {"true", "false"}:
        return word == "true"
    raise RecordProblem(f"{excerpt(text, 60)!r} is not true or false")


def _variant_of_text(value: Any) -> Any:
    """Parse JSON within a text; a value that is no text is used unchanged."""
    if not isinstance(value, str):
        return variant.encode(value)
    try:
        return variant.encode(jsontext.loads(value))
    except jsontext.MALFORMED as error:
        raise RecordProblem(f"{excerpt(value)!r} is not JSON: {error}") from error


def _list_converter(component: ColumnType, forms: ValueForms) -> Converter:
    element = nullable_converter(json_converter(component, forms), component, "an element")

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise make_mismatch("an array", value)
        return [element(item) for item in value]

    return convert


def _map_converter(key_kind: ColumnType, value_kind: ColumnType, forms: ValueForms) -> Converter:
    key = text_converter(key_kind)
    item = nullable_converter(json_converter(value_kind, forms), value_kind, "a map's value")

    def convert(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, dict):
            raise make_mismatch("a map, written as a JSON object", value)
        pairs = [(key(name), item(content)) for name, content in value.items()]
        if any(name is None for name, _ in pairs):
            raise RecordProblem("a map's key must not be NULL")
        if len({_to_comparable(name) for name, _ in pairs}) < len(pairs):
            raise RecordProblem(f"the map {excerpt(jsontext.dumps_for_message(value), 60)} has a key twice")
        return pairs

    return convert


def _to_comparable(value: Any) -> Any:
    """Convert a value to a hashable form that is equal for values that are stored as one."""
    if isinstance(value, float):
        # The positive and the negative zero are stored as one.
        return value + 0.0
    if isinstance(value, dict):
        return tuple(_to_comparable(part) for part in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(_to_comparable(part) for part in value)
    return value


def _struct_converter(fields: tuple[tuple[str, ColumnType], ...], forms: ValueForms) -> Converter:
    readers = [(name, nullable_converter(json_converter(kind, forms), kind, f"field {name!r}")) for name, kind in fields]

    def convert(value: Any) -> dict[str, Any]:
        if isinstance(value, list) and len(value) == len(readers):
            return {name: read(item) for (name, read), item in zip(readers, value, strict=True)}
        if not isinstance(value, dict):
            raise make_mismatch("a struct, written as a JSON object", value)
        folded = {name.lower(): item for name, item in value.items()}
        return {name: read(value[name] if name in value else folded.get(name.lower())) for name, read in readers}

    return convert
