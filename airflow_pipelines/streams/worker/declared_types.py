"""Requirements that the SQL type of a column adds to its Arrow type: lengths, UUIDs, unsigned integers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

DECLARED: Final = b"airflow_pipelines.declared"
"""The key in a field's metadata for the column's SQL type, in the form of column types in the REST contract."""

_UNSIGNED: Final[Mapping[str, int]] = {
    "UTINYINT": 2**8 - 1,
    "USMALLINT": 2**16 - 1,
    "UINTEGER": 2**32 - 1,
    "UBIGINT": 2**64 - 1,
}
_UUID_LENGTH: Final = 36
Stored = Callable[[Any], Any]
"""A function that converts a value to its stored form. A value of another type stays as it is: Arrow refuses it.

:raises ValueError: if the value is invalid; the message says why
"""


def stored_by(column: pa.Field) -> Stored | None:
    """Return the conversion of a column's values to their stored form.

    :param column: the field, with its SQL type in its metadata
    :returns: the function; None if all values stay as they are
    """
    declared = (column.metadata or {}).get(DECLARED)
    return None if declared is None else _make_conversion(json.loads(declared))


def _make_conversion(kind: Mapping[str, Any]) -> Stored | None:
    name, size = kind["type"], kind["precision"]
    if size is not None and name in _SIZED:
        return _SIZED[name](name, size)
    if name == "UUID":
        return _uuid
    if name in _UNSIGNED:
        return _unsigned(_UNSIGNED[name])
    if kind["component"] is not None:
        return _list(_make_conversion(kind["component"]))
    if kind["key"] is not None:
        return _map(_make_conversion(kind["key"]), _make_conversion(kind["value"]))
    if kind["fields"] is not None:
        return _struct({field["name"]: _make_conversion(field["columntype"]) for field in kind["fields"]})
    return None


def _text(name: str, length: int) -> Stored:
    def convert(value: Any) -> Any:
        if isinstance(value, str) and len(value) > length:
            raise ValueError(f"it has {len(value)} characters, and {name}({length}) takes at most {length}")
        return value

    return convert


def _bytes(name: str, length: int) -> Stored:
    def convert(value: Any) -> Any:
        if isinstance(value, bytes | bytearray) and len(value) > length:
            raise ValueError(f"it has {len(value)} bytes, and {name}({length}) takes at most {length}")
        return value

    return convert


def _padded_bytes(name: str, length: int) -> Stored:
    data = _bytes(name, length)
    return lambda value: data(value).ljust(length, b"\0") if isinstance(value, bytes | bytearray) else value


_SIZED: Final[Mapping[str, Callable[[str, int], Stored]]] = {
    "VARCHAR": _text,
    "CHAR": _text,
    "VARBINARY": _bytes,
    "BINARY": _padded_bytes,
}


def _uuid(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if not isinstance(value, str):
        return value
    # Accept only the usual form, as for rows from outside: Python's class would also accept braces, URNs and odd hyphens.
    try:
        if len(value) == _UUID_LENGTH and str(UUID(value)) == value.lower():
            return value.lower()
    except ValueError:
        pass
    raise ValueError("it is no UUID such as '0b9b2c4e-5a0f-4c0e-9d55-0c4d9c1f7a11'")


def _unsigned(most: int) -> Stored:
    def convert(value: Any) -> Any:
        if isinstance(value, int | float | Decimal) and not 0 <= value <= most:
            raise ValueError(f"it is not between 0 and {most}")
        return value

    return convert


def _list(stored: Stored | None) -> Stored | None:
    if stored is None:
        return None
    return lambda value: list(map(stored, value)) if _has_elements(value) else value


def _has_elements(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _map(stored_key: Stored | None, stored_item: Stored | None) -> Stored | None:
    if stored_key is None and stored_item is None:
        return None
    key, item = stored_key or _as_it_is, stored_item or _as_it_is

    def convert(value: Any) -> Any:
        entries = value.items() if isinstance(value, Mapping) else value
        return [(key(each), item(of_it)) for each, of_it in entries] if _has_elements(entries) else value

    return convert


def _struct(by_name: Mapping[str, Stored | None]) -> Stored | None:
    if not any(by_name.values()):
        return None

    def convert(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: (by_name.get(name) or _as_it_is)(each) for name, each in value.items()}
        if isinstance(value, tuple) and len(value) == len(by_name):
            return tuple((each or _as_it_is)(item) for each, item in zip(by_name.values(), value, strict=True))
        return value

    return convert


def _as_it_is(value: Any) -> Any:
    return value
