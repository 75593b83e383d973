"""Which type of its file a message has: numbers between the number of the schema and the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from airflow_pipelines.rows.formats.parsed import RecordProblem

_FIRST: Final = (0,)
"""The first type of a file, which is written as a single zero."""
_MOST: Final = 32
"""So deep types are nested at most, and so many bytes one number has at most."""


def written(indexes: Sequence[int]) -> bytes:
    """Encode the way to a type as messages have it.

    :param indexes: the number of a type in its file, then in the type before it
    """
    if tuple(indexes) == _FIRST:
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(indexes), *indexes))


def read(message: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Decode the way to the type of a message, and find where its record begins.

    :param message: with all that stands before its record
    :param start: where the numbers begin
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
    """Decode a number, whose last bit is its sign, and find the place after it."""
    number = 0
    for at, byte in enumerate(message[place : place + 10]):
        number |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place + at + 1
    raise RecordProblem("the message does not say which type of its schema it has: it ends, or the number is too long")
