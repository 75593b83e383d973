"""Lossless JSON text: numbers with a fraction are Decimals, NaN and infinities are rejected."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NoReturn


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


MALFORMED = (ValueError, RecursionError, ArithmeticError)
"""The errors that decoding raises for text that is not JSON, is nested too deeply, or has a number beyond any exponent."""
DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)
"""The decoder of one value; use ``raw_decode`` for a sequence of them."""

_quote = json.JSONEncoder(ensure_ascii=False).encode


def loads(text: str) -> Any:
    """Parse ``text`` as one JSON value.

    :raises ValueError: when it is not JSON; it raises the other classes of :data:`MALFORMED` too
    """
    return DECODER.decode(text)


def dumps_for_message(value: Any) -> str:
    """Write like :func:`dumps` for a message about ``value``, which may be nested more deeply than can be written."""
    try:
        return dumps(value)
    except RecursionError:
        return "a value that is nested too deeply to be shown"


def dumps(value: Any) -> str:
    """Write a value as :func:`loads` returns it as compact JSON text; Decimals keep their scale."""
    if isinstance(value, str):
        return _quote(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, Decimal)):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(name)}:{dumps(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dumps(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} has no JSON form here")
