"""The binary form of VARIANT values in Spark and Parquet: encoding and decoding.

A value is a pair of byte strings: ``metadata``, a dictionary of object keys, and ``value``, a tree of tagged values that refers to
keys by their number in the dictionary. All numbers are little-endian. The writer produces the same bytes as Spark's own builder:
the keys of an object are in the order in which Java compares strings, and the dictionary has them in the order of the tree.

Source: the Parquet project's "Variant Binary Encoding".
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Mapping
from decimal import Context, Decimal

PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)
NULL, TRUE, FALSE, INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16 = range(11)
DATE, TIMESTAMP, TIMESTAMP_NTZ, FLOAT, BINARY, STRING, TIME = range(11, 18)
UUID = 20
INTEGERS = {INT8: 1, INT16: 2, INT32: 4, INT64: 8}
"""The integer types with their sizes in bytes, the smallest first."""
DECIMALS = {DECIMAL4: (4, 9), DECIMAL8: (8, 18), DECIMAL16: (16, 38)}
"""The decimal types with the sizes of their numbers in bytes and their digits, the smallest first."""
DIGITS = Context(prec=60)
"""The context for exact arithmetic with the decimals of a VARIANT."""

_FIXED = {NULL: 0, TRUE: 0, FALSE: 0, DOUBLE: 8, DATE: 4, TIMESTAMP: 8, TIMESTAMP_NTZ: 8, FLOAT: 4, TIME: 8, 18: 8, 19: 8, UUID: 16}
_MOST_SHORT = 63
_FLOATS = {DOUBLE: "<d", FLOAT: "<f"}

Tree = bytes | list["Tree"] | dict[str, "Tree"]
"""A parsed value: the bytes of a scalar, the elements of an array, or the members of an object."""


def encode_variant(tree: Tree) -> dict[str, bytes]:
    """Write a tree as the struct in which Arrow represents a VARIANT.

    :raises UnicodeEncodeError: when a key is not valid Unicode
    """
    numbers: dict[str, int] = {}
    value = _encode(tree, numbers)
    return {"value": value, "metadata": _metadata([name.encode() for name in numbers])}


def decode_variant(variant: Mapping[str, bytes]) -> Tree:
    """Parse a value."""
    return _decode(variant["value"], 0, decode_keys(variant["metadata"]))


def to_canonical_form(variant: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the canonical form of a value: the same for all values that no SQL function can distinguish.

    Integers are as short as possible, decimals have no trailing zeros, a zero has no sign, and there is one NaN.
    """
    return encode_variant(_tree_in_canonical_form(decode_variant(variant)))


def encode_null() -> bytes:
    """Encode the JSON null."""
    return _tag(NULL)


def encode_boolean(value: bool) -> bytes:
    """Encode a boolean."""
    return _tag(TRUE if value else FALSE)


def encode_text(text: bytes) -> bytes:
    """Encode a text, in UTF-8."""
    if len(text) <= _MOST_SHORT:
        return bytes([len(text) << 2 | SHORT_STRING]) + text
    return _tag(STRING) + encode_unsigned(len(text), 4) + text


def encode_integer(value: int) -> bytes | None:
    """Encode an integer, or return None if it has more than 64 bits."""
    for kind, size in INTEGERS.items():
        if -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
            return _tag(kind) + value.to_bytes(size, "little", signed=True)
    return None


def encode_decimal(value: Decimal) -> bytes | None:
    """Encode a decimal without trailing zeros, or return None if it has more than 38 digits on a side of the point, or in all."""
    if not -38 <= value.adjusted() < 38:
        return None
    sign, digits, exponent = DIGITS.normalize(value).as_tuple()
    scale = max(-int(exponent), 0)
    number: int = int("".join(map(str, digits))) * 10 ** max(int(exponent), 0)
    for kind, (size, precision) in DECIMALS.items():
        if number < 10**precision and scale <= precision:
            signed: int = -number if sign else number
            return _tag(kind) + bytes([scale]) + signed.to_bytes(size, "little", signed=True)
    return None


def encode_float(value: float, kind: int = DOUBLE) -> bytes:
    """Encode a floating-point number.

    :param kind: ``DOUBLE`` or ``FLOAT``
    """
    return _tag(kind) + struct.pack(_FLOATS[kind], math.nan if math.isnan(value) else value + 0.0)


def encode_unsigned(value: int, size: int) -> bytes:
    """Encode an unsigned number in ``size`` bytes."""
    return value.to_bytes(size, "little")


def decode_unsigned(data: bytes, at: int, size: int) -> int:
    """Decode a little-endian unsigned number.

    :param data: the VARIANT's bytes
    :param at: the offset of the number
    :param size: the size of the number in bytes
    """
    return int.from_bytes(data[at : at + size], "little")


def decode_signed(data: bytes, at: int, size: int) -> int:
    """Decode a little-endian signed number.

    :param data: the VARIANT's bytes
    :param at: the offset of the number
    :param size: the size of the number in bytes
    """
    return int.from_bytes(data[at : at + size], "little", signed=True)


def decode_decimal(data: bytes, size: int) -> Decimal:
    """Decode a decimal: after the tag one byte with its scale, then its unscaled number.

    :param data: the VARIANT's bytes, from the tag on
    :param size: the size of the number in bytes
    """
    return Decimal(decode_signed(data, 2, size)).scaleb(-data[1], DIGITS)


