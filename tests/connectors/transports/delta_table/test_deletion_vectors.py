"""Deletion vectors, as written by hand from the description of their form."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from typing import Any
from uuid import UUID

import pytest

from airflow_pipelines.connectors.transports.delta_table.deletion_vectors import BrokenVectorError, deleted_rows

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def z85(data: bytes) -> str:
    """Bytes as text, whose number is a multiple of four."""
    return base64.b85encode(data).decode().translate(str.maketrans(B85, Z85))


def bitmap(numbers: list[int], *, runs: bool = False) -> bytes:
    """A 32 bit Roaring bitmap in its portable form."""
    keys = sorted({number >> 16 for number in numbers})
    lows = {key: sorted(number & 0xFFFF for number in numbers if number >> 16 == key) for key in keys}
    head = b"".join(struct.pack("<HH", key, len(lows[key]) - 1) for key in keys)
    bodies = [_runs(lows[key]) if runs else _plain(lows[key]) for key in keys]
    if runs:
        start = struct.pack("<I", 12347 | (len(keys) - 1) << 16)
        flags = bytes((2 ** min(8, len(keys) - begin) - 1) for begin in range(0, len(keys), 8))
        offsets = b"\0" * (4 * len(keys)) if len(keys) >= 4 else b""
        return start + flags + head + offsets + b"".join(bodies)
    return struct.pack("<II", 12346, len(keys)) + head + b"\0" * (4 * len(keys)) + b"".join(bodies)


def _plain(values: list[int]) -> bytes:
    if len(values) <= 4096:
        return struct.pack(f"<{len(values)}H", *values)
    bits = bytearray(8192)
    for value in values:
        bits[value // 8] |= 1 << value % 8
    return bytes(bits)


def _runs(values: list[int]) -> bytes:
    found: list[list[int]] = []
    for value in values:
        if found and found[-1][0] + found[-1][1] + 1 == value:
            found[-1][1] += 1
        else:
            found.append([value, 0])
    return struct.pack("<H", len(found)) + b"".join(struct.pack("<HH", *run) for run in found)


def vector(numbers: list[int], *, runs: bool = False) -> bytes:
    """Numbers of 64 bits."""
    keys = sorted({number >> 32 for number in numbers})
    parts = [
        struct.pack("<i", key) + bitmap([number & 0xFFFFFFFF for number in numbers if number >> 32 == key], runs=runs)
        for key in keys
    ]
    return struct.pack("<iq", 1681511377, len(keys)) + b"".join(parts)


def nothing(path: str) -> bytes:
    raise AssertionError(f"{path} is read")


def inline(data: bytes) -> dict[str, Any]:
    return {"storageType": "i", "pathOrInlineDv": z85(data + b"\0" * (-len(data) % 4)), "sizeInBytes": len(data)}


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0],
        [3, 4, 5, 6, 100],
        [65535, 65536, 65537],
        [0, 1 << 16, 2 << 16, 3 << 16, 4 << 16, 4 << 16 | 9],
        [7, 1 << 32, (1 << 32) + 5, (3 << 32) + 70000],
        list(range(0, 20000, 2)),
        sorted(random.Random(1).sample(range(400_000), 50_000)),
        list(range(65536)),
    ],
    ids=["none", "one", "run", "containers", "offsets", "large", "bits", "mixed", "full"],
)
def test_numbers(numbers: list[int], runs: bool) -> None:
    assert deleted_rows(inline(vector(numbers, runs=runs)), nothing).tolist() == numbers


def test_vectors_in_files() -> None:
    identifier = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    data = vector([1, 5])
    content = b"\x01" + b"other" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    files = {f"ab/deletion_vector_{identifier}.bin": content}
    said = {"storageType": "u", "pathOrInlineDv": "ab" + z85(identifier.bytes), "offset": 6, "sizeInBytes": len(data)}
    assert deleted_rows(said, files.__getitem__).tolist() == [1, 5]
    damaged = {name: value[:-6] + b"!" + value[-5:] for name, value in files.items()}
    with pytest.raises(BrokenVectorError, match="its checksum is another one"):
        deleted_rows(said, damaged.__getitem__)


def test_what_is_not_known() -> None:
    with pytest.raises(BrokenVectorError, match="outside of the table's folder"):
        deleted_rows({"storageType": "p", "pathOrInlineDv": "s3://b/x", "sizeInBytes": 1}, nothing)
    with pytest.raises(BrokenVectorError, match="storage type 'x'"):
        deleted_rows({"storageType": "x", "pathOrInlineDv": "", "sizeInBytes": 1}, nothing)
    with pytest.raises(BrokenVectorError, match="of the form 1 are not known"):
        deleted_rows(inline(struct.pack("<iq", 1, 0)), nothing)
