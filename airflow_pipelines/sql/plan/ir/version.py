"""Versions of a relation in one step."""

from __future__ import annotations

from enum import Enum


class Version(Enum):
    """Which contents of a relation a text reads, as seen from one step."""

    DELTA = "delta"
    BEFORE = "before"
    AFTER = "after"
