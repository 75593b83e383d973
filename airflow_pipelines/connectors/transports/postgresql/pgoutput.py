"""The messages in which a server describes changes (the output plugin ``pgoutput``, protocol version 1)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias


class Missing(Enum):
    """The placeholder for a value that was not sent."""

    UNCHANGED = "unchanged"
    """A large value that an update did not change."""


Value: TypeAlias = str | Missing | None
"""The text of a value, or NULL."""
TupleData: TypeAlias = list[Value]


@dataclass(frozen=True, slots=True)
class PublishedColumn:
    """A column of a table.

    :param name: the name of the column
    :param type_oid: the oid of its type
    """

    name: str
    type_oid: int


@dataclass(frozen=True, slots=True)
class Relation:
    """The description of a table, valid from here on.

    :param oid: the oid of the table
    :param schema: the schema that it is in
    :param name: the name of the table
    :param columns: its columns in the order of values
    """

    oid: int
    schema: str
    name: str
    columns: tuple[PublishedColumn, ...]


@dataclass(frozen=True, slots=True)
class TransactionBegin:
    """The begin of a transaction."""


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """The end of a transaction.

    :param end: the place in the log after it
    """

    end: int


@dataclass(frozen=True, slots=True)
class Insert:
    """The insertion of a row."""

    oid: int
    new: TupleData


@dataclass(frozen=True, slots=True)
class Update:
    """The update of a row.

    :param old: the old row, or its key alone; None where neither was needed
    :param old_is_key: True if ``old`` is the key alone
    """

    oid: int
    old: TupleData | None
    old_is_key: bool
    new: TupleData


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of a row.

    :param old: the row, or its key alone
    :param old_is_key: True if ``old`` is the key alone
    """

    oid: int
    old: TupleData
    old_is_key: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """The truncation of tables."""

    oids: tuple[int, ...]


Message: TypeAlias = Relation | TransactionBegin | TransactionEnd | Insert | Update | Delete | Truncate
_COLUMN: Final = struct.Struct(">Ii")
_COMMIT: Final = struct.Struct(">BQQQ")


def decode(data: bytes) -> Message | None:
    """Return the message of some bytes, or None if it says nothing of rows.

    :param data: the bytes of the message
    :raises ValueError: when it is of a kind that was not requested
    """
    kind = data[:1]
    match kind:
        case b"I":
            return Insert(_oid(data), _tuple(data, 6)[0])
        case b"U":
            return _update(data)
        case b"D":
            return Delete(_oid(data), _tuple(data, 6)[0], data[5:6] == b"K")
        case b"B":
            return TransactionBegin()
        case b"C":
            return TransactionEnd(_COMMIT.unpack_from(data, 1)[2])
        case b"R":
            return _relation(data)
        case b"T":
            count = int.from_bytes(data[1:5])
            return Truncate(struct.unpack_from(f">{count}I", data, 6))
        case b"Y" | b"O" | b"M":
            return None
    raise ValueError(f"the server sent a message of an unknown kind, {kind!r}")


def _oid(data: bytes) -> int:
    return int.from_bytes(data[1:5])


def _update(data: bytes) -> Update:
    mark = data[5:6]
    if mark == b"N":
        return Update(_oid(data), None, False, _tuple(data, 6)[0])
    old, end = _tuple(data, 6)
    return Update(_oid(data), old, mark == b"K", _tuple(data, end + 1)[0])


def _tuple(data: bytes, at: int) -> tuple[TupleData, int]:
    """Return the values that begin at an offset, and the offset after them."""
    values: TupleData = []
    count = int.from_bytes(data[at : at + 2])
    at += 2
    for _ in range(count):
        mark = data[at]
        if mark == 0x74:  # t: a text
            begin = at + 5
            at = begin + int.from_bytes(data[at + 1 : begin])
            values.append(data[begin:at].decode())
            continue
        values.append(None if mark == 0x6E else Missing.UNCHANGED)
        at += 1
    return values, at


def _relation(data: bytes) -> Relation:
    schema, at = _name(data, 5)
    name, at = _name(data, at)
    # The replica identity, which each old row states again, comes before the count.
    count = int.from_bytes(data[at + 1 : at + 3])
    at += 3
    columns = []
    for _ in range(count):
        column, at = _name(data, at + 1)
        type_oid, _ = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        columns.append(PublishedColumn(column, type_oid))
    return Relation(_oid(data), schema, name, tuple(columns))


def _name(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1
