"""The conversion of VARIANT values from and to JSON."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from airflow_pipelines.rows import variant_binary as binary
from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt

MAX_DEPTH = 200
"""The maximum number of arrays and objects around a value: any thread has to read, compare and send a stored value again."""
_EPOCH = dt.datetime(1970, 1, 1)


def encode(value: Any) -> dict[str, bytes]:
    """Encode a parsed JSON value as a variant, in the struct in which Arrow represents it.

    :raises RecordProblem: when a number or text has no variant form, or the value is nested too deeply
    """
    try:
        return binary.encode_variant(_tree(value, MAX_DEPTH))
    except UnicodeEncodeError as error:
        raise RecordProblem(f"{excerpt(jsontext.dumps_for_message(value), 60)} holds text that is not valid UTF-8") from error


def to_json(variant: Mapping[str, bytes]) -> str:
    """Write a variant as JSON text; values that JSON lacks (dates, timestamps, binary) become strings."""
    return _to_json(binary.decode_variant(variant))


def _tree(value: Any, depth: int) -> binary.Tree:
    if value is None:
        return binary.encode_null()
    if isinstance(value, bool):
        return binary.encode_boolean(value)
    if isinstance(value, str):
        return binary.encode_text(value.encode())
    if isinstance(value, (int, Decimal)):
        return _number(value)
    if depth == 0:
        raise RecordProblem(f"the value is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list):
        return [_tree(item, depth - 1) for item in value]
    return {name: _tree(item, depth - 1) for name, item in value.items()}


def _number(value: int | Decimal) -> bytes:
    encoded = binary.encode_integer(value) if isinstance(value, int) else None
    encoded = encoded or binary.encode_decimal(Decimal(value))
    if encoded is not None:
        return encoded
    number = float(value)
    if math.isinf(number):
        raise RecordProblem(f"{excerpt(str(value), 60)} is out of range for VARIANT")
    return binary.encode_float(number)


def _to_json(tree: binary.Tree) -> str:
    if isinstance(tree, list):
        return "[" + ",".join(map(_to_json, tree)) + "]"
    if isinstance(tree, dict):
        return "{" + ",".join(f"{jsontext.dumps(name)}:{_to_json(item)}" for name, item in tree.items()) + "}"
    basic, info = tree[0] & 3, tree[0] >> 2
    return jsontext.dumps(tree[1:].decode()) if basic == binary.SHORT_STRING else _primitive(info, tree)


def _primitive(kind: int, data: bytes) -> str:
    if kind in (binary.NULL, binary.TRUE, binary.FALSE):
        return ("null", "true", "false")[kind]
    if kind in binary.DECIMALS:
        return format(binary.decode_decimal(data, binary.DECIMALS[kind][0]), "f")
    if kind in binary.INTEGERS:
        return str(binary.decode_signed(data, 1, binary.INTEGERS[kind]))
    if kind in (binary.DOUBLE, binary.FLOAT):
        number = binary.decode_float(data, kind)
        return repr(number) if math.isfinite(number) else "null"
    if kind in (binary.STRING, binary.BINARY):
        content = data[5:]
        return jsontext.dumps(content.decode() if kind == binary.STRING else base64.b64encode(content).decode())
    if kind == binary.DATE:
        return jsontext.dumps((_EPOCH + dt.timedelta(days=binary.decode_signed(data, 1, 4))).date().isoformat())
    if kind in (binary.TIMESTAMP, binary.TIMESTAMP_NTZ, binary.TIME):
        moment = _EPOCH + dt.timedelta(microseconds=binary.decode_signed(data, 1, 8))
        if kind == binary.TIME:
            text = moment.time().isoformat()
            return jsontext.dumps(text.rstrip("0") if "." in text else text)
        return jsontext.dumps(moment.isoformat(" ") + ("+00:00" if kind == binary.TIMESTAMP else ""))
    if kind == binary.UUID:
        return jsontext.dumps(str(UUID(bytes=data[1:17])))
    raise ValueError(f"variant type {kind} is not known")
