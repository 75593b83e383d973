"""The conversion of values of both packages to one form that can be compared and written as JSON."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """Convert a value to one without the classes of its package.

    Numbers, texts and containers are distinguished by their types, as a program would.

    :return: a value that JSON writes and reads unchanged
    """
    name = type(value).__name__
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [plain(each) for each in value]}
    if isinstance(value, set | frozenset):
        return {name: sorted(map(plain, value), key=repr)}
    if isinstance(value, Mapping):
        return {"map": sorted(([plain(key), plain(each)] for key, each in value.items()), key=repr)}
    if isinstance(value, bytes | bytearray | Decimal | dt.date | dt.time | dt.datetime):
        return {name: repr(value)}
    return {name: _fields(name, value)}


def _fields(name: str, value: Any) -> Any:
    if name == "Row":
        names = value.get_field_names() if hasattr(value, "get_field_names") else getattr(value, "_fields", ())
        return {"kind": str(value.get_row_kind()), "names": list(names or ()), "values": [plain(each) for each in value]}
    if name == "TimeWindow":
        return [value.start, value.end]
    if name == "CountWindow":
        return value.id
    if name == "GlobalWindow":
        return None
    if name == "Instant":
        return [value.seconds, value.nanos]
    return repr(value)


def shown(value: Any) -> str:
    """Return a plain value as text for people, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        ((name, content),) = value.items() if len(value) == 1 else ((None, value),)
        if name == "tuple":
            return f"({', '.join(map(shown, content))})"
        if name == "float":
            return str(content)
        if name == "Row":
            names = content["names"] or [None] * len(content["values"])
            fields = (
                shown(each) if field is None else f"{field}={shown(each)}"
                for field, each in zip(names, content["values"], strict=True)
            )
            return f"{content['kind']}Row({', '.join(fields)})"
        return repr(value) if name is None else f"{name} {content}"
    return repr(value)