def decode_float(data: bytes, kind: int) -> float:
    """Decode a floating-point number.

    :param data: the VARIANT's bytes, from the tag on
    :param kind: the type in the tag, which determines the size
    """
    return float(struct.unpack_from(_FLOATS[kind], data, 1)[0])


def decode_keys(metadata: bytes) -> list[str]:
    """Decode the dictionary of object keys."""
    size = (metadata[0] >> 6) + 1
    count = decode_unsigned(metadata, 1, size)
    ends = [decode_unsigned(metadata, 1 + size * (number + 1), size) for number in range(count + 1)]
    text = 1 + size * (count + 2)
    return [metadata[text + start : text + end].decode() for start, end in itertools.pairwise(ends)]


def _tag(kind: int) -> bytes:
    return bytes([kind << 2 | PRIMITIVE])


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _metadata(names: list[bytes]) -> bytes:
    text = b"".join(names)
    size = _width(max(len(text), len(names)))
    offsets = [0, *itertools.accumulate(map(len, names))]
    return b"".join(
        [bytes([1 | (size - 1) << 6]), encode_unsigned(len(names), size), *(encode_unsigned(one, size) for one in offsets), text]
    )


def _encode(tree: Tree, numbers: dict[str, int]) -> bytes:
    """Write a tree.

    :param numbers: the number of each key in the dictionary; new keys are added
    """
    match tree:
        case bytes():
            return tree
        case list():
            return _array([_encode(item, numbers) for item in tree])
        case dict():
            ids, items = [], []
            for name in sorted(tree, key=lambda name: name.encode("utf-16-be")):
                ids.append(numbers.setdefault(name, len(numbers)))
                items.append(_encode(tree[name], numbers))
            return _object(ids, items)


def _offsets(items: list[bytes]) -> tuple[bytes, int]:
    offsets = [0, *itertools.accumulate(map(len, items))]
    size = _width(offsets[-1])
    return b"".join(encode_unsigned(one, size) for one in offsets), size


def _array(items: list[bytes]) -> bytes:
    offsets, size = _offsets(items)
    large = len(items) > 255
    header = bytes([(int(large) << 2 | size - 1) << 2 | ARRAY])
    return b"".join([header, encode_unsigned(len(items), 4 if large else 1), offsets, *items])


def _object(ids: list[int], items: list[bytes]) -> bytes:
    offsets, size = _offsets(items)
    id_size = _width(max(ids, default=0))
    large = len(items) > 255
    header = bytes([(int(large) << 4 | id_size - 1 << 2 | size - 1) << 2 | OBJECT])
    numbers = b"".join(encode_unsigned(one, id_size) for one in ids)
    return b"".join([header, encode_unsigned(len(items), 4 if large else 1), numbers, offsets, *items])


def _decode(data: bytes, at: int, keys: list[str]) -> Tree:
    basic, info = data[at] & 3, data[at] >> 2
    if basic == SHORT_STRING:
        return data[at : at + 1 + info]
    if basic == PRIMITIVE:
        return data[at : at + 1 + _size(info, data, at + 1)]
    is_object = basic == OBJECT
    size = (info & 3) + 1
    id_size = (info >> 2 & 3) + 1 if is_object else 0
    count_size = 4 if info & (16 if is_object else 4) else 1
    count = decode_unsigned(data, at + 1, count_size)
    ids = at + 1 + count_size
    offsets = ids + id_size * count
    values = offsets + size * (count + 1)
    items = [_decode(data, values + decode_unsigned(data, offsets + size * number, size), keys) for number in range(count)]
    if not is_object:
        return items
    names = [keys[decode_unsigned(data, ids + id_size * number, id_size)] for number in range(count)]
    return dict(zip(names, items, strict=True))


def _size(kind: int, data: bytes, at: int) -> int:
    """Return the number of bytes of a value after its tag."""
    if kind in INTEGERS:
        return INTEGERS[kind]
    if kind in DECIMALS:
        return 1 + DECIMALS[kind][0]
    if kind in (STRING, BINARY):
        return 4 + decode_unsigned(data, at, 4)
    if kind in _FIXED:
        return _FIXED[kind]
    raise ValueError(f"variant type {kind} is not known")


def _tree_in_canonical_form(tree: Tree) -> Tree:
    match tree:
        case list():
            return [_tree_in_canonical_form(item) for item in tree]
        case dict():
            return {name: _tree_in_canonical_form(item) for name, item in tree.items()}
        case bytes():
            return _value_in_canonical_form(tree)


def _value_in_canonical_form(value: bytes) -> bytes:
    basic, kind = value[0] & 3, value[0] >> 2
    if basic == SHORT_STRING:
        return value
    if kind == STRING:
        return encode_text(value[5:])
    if kind in INTEGERS:
        return encode_integer(decode_signed(value, 1, INTEGERS[kind])) or value
    if kind in DECIMALS:
        return encode_decimal(decode_decimal(value, DECIMALS[kind][0])) or value
    if kind in _FLOATS:
        return encode_float(decode_float(value, kind), kind)
    return value
