"""Numbers as people read them."""

from __future__ import annotations

from typing import Final

_SIZES: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")
_DURATIONS: Final = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (0.0, "s"))


def readable_size(size: float) -> str:
    """A number of bytes with a unit.

    :param size: the number
    :return: such as ``1.5 MiB``
    """
    unit = 0
    while size >= 1024 and unit < len(_SIZES) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_SIZES[0]}" if unit == 0 else f"{size:.1f} {_SIZES[unit]}"


def readable_duration(seconds: float) -> str:
    """A time with the largest unit of which there are two.

    :param seconds: the time; negative ones count as none
    :return: such as ``2.5 min``
    """
    seconds = max(seconds, 0.0)
    size, unit = next((size, unit) for size, unit in _DURATIONS if seconds >= 2 * size)
    return f"{seconds / (size or 1.0):,.1f} {unit}"
