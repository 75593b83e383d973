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
