"""VARIANT values in the binary form that Spark and Parquet share, from and to JSON.

A value is a pair of byte strings: ``metadata``, a dictionary of object keys, and ``value``, a tree of tagged values that refers to
keys by their number in the dictionary. All numbers are little-endian.
"""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import math
import struct
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

from airflow_pipelines.connectors.formats import jsontext
from airflow_pipelines.connectors.formats.parsed import RecordProblem, excerpt

_PRIMITIVE, _SHORT_STRING, _OBJECT, _ARRAY = range(4)
_NULL, _TRUE, _FALSE, _INT8, _INT16, _INT32, _INT64, _DOUBLE, _DECIMAL4, _DECIMAL8, _DECIMAL16 = range(11)
_DATE, _TIMESTAMP, _TIMESTAMP_NTZ, _FLOAT, _BINARY, _STRING, _TIME = range(11, 18)
_UUID = 20
_INTEGERS = ((_INT8, 1), (_INT16, 2), (_INT32, 4), (_INT64, 8))
_DECIMALS = ((_DECIMAL4, 4, 9), (_DECIMAL8, 8, 18), (_DECIMAL16, 16, 38))
_SIZES = {**dict(_INTEGERS), **{tag: size for tag, size, _ in _DECIMALS}}
_DIGITS = Context(prec=60)
_EPOCH = dt.datetime(1970, 1, 1)


def encode(value: Any) -> dict[str, bytes]:
    """The variant for a parsed JSON value, as the struct in which Arrow carries it.

    :raises RecordProblem: when a number or text has no variant form
    """
    keys: set[bytes] = set()
    try:
        _collect_keys(value, keys)
        names = sorted(keys)
        return {"value": _encode(value, {name: number for number, name in enumerate(names)}), "metadata": _metadata(names)}
    except UnicodeEncodeError as error:
        raise RecordProblem(f"{excerpt(jsontext.dumps(value), 60)} holds text that is not valid UTF-8") from error


def to_json(variant: Mapping[str, bytes]) -> str:
    """The JSON text of a variant; what JSON lacks (dates, timestamps, binary) becomes a string."""
    return _to_json(variant["value"], 0, _keys(variant["metadata"]))


