"""The versions of a relation in one step."""

from __future__ import annotations

from enum import Enum


class Version(Enum):
    """The version of a relation's contents that a text reads, relative to one step."""

    DELTA = "delta"
    BEFORE = "before"
    AFTER = "after"
