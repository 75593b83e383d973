"""Time to live of state: measured in processing time since a value was written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeToLive:
    """How long a value is kept. For a list it is each element's own time, for a map each entry's.

    :param milliseconds: how long
    :param refreshed_on_read: reading a value counts as writing it
    :param expired_is_visible: a value whose time is over is given once more if it is still there
    """

    milliseconds: int
    refreshed_on_read: bool = False
    expired_is_visible: bool = False
