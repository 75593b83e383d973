"""Deletion vectors, which mark rows of a data file as deleted, in the format of Delta's protocol."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

import numpy as np

_MAGIC: Final = 1681511377
_SERIAL_NO_RUNS: Final = 12346
_SERIAL_WITH_RUNS: Final = 12347
_ARRAY_LIMIT: Final = 4096
_OFFSETS_FROM: Final = 4
_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85: Final = str.maketrans(_Z85, _B85)
_ID_CHARACTERS: Final = 20


class BrokenVectorError(ValueError):
    """The error for data that is no deletion vector, or one of an unknown kind."""


def deleted_rows(descriptor: Mapping[str, Any], read: Callable[[str], bytes]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the numbers of the rows that are deleted, in order.

    :param descriptor: the descriptor of the vector in the log
    :param read: a function that returns the bytes of a file of the table by its path
    :raises BrokenVectorError: when it cannot be understood
    """
    kind, place = descriptor["storageType"], descriptor["pathOrInlineDv"]
    if kind == "i":
        return _rows(_decode_z85(place))
    if kind == "u":
        identifier = UUID(bytes=_decode_z85(place[-_ID_CHARACTERS:]))
        prefix = place[:-_ID_CHARACTERS]
        path = f"{prefix}/deletion_vector_{identifier}.bin" if prefix else f"deletion_vector_{identifier}.bin"
    elif kind == "p":
        raise BrokenVectorError(f"the deletion vector {place} is outside of the table's folder, which is not supported")
    else:
        raise BrokenVectorError(f"deletion vectors of storage type {kind!r} are not known")
    content = read(path)
    begin = int(descriptor.get("offset") or 1)
    (size,) = struct.unpack_from(">i", content, begin)
    data = content[begin + 4 : begin + 4 + size]
    (checksum,) = struct.unpack_from(">I", content, begin + 4 + size)
    if size != descriptor["sizeInBytes"] or zlib.crc32(data) != checksum:
        raise BrokenVectorError(f"the deletion vector {path} at byte {begin} is damaged: its checksum is another one")
    return _rows(data)


def _decode_z85(text: str) -> bytes:
    # Python's alphabet has other characters for the same numbers.
    return base64.b85decode(text.translate(_TO_B85))


def _rows(data: bytes) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the numbers in a map of bitmaps, whose keys are the upper 32 bits."""
    magic, count = struct.unpack_from("<iq", data, 0)
    if magic != _MAGIC:
        raise BrokenVectorError(f"deletion vectors of the form {magic} are not known")
    at = 12
    parts = []
    for _ in range(count):
        (upper,) = struct.unpack_from("<i", data, at)
        lower, at = _read_bitmap(data, at + 4)
        parts.append(lower.astype(np.uint64) + np.uint64(upper << 32))
    return np.concatenate(parts) if parts else np.array([], np.uint64)


def _read_bitmap(data: bytes, begin: int) -> tuple[np.ndarray[Any, Any], int]:
    """Return the numbers in a 32 bit Roaring bitmap in its portable form, and the offset of its end."""
    (cookie,) = struct.unpack_from("<I", data, begin)
    at = begin + 4
    has_run = np.zeros(0, bool)
    if cookie & 0xFFFF == _SERIAL_WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(data, np.uint8, (count + 7) // 8, at)
        has_run = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
        at += len(flags)
    elif cookie == _SERIAL_NO_RUNS:
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
    else:
        raise BrokenVectorError(f"bitmaps of the form {cookie} are not known")
    heads = np.frombuffer(data, "<u2", 2 * count, at).reshape(count, 2)
    at += 4 * count
    if not len(has_run) or count >= _OFFSETS_FROM:
        at += 4 * count
    parts = []
    for (key, less_one), runs in zip(heads, has_run if len(has_run) else [False] * count, strict=True):
        values, at = _read_container(data, at, int(less_one) + 1, runs=bool(runs))
        parts.append(values.astype(np.uint32) + np.uint32(int(key) << 16))
    return (np.concatenate(parts) if parts else np.array([], np.uint32)), at


def _read_container(data: bytes, at: int, cardinality: int, *, runs: bool) -> tuple[np.ndarray[Any, Any], int]:
    """Return the lower 16 bits of the numbers of a container, and the offset of its end."""
    if runs:
        (count,) = struct.unpack_from("<H", data, at)
        pairs = np.frombuffer(data, "<u2", 2 * count, at + 2).reshape(count, 2).astype(np.uint32)
        return np.concatenate(list(_ranges(pairs))), at + 2 + 4 * count
    if cardinality <= _ARRAY_LIMIT:
        return np.frombuffer(data, "<u2", cardinality, at), at + 2 * cardinality
    bits = np.unpackbits(np.frombuffer(data, np.uint8, 8192, at), bitorder="little")
    return np.flatnonzero(bits), at + 8192


def _ranges(pairs: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    for start, more in pairs:
        yield np.arange(start, start + more + 1, dtype=np.uint32)
