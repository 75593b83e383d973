"""Reads and writes VARIANT values in the binary form of Spark and Parquet.

A value is a pair of byte strings: ``metadata``, a dictionary of object keys, and ``value``, a tree of tagged values that refers to
keys by their number in the dictionary. All numbers are little-endian. The writer gives the same bytes as Spark's own builder: the
keys of an object are in the order in which Java compares strings, and the dictionary has them in the order of the tree.

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
"""Integer types with their sizes in bytes, the smallest first."""
DECIMALS = {DECIMAL4: (4, 9), DECIMAL8: (8, 18), DECIMAL16: (16, 38)}
"""Decimal types with the sizes of their numbers in bytes and their digits, the smallest first."""
DIGITS = Context(prec=60)
"""For exact arithmetic with the decimals of a VARIANT."""

_FIXED = {NULL: 0, TRUE: 0, FALSE: 0, DOUBLE: 8, DATE: 4, TIMESTAMP: 8, TIMESTAMP_NTZ: 8, FLOAT: 4, TIME: 8, 18: 8, 19: 8, UUID: 16}
_MOST_SHORT = 63
_FLOATS = {DOUBLE: "<d", FLOAT: "<f"}

Tree = bytes | list["Tree"] | dict[str, "Tree"]
"""A parsed value: the bytes of a scalar, the elements of an array, or the members of an object."""


def assembled(tree: Tree) -> dict[str, bytes]:
    """Write a tree as the struct in which Arrow represents a VARIANT.

    :raises UnicodeEncodeError: when a key is not valid Unicode
    """
    numbers: dict[str, int] = {}
    value = _assembled(tree, numbers)
    return {"value": value, "metadata": _metadata([name.encode() for name in numbers])}


def taken_apart(variant: Mapping[str, bytes]) -> Tree:
    """Parse a value."""
    return _taken_apart(variant["value"], 0, keys_of(variant["metadata"]))


def canonical(variant: Mapping[str, bytes]) -> dict[str, bytes]:
    """The canonical form of a value: the same for all values that no function of SQL can tell apart.

    Integers are as short as can be, decimals have no zeros at their end, a zero no sign; there is one NaN.
    """
    return assembled(_canonical(taken_apart(variant)))


def null() -> bytes:
    """The JSON null."""
    return _tag(NULL)


def boolean(value: bool) -> bytes:
    """A boolean."""
    return _tag(TRUE if value else FALSE)


def string(text: bytes) -> bytes:
    """A text in UTF-8."""
    if len(text) <= _MOST_SHORT:
        return bytes([len(text) << 2 | SHORT_STRING]) + text
    return _tag(STRING) + unsigned(len(text), 4) + text


def integer(value: int) -> bytes | None:
    """An integer; None when it has more than 64 bits."""
    for kind, size in INTEGERS.items():
        if -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
            return _tag(kind) + value.to_bytes(size, "little", signed=True)
    return None


def decimal(value: Decimal) -> bytes | None:
    """A decimal without zeros at its end; None when it has more than 38 digits before or behind the point, or both together."""
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


def double(value: float, kind: int = DOUBLE) -> bytes:
    """A floating-point number.

    :param kind: ``DOUBLE`` or ``FLOAT``
    """
    return _tag(kind) + struct.pack(_FLOATS[kind], math.nan if math.isnan(value) else value + 0.0)


def unsigned(value: int, size: int) -> bytes:
    """An unsigned number of ``size`` bytes."""
    return value.to_bytes(size, "little")


def read_unsigned(data: bytes, at: int, size: int) -> int:
    """A little-endian unsigned number.

    :param data: the VARIANT's bytes
    :param at: where the number begins
    :param size: how many bytes it has
    """
    return int.from_bytes(data[at : at + size], "little")


def read_signed(data: bytes, at: int, size: int) -> int:
    """A little-endian signed number.

    :param data: the VARIANT's bytes
    :param at: where the number begins
    :param size: how many bytes it has
    """
    return int.from_bytes(data[at : at + size], "little", signed=True)


def read_decimal(data: bytes, size: int) -> Decimal:
    """A decimal: after the tag one byte with its scale, then its unscaled number.

    :param data: the VARIANT's bytes, from the tag on
    :param size: how many bytes the number has
    """
    return Decimal(read_signed(data, 2, size)).scaleb(-data[1], DIGITS)


def read_float(data: bytes, kind: int) -> float:
    """A floating-point number.

    :param data: the VARIANT's bytes, from the tag on
    :param kind: the type in the tag, which says how long it is
    """
    return float(struct.unpack_from(_FLOATS[kind], data, 1)[0])


def keys_of(metadata: bytes) -> list[str]:
    """The dictionary of object keys."""
    size = (metadata[0] >> 6) + 1
    count = read_unsigned(metadata, 1, size)
    ends = [read_unsigned(metadata, 1 + size * (number + 1), size) for number in range(count + 1)]
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
    return b"".join([bytes([1 | (size - 1) << 6]), unsigned(len(names), size), *(unsigned(one, size) for one in offsets), text])


def _assembled(tree: Tree, numbers: dict[str, int]) -> bytes:
    """Write a tree.

    :param numbers: the number of each key in the dictionary; new keys are added
    """
    match tree:
        case bytes():
            return tree
        case list():
            return _array([_assembled(item, numbers) for item in tree])
        case dict():
            ids, items = [], []
            for name in sorted(tree, key=lambda name: name.encode("utf-16-be")):
                ids.append(numbers.setdefault(name, len(numbers)))
                items.append(_assembled(tree[name], numbers))
            return _object(ids, items)


def _offsets(items: list[bytes]) -> tuple[bytes, int]:
    offsets = [0, *itertools.accumulate(map(len, items))]
    size = _width(offsets[-1])
    return b"".join(unsigned(one, size) for one in offsets), size


def _array(items: list[bytes]) -> bytes:
    offsets, size = _offsets(items)
    large = len(items) > 255
    header = bytes([(int(large) << 2 | size - 1) << 2 | ARRAY])
    return b"".join([header, unsigned(len(items), 4 if large else 1), offsets, *items])


def _object(ids: list[int], items: list[bytes]) -> bytes:
    offsets, size = _offsets(items)
    id_size = _width(max(ids, default=0))
    large = len(items) > 255
    header = bytes([(int(large) << 4 | id_size - 1 << 2 | size - 1) << 2 | OBJECT])
    numbers = b"".join(unsigned(one, id_size) for one in ids)
    return b"".join([header, unsigned(len(items), 4 if large else 1), numbers, offsets, *items])


def _taken_apart(data: bytes, at: int, keys: list[str]) -> Tree:
    basic, info = data[at] & 3, data[at] >> 2
    if basic == SHORT_STRING:
        return data[at : at + 1 + info]
    if basic == PRIMITIVE:
        return data[at : at + 1 + _size(info, data, at + 1)]
    is_object = basic == OBJECT
    size = (info & 3) + 1
    id_size = (info >> 2 & 3) + 1 if is_object else 0
    count_size = 4 if info & (16 if is_object else 4) else 1
    count = read_unsigned(data, at + 1, count_size)
    ids = at + 1 + count_size
    offsets = ids + id_size * count
    values = offsets + size * (count + 1)
    items = [_taken_apart(data, values + read_unsigned(data, offsets + size * number, size), keys) for number in range(count)]
    if not is_object:
        return items
    names = [keys[read_unsigned(data, ids + id_size * number, id_size)] for number in range(count)]
    return dict(zip(names, items, strict=True))


def _size(kind: int, data: bytes, at: int) -> int:
    """The number of bytes of a value after its tag."""
    if kind in INTEGERS:
        return INTEGERS[kind]
    if kind in DECIMALS:
        return 1 + DECIMALS[kind][0]
    if kind in (STRING, BINARY):
        return 4 + read_unsigned(data, at, 4)
    if kind in _FIXED:
        return _FIXED[kind]
    raise ValueError(f"variant type {kind} is not known")


def _canonical(tree: Tree) -> Tree:
    match tree:
        case list():
            return [_canonical(item) for item in tree]
        case dict():
            return {name: _canonical(item) for name, item in tree.items()}
        case bytes():
            return _canonical_value(tree)


def _canonical_value(value: bytes) -> bytes:
    basic, kind = value[0] & 3, value[0] >> 2
    if basic == SHORT_STRING:
        return value
    if kind == STRING:
        return string(value[5:])
    if kind in INTEGERS:
        return integer(read_signed(value, 1, INTEGERS[kind])) or value
    if kind in DECIMALS:
        return decimal(read_decimal(value, DECIMALS[kind][0])) or value
    if kind in _FLOATS:
        return double(read_float(value, kind), kind)
    return value
