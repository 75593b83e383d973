"""Keys: their canonical bytes, and the key group and task to which they belong.

Keys are equal as in Python: 1, 1.0 and True are one key, and so are (1, 2) and a named tuple of the same values.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import numbers
import struct
from types import BuiltinFunctionType, FunctionType
from typing import Any
from zlib import crc32

from airflow_pipelines.streams.errors import NoKeyError, StreamProgramError


def canonical_bytes(key: Any) -> bytes:
    """Return bytes that are the same for equal keys, in every process and at any time.

    :param key: the key of a record
    :returns: bytes that identify it
    :raises NoKeyError: if it is None
    :raises StreamProgramError: if it has no stable form
    """
    if key is None:
        raise NoKeyError("The key of a record is None. Give it a key in key_by(), or leave the record out with filter() before.")
    return _encode(key)


def is_plain(key: Any) -> bool:
    """Return True if :func:`plain_key` can restore a key from its canonical bytes.

    :param key: the key
    :returns: True if its type is ``str`` or ``int``
    """
    return key.__class__ is str or key.__class__ is int


def plain_key(data: bytes) -> Any:
    """Restore a key from its canonical bytes.

    :param data: the canonical bytes of a key for which :func:`is_plain` holds
    :returns: the key
    """
    return data[1:].decode("utf-8", "surrogatepass") if data[:1] == b"s" else int(data[1:])


def key_group(data: bytes, max_parallelism: int) -> int:
    """Return the key group of a key, which stays the same for the life of its state.

    :param data: the canonical bytes of the key
    :param max_parallelism: the number of key groups
    :returns: the number of the group
    """
    return crc32(data) % max_parallelism


def group_to_task(group: int, parallelism: int, max_parallelism: int) -> int:
    """Return the task that works on a key group.

    :param group: the number of the group
    :param parallelism: the number of tasks
    :param max_parallelism: the number of key groups
    :returns: the number of the task
    """
    return group * parallelism // max_parallelism


def groups_of_task(index: int, parallelism: int, max_parallelism: int) -> range:
    """Return the key groups of a task.

    :param index: the number of the task
    :param parallelism: the number of tasks
    :param max_parallelism: the number of key groups
    :returns: the numbers of the groups
    """
    return range(-(-index * max_parallelism // parallelism), -(-(index + 1) * max_parallelism // parallelism))


def task_of(key: Any, parallelism: int, max_parallelism: int) -> int:
    """Return the task that works on a key.

    :param key: the key
    :param parallelism: the number of tasks
    :param max_parallelism: the number of key groups
    :returns: the number of the task
    """
    return group_to_task(key_group(canonical_bytes(key), max_parallelism), parallelism, max_parallelism)


def _encode(value: Any) -> bytes:
    kind = value.__class__
    if kind is str:
        text: bytes = value.encode("utf-8", "surrogatepass")
        return b"s" + text
    if kind is int:
        return b"i%d" % value
    if value is None:
        return b"n"
    if isinstance(value, tuple):
        return b"t" + _join_encoded(value)
    if isinstance(value, str):
        return b"s" + str.__str__(value).encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray):
        return b"b" + bytes(value)
    if isinstance(value, numbers.Number | decimal.Decimal):
        return _number(value)
    if isinstance(value, enum.Enum):
        return b"e" + _join_encoded((_name(kind), value.name))
    return _encode_container(value)


def _encode_container(value: Any) -> bytes:
    if isinstance(value, list):
        return b"l" + _join_encoded(value)
    if isinstance(value, dict):
        return b"d" + _join_sized(sorted(_join_sized((_encode(k), _encode(v))) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return b"S" + _join_sized(sorted(_encode(item) for item in value))
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return b"z" + value.astimezone(datetime.UTC).isoformat().encode()
    if isinstance(value, datetime.date | datetime.time):
        return b"T" + _join_encoded((type(value).__name__, value.isoformat()))
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return b"c" + _name(value).encode()
    return _encode_object(value)


def _encode_object(value: Any) -> bytes:
    kind: Any = type(value)
    if kind.__eq__ is object.__eq__ and kind.__reduce__ is object.__reduce__:
        raise StreamProgramError(
            f"A key of type {_name(type(value))} is equal only to itself, so no other record can have it."
            " Use a value that is compared by its contents: a string, a number, a tuple, a (frozen) dataclass."
        )
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError as error:
        raise StreamProgramError(f"A value of type {_name(type(value))} cannot be a key: {error}.") from error
    if isinstance(reduced, str):
        return b"c" + f"{_name(type(value))}.{reduced}".encode()
    parts = list(reduced) + [None] * (5 - len(reduced))
    return b"o" + _join_encoded(
        (*parts[:3], None if parts[3] is None else list(parts[3]), None if parts[4] is None else list(parts[4]))
    )


def _number(value: Any) -> bytes:
    if isinstance(value, complex) and not isinstance(value, float):
        return _number(value.real) if value.imag == 0 else b"C" + _join_encoded((value.real, value.imag))
    if value != value:
        return b"N"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return b"f" + struct.pack(">d", value)
    if value == int(value):
        return b"i%d" % int(value)
    as_float = float(value)
    if as_float == value:
        return b"f" + struct.pack(">d", as_float)
    return b"q" + "{}/{}".format(*value.as_integer_ratio()).encode()


def _join_encoded(items: Any) -> bytes:
    return _join_sized([_encode(item) for item in items])


def _join_sized(parts: Any) -> bytes:
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
