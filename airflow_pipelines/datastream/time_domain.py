"""Which notion of time made a timer fire."""

from __future__ import annotations

from enum import Enum


class TimeDomain(Enum):
    """The notion of time of a timer."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
