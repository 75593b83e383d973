"""How two values of a state's column become one."""

from __future__ import annotations

from enum import Enum


class Merge(Enum):
    """The aggregate that joins the values that a state's column has for the same key.

    ``SUM``: they add up. ``MIN`` and ``MAX``: the least or the greatest stays; NULL is no value yet, and nothing can be taken back.
    ``NEWEST``: the value that was written last stays.
    """

    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    NEWEST = "NEWEST"


def merging(column: str) -> str:
    """The aggregate function that joins two values of a state's column: MAX or MIN for accumulators so named, else SUM.

    Extremes are only kept of inputs that never lose a row; a NULL is no value yet.
    """
    return {"max": "MAX", "min": "MIN"}.get(column[-3:], "SUM") if column.startswith("__a") else "SUM"