def _collect_keys(value: Any, keys: set[bytes]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            keys.add(name.encode())
            _collect_keys(item, keys)
    elif isinstance(value, list):
        for item in value:
            _collect_keys(item, keys)


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little")


def _metadata(names: list[bytes]) -> bytes:
    text = b"".join(names)
    size = _width(max(len(text), len(names)))
    parts = [bytes([1 | (size - 1) << 6]), _number(len(names), size)]
    offset = 0
    for name in names:
        parts.append(_number(offset, size))
        offset += len(name)
    return b"".join([*parts, _number(offset, size), text])


def _tag(kind: int) -> bytes:
    return bytes([kind << 2 | _PRIMITIVE])


def _encode(value: Any, numbers: Mapping[bytes, int]) -> bytes:
    if value is None:
        return _tag(_NULL)
    if isinstance(value, bool):
        return _tag(_TRUE if value else _FALSE)
    if isinstance(value, str):
        return _encode_string(value.encode())
    if isinstance(value, (int, Decimal)):
        return _encode_number(value)
    if isinstance(value, list):
        return _encode_array([_encode(item, numbers) for item in value])
    items = sorted((name.encode(), _encode(item, numbers)) for name, item in value.items())
    return _encode_object([numbers[name] for name, _ in items], [item for _, item in items])


def _encode_string(text: bytes) -> bytes:
    if len(text) < 64:
        return bytes([len(text) << 2 | _SHORT_STRING]) + text
    return _tag(_STRING) + _number(len(text), 4) + text


def _encode_number(value: int | Decimal) -> bytes:
    if isinstance(value, int):
        for kind, size in _INTEGERS:
            if -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
                return _tag(kind) + value.to_bytes(size, "little", signed=True)
        value = Decimal(value)
    if -38 <= value.adjusted() < 38:
        sign, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        unscaled: int = int("".join(map(str, digits))) * 10 ** max(-scale, 0)
        for kind, size, precision in _DECIMALS:
            if unscaled < 10**precision and scale <= precision:
                signed: int = -unscaled if sign else unscaled
                return _tag(kind) + bytes([max(scale, 0)]) + signed.to_bytes(size, "little", signed=True)
    number = float(value)
    if math.isinf(number):
        raise RecordProblem(f"{excerpt(str(value), 60)} is out of range for VARIANT")
    return _tag(_DOUBLE) + struct.pack("<d", number)


def _offsets(items: list[bytes]) -> tuple[bytes, int]:
    total = sum(len(item) for item in items)
    size = _width(total)
    parts = []
    offset = 0
    for item in items:
        parts.append(_number(offset, size))
        offset += len(item)
    return b"".join([*parts, _number(offset, size)]), size


def _encode_array(items: list[bytes]) -> bytes:
    offsets, size = _offsets(items)
    large = len(items) > 255
    header = bytes([(int(large) << 2 | size - 1) << 2 | _ARRAY])
    return b"".join([header, _number(len(items), 4 if large else 1), offsets, *items])


def _encode_object(ids: list[int], items: list[bytes]) -> bytes:
    offsets, size = _offsets(items)
    id_size = _width(max(ids, default=0))
    large = len(items) > 255
    header = bytes([(int(large) << 4 | id_size - 1 << 2 | size - 1) << 2 | _OBJECT])
    numbers = b"".join(_number(one, id_size) for one in ids)
    return b"".join([header, _number(len(items), 4 if large else 1), numbers, offsets, *items])


def _read(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _read_signed(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little", signed=True)


def _keys(metadata: bytes) -> list[str]:
    size = (metadata[0] >> 6) + 1
    count = _read(metadata, 1, size)
    ends = [_read(metadata, 1 + size * (number + 1), size) for number in range(count + 1)]
    text = 1 + size * (count + 2)
    return [metadata[text + start : text + end].decode() for start, end in itertools.pairwise(ends)]


def _to_json(data: bytes, at: int, keys: list[str]) -> str:
    basic, info = data[at] & 3, data[at] >> 2
    if basic == _PRIMITIVE:
        return _primitive(info, data, at + 1)
    if basic == _SHORT_STRING:
        return jsontext.dumps(data[at + 1 : at + 1 + info].decode())
    is_object = basic == _OBJECT
    size = (info & 3) + 1
    id_size = (info >> 2 & 3) + 1 if is_object else 0
    count_size = 4 if info & (16 if is_object else 4) else 1
    count = _read(data, at + 1, count_size)
    ids = at + 1 + count_size
    offsets = ids + id_size * count
    values = offsets + size * (count + 1)
    items = [_to_json(data, values + _read(data, offsets + size * number, size), keys) for number in range(count)]
    if not is_object:
        return "[" + ",".join(items) + "]"
    names = [jsontext.dumps(keys[_read(data, ids + id_size * number, id_size)]) for number in range(count)]
    return "{" + ",".join(f"{name}:{item}" for name, item in zip(names, items, strict=True)) + "}"


def _primitive(kind: int, data: bytes, at: int) -> str:
    if kind in (_NULL, _TRUE, _FALSE):
        return ("null", "true", "false")[kind]
    if kind in (_DECIMAL4, _DECIMAL8, _DECIMAL16):
        return format(Decimal(_read_signed(data, at + 1, _SIZES[kind])).scaleb(-data[at], _DIGITS), "f")
    if kind in _SIZES:
        return str(_read_signed(data, at, _SIZES[kind]))
    if kind in (_DOUBLE, _FLOAT):
        number = struct.unpack_from("<d" if kind == _DOUBLE else "<f", data, at)[0]
        return repr(number) if math.isfinite(number) else "null"
    if kind in (_STRING, _BINARY):
        content = data[at + 4 : at + 4 + _read(data, at, 4)]
        return jsontext.dumps(content.decode() if kind == _STRING else base64.b64encode(content).decode())
    if kind == _DATE:
        return jsontext.dumps((_EPOCH + dt.timedelta(days=_read_signed(data, at, 4))).date().isoformat())
    if kind in (_TIMESTAMP, _TIMESTAMP_NTZ, _TIME):
        moment = _EPOCH + dt.timedelta(microseconds=_read_signed(data, at, 8))
        if kind == _TIME:
            return jsontext.dumps(moment.time().isoformat())
        return jsontext.dumps(moment.isoformat(" ") + ("+00:00" if kind == _TIMESTAMP else ""))
    if kind == _UUID:
        return jsontext.dumps(str(UUID(bytes=data[at : at + 16])))
    raise ValueError(f"variant type {kind} is not known")
