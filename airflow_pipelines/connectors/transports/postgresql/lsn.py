"""Places in a server's log (LSNs)."""

from __future__ import annotations


def read_lsn(text: str) -> int:
    """Return the number of a place.

    :param text: the LSN, such as ``0/16B3748``
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(place: int) -> str:
    """Return a place in its usual notation.

    :param place: the number of the place
    """
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"
