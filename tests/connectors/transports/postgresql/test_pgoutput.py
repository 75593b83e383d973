"""The messages of the output plugin, byte by byte."""

from __future__ import annotations

import struct

import pytest

from airflow_pipelines.connectors.transports.postgresql.lsn import lsn_text, read_lsn
from airflow_pipelines.connectors.transports.postgresql.pgoutput import (
    Delete,
    Insert,
    Missing,
    PublishedColumn,
    Relation,
    TransactionBegin,
    TransactionEnd,
    Truncate,
    Update,
    decode,
)

OID = struct.pack(">I", 70_000)


def values(*given: str | Missing | None) -> bytes:
    parts = [struct.pack(">H", len(given))]
    for value in given:
        if isinstance(value, str):
            parts.append(b"t" + struct.pack(">I", len(value.encode())) + value.encode())
        else:
            parts.append(b"n" if value is None else b"u")
    return b"".join(parts)


def test_rows() -> None:
    new = ["1", "é", "", None]
    assert decode(b"I" + OID + b"N" + values(*new)) == Insert(70_000, new)
    assert decode(b"U" + OID + b"N" + values("1", Missing.UNCHANGED)) == Update(70_000, None, False, ["1", Missing.UNCHANGED])
    assert decode(b"U" + OID + b"K" + values("1", None) + b"N" + values("2", "b")) == Update(70_000, ["1", None], True, ["2", "b"])
    assert decode(b"U" + OID + b"O" + values("1", "a") + b"N" + values("1", "b")) == Update(70_000, ["1", "a"], False, ["1", "b"])
    assert decode(b"D" + OID + b"K" + values("1", None)) == Delete(70_000, ["1", None], True)
    assert decode(b"D" + OID + b"O" + values("1", "a")) == Delete(70_000, ["1", "a"], False)
    assert decode(b"T" + struct.pack(">IBII", 2, 1, 70_000, 5)) == Truncate((70_000, 5))


def test_transactions_and_tables() -> None:
    assert decode(b"B" + struct.pack(">QQI", 1, 2, 3)) == TransactionBegin()
    assert decode(b"C" + struct.pack(">BQQQ", 0, 1, 2**40, 3)) == TransactionEnd(2**40)
    columns = b"\1id\0" + struct.pack(">Ii", 23, -1) + b"\0na\xc3\xafve\0" + struct.pack(">Ii", 25, 7)
    relation = decode(b"R" + OID + b"public\0t\0d" + struct.pack(">H", 2) + columns)
    assert relation == Relation(70_000, "public", "t", (PublishedColumn("id", 23), PublishedColumn("naïve", 25)))


def test_what_says_nothing_of_rows_and_what_nobody_knows() -> None:
    for kind in (b"Y", b"O", b"M"):
        assert decode(kind + OID) is None
    with pytest.raises(ValueError, match="unknown kind, b'S'"):
        decode(b"S" + OID)


def test_places_in_the_log() -> None:
    for text in ("0/0", "0/16B3748", "16/B374D848", "FFFFFFFF/FFFFFFFF"):
        assert lsn_text(read_lsn(text)) == text
    assert read_lsn("1/0") == 2**32
