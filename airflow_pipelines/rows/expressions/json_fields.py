"""Fields of JSON texts, as Spark's ``get_json_object`` reads them.

Spark's parser takes more than JSON, and writes some values anew. So a text that is not strictly JSON is left to it, and so is a
field that is a fraction, an array or an object.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

import pyarrow as pa

from airflow_pipelines.rows.expressions.operands import LeftToSpark, Operand, require_text

_PATH: Final = re.compile(r"\$((?:\.[A-Za-z_]\w*)+)", re.ASCII)
_LONGEST: Final = 1 << 20
"""The number of characters above which a text may meet a limit of Spark's parser."""
_MOST_BRACKETS: Final = 500
"""The number of opening brackets up to which a text nests less deep than Spark's parser takes, 1,000 levels."""
_MOST_DIGITS: Final = 500


class _Integer(str):
    """The digits of a whole number."""

    __slots__ = ()


class _Fraction(str):
    """The digits of any other number."""

    __slots__ = ()


def read_field(operand: Operand, path: str) -> Operand:
    """Return a field of JSON objects as text; NULL if there is none, or it is null.

    >>> read_field(pa.array(['{"a": {"b": "x"}}', '{"a": {"b": 7}}', '{"a": 7}', None]), "$.a.b").to_pylist()
    ['x', '7', None, None]

    :param operand: texts
    :param path: the path to the field, with names alone, such as ``$.a.b``
    :raises LeftToSpark: for any other path, and for a text or a field that Spark may read in another way
    """
    match = _PATH.fullmatch(path)
    if match is None:
        raise LeftToSpark(path)
    names = match[1][1:].split(".")
    texts = require_text(operand)
    if isinstance(texts, pa.Scalar):
        text = texts.as_py()
        return pa.scalar(None if text is None else _read(text, names), pa.string())
    encoded = texts.dictionary_encode()
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    fields = [
        pa.array([_read(text, names) for text in chunk.dictionary.to_pylist()], pa.string()).take(chunk.indices) for chunk in chunks
    ]
    return pa.chunked_array(fields, pa.string())


def _read(text: str, names: list[str]) -> str | None:
    if len(text) > _LONGEST:
        raise LeftToSpark("a long text")
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise LeftToSpark("a text that may nest too deep")
    try:
        value = _decoder.decode(text)
    except ValueError as error:
        raise LeftToSpark("a text that is not strictly JSON") from error
    for name in names:
        if isinstance(value, list):
            raise LeftToSpark("an array on the path")
        value = value.get(name) if isinstance(value, dict) else None
    return _write(value)


def _write(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, _Fraction | dict | list) or value == "-0" or not _is_plain(value):
        raise LeftToSpark("a value that Spark writes anew")
    return str(value)


def _is_plain(text: str) -> bool:
    """Return True if a text is valid, and the digits of a number are not too many for Spark's parser."""
    if isinstance(text, _Integer):
        return len(text) <= _MOST_DIGITS
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, of whose fields with the same name Spark takes the first one."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise LeftToSpark("two fields of one name")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise LeftToSpark(name)


_decoder = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicates, parse_float=_Fraction, parse_int=_Integer, parse_constant=_refuse_constant
)
