"""Texts that are none, which a cast of bytes may give."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def texts(values: Sequence[str | bytes | None]) -> pa.Array:
    """Texts, of which those that are given as bytes may be no UTF-8."""
    plain = pa.array([value.encode() if isinstance(value, str) else value for value in values], pa.binary())
    return pa.StringArray.from_buffers(len(plain), *plain.buffers()[1:], plain.buffers()[0])
