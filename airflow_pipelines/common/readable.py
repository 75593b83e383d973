"""Numbers in a form for people."""

from __future__ import annotations

from typing import Final

_SIZES: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")
_DURATIONS: Final = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (0.0, "s"))


def readable_size(size: float) -> str:
    """Return a number of bytes with a unit.

    :param size: the number
    :returns: the text, such as ``1.5 MiB``
    """
    unit = 0
    while size >= 1024 and unit < len(_SIZES) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_SIZES[0]}" if unit == 0 else f"{size:.1f} {_SIZES[unit]}"


def readable_duration(seconds: float) -> str:
    """Return a duration in the largest unit of which it has at least two.

    :param seconds: the duration; a negative one counts as zero
    :returns: the text, such as ``2.5 min``
    """
    seconds = max(seconds, 0.0)
    size, unit = next((size, unit) for size, unit in _DURATIONS if seconds >= 2 * size)
    return f"{seconds / (size or 1.0):,.1f} {unit}"
