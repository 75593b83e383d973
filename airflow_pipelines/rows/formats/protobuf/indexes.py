"""The message indexes, which name the type of a message within its file; they are between the schema's number and the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from airflow_pipelines.rows.formats.parsed import RecordProblem

_FIRST: Final = (0,)
"""The indexes of the first type of a file, which are written as a single zero."""
_MOST: Final = 32
"""The maximum depth of nested types."""


def encode_indexes(indexes: Sequence[int]) -> bytes:
    """Encode message indexes.

    :param indexes: the number of a type in its file, then in the type before it
    """
    if tuple(indexes) == _FIRST:
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(indexes), *indexes))


def read(message: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Decode the indexes of a message, and find the start of its record.

    :param message: the message, with everything before its record
    :param start: the offset of the indexes
    :raises RecordProblem: when there are none
    """
    count, place = _number(message, start)
    if count == 0:
        return _FIRST, place
    if not 0 < count <= _MOST:
        raise RecordProblem(f"the message does not say which type of its schema it has: {count} numbers are too many")
    indexes = []
    for _ in range(count):
        index, place = _number(message, place)
        indexes.append(index)
    return tuple(indexes), place


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def _number(message: bytes, place: int) -> tuple[int, int]:
    """Decode a number in zigzag encoding, and find the offset after it."""
    number = 0
    for at, byte in enumerate(message[place : place + 10]):
        number |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place + at + 1
    raise RecordProblem("the message does not say which type of its schema it has: it ends, or the number is too long")
