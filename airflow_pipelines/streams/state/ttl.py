"""The time to live of state, measured in processing time since a value was written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeToLive:
    """The time to live of a value. Each element of a list and each entry of a map has its own.

    :param milliseconds: the time in ms
    :param refreshed_on_read: True if reading a value counts as writing it
    :param expired_is_visible: True if an expired value is returned once more if it still exists
    """

    milliseconds: int
    refreshed_on_read: bool = False
    expired_is_visible: bool = False
