"""Places in a server's log."""

from __future__ import annotations


def read_lsn(text: str) -> int:
    """The number of a place.

    :param text: such as ``0/16B3748``
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(place: int) -> str:
    """A place as people write it.

    :param place: its number
    """
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"
