"""Conversion of values of declared types from and to JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from airflow_pipelines.datastream.common import field_text
from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo, PickledBytesTypeInfo
from airflow_pipelines.datastream.common.composite_types import ArrayTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from airflow_pipelines.datastream.common.row import RowKind, checked_row
from airflow_pipelines.datastream.common.type_information import TypeConversionError, TypeInformation, misfit

_NUMBERS = (BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.BIG_INT, BasicType.BIG_DEC)
_FLOATS = (BasicType.FLOAT, BasicType.DOUBLE)
_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_quoted = json.JSONEncoder(ensure_ascii=False).encode
"""The function that quotes a text as JSON. Making an encoder for each text takes three times as long."""


def json_reader(type_: TypeInformation, fail_on_missing_field: bool) -> Callable[[Any], Any]:
    """Return a function that converts a value from ``json.loads``, with ``Decimal`` for fractions, to a type.

    :param type_: type of the value
    :param fail_on_missing_field: True to raise an error for a field that an object lacks; otherwise it is None
    :returns: a function that raises :class:`TypeConversionError` for JSON that does not fit
    :raises TypeError: if JSON has no form for the type
    """
    if isinstance(type_, BasicTypeInfo):
        return _expecting(type_.basic_type, _basic_reader(type_))
    if isinstance(type_, RowTypeInfo):
        return _row_reader(type_, fail_on_missing_field)
    if isinstance(type_, (ArrayTypeInfo, ListTypeInfo)):
        return _list_reader(type_, json_reader(type_.element_type, fail_on_missing_field))
    if isinstance(type_, MapTypeInfo):
        return _map_reader(type_, json_reader(type_.value_type, fail_on_missing_field))
    raise _no_form(type_)


def json_writer(type_: TypeInformation) -> Callable[[Any], str]:
    """Return a function that writes a value as JSON.

    :param type_: type of the value
    :returns: a function of a coerced value, which raises ValueError for a number that JSON cannot express
    :raises TypeError: if JSON has no form for the type
    """
    write = _writer(type_)
    return lambda value: "null" if value is None else write(value)


def _basic_reader(type_: BasicTypeInfo) -> Callable[[Any], Any]:
    read_text = field_text.reader(type_)
    text_is_json = type_.basic_type in (BasicType.STRING, BasicType.CHAR)

    def read(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, str):
            return read_text(value)
        if text_is_json or isinstance(value, bool):
            return read_text(json.dumps(value, default=_number))
        if isinstance(value, (int, float, Decimal)):
            whole = isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value()
            return read_text(str(int(value)) if whole and type_.basic_type not in (BasicType.BIG_DEC, *_FLOATS) else str(value))
        raise misfit(value, repr(type_), "JSON has an object or a list there")

    return read


def _expecting(kind: BasicType, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an equivalent function that is faster for values in the expected JSON form, which skip the conversion through text."""
    if kind in _BITS:
        end = 1 << _BITS[kind] - 1
        return lambda value: value if type(value) is int and -end <= value < end else read(value)
    if kind is BasicType.DOUBLE:
        return lambda value: float(value) if type(value) is Decimal else read(value)
    expected = {BasicType.STRING: str, BasicType.BOOLEAN: bool}.get(kind)
    return read if expected is None else lambda value: value if type(value) is expected else read(value)


def _number(value: Any) -> Any:
    return int(value) if value == value.to_integral_value() else float(value)


def _row_reader(type_: RowTypeInfo, fail_on_missing_field: bool) -> Callable[[Any], Any]:
    names = tuple(type_.get_field_names())
    fields = [(name, json_reader(each, fail_on_missing_field)) for name, each in zip(names, type_.get_field_types(), strict=True)]

    def read_row(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise misfit(value, repr(type_), "JSON needs an object there")
        values: list[Any] = []
        for name, read in fields:
            if fail_on_missing_field and name not in value:
                raise TypeConversionError(f"the object has no field {name!r}; its fields are {sorted(value)}")
            try:
                values.append(read(value.get(name)))
            except TypeConversionError as error:
                raise error.below(f"field {name!r}") from None
        return checked_row(values, names, RowKind.INSERT)

    return read_row


def _list_reader(type_: ArrayTypeInfo | ListTypeInfo, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_list(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, str) and isinstance(type_.convert([]), bytes):
            return base64.b64decode(value, validate=True)
        if not isinstance(value, list):
            raise misfit(value, repr(type_), "JSON needs a list there")
        return type_.convert([read(each) for each in value])

    return read_list


def _map_reader(type_: MapTypeInfo, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if not isinstance(type_.key_type, BasicTypeInfo):
        raise _no_form(type_)
    read_key = field_text.reader(type_.key_type)

    def read_map(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise misfit(value, repr(type_), "JSON needs an object there")
        return {read_key(key): read(each) for key, each in value.items()}

    return read_map


def _writer(type_: TypeInformation) -> Callable[[Any], str]:
    if isinstance(type_, BasicTypeInfo):
        return _basic_writer(type_)
    if isinstance(type_, RowTypeInfo):
        return _row_writer(type_)
    if isinstance(type_, (ArrayTypeInfo, ListTypeInfo)):
        write = json_writer(type_.element_type)
        return lambda value: _base64(value) if isinstance(value, bytes) else f"[{','.join(map(write, value))}]"
    if isinstance(type_, MapTypeInfo) and isinstance(type_.key_type, BasicTypeInfo):
        key, write = field_text.writer(type_.key_type), json_writer(type_.value_type)
        return lambda value: f"{{{','.join(f'{_quoted(key(name))}:{write(each)}' for name, each in value.items())}}}"
    raise _no_form(type_)


def _basic_writer(type_: BasicTypeInfo) -> Callable[[Any], str]:
    text = field_text.writer(type_)
    if type_.basic_type in _NUMBERS or type_.basic_type is BasicType.BOOLEAN:
        return text
    if type_.basic_type in _FLOATS:
        return _float
    if type_.basic_type is BasicType.SQL_TIME:
        return lambda value: _quoted(f"{text(value)}Z")
    if type_.basic_type is BasicType.SQL_TIMESTAMP:
        return lambda value: _quoted(f"{value.isoformat()}Z")
    return lambda value: _quoted(text(value))


def _row_writer(type_: RowTypeInfo) -> Callable[[Any], str]:
    writers = [
        (f"{_quoted(name)}:", json_writer(each))
        for name, each in zip(type_.get_field_names(), type_.get_field_types(), strict=True)
    ]
    return lambda value: f"{{{','.join(name + write(each) for (name, write), each in zip(writers, value, strict=True))}}}"


def _base64(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"JSON has no number {value}; use map to make it None")
    return repr(value)


def _no_form(type_: TypeInformation) -> TypeError:
    if isinstance(type_, (PickledBytesTypeInfo, TupleTypeInfo)):
        return TypeError(f"JSON has no form for {type_!r}: declare Types.ROW_NAMED([names], [types])")
    return TypeError(f"JSON has no form for {type_!r}: the keys of its maps must be of a basic type such as Types.STRING()")
