"""Floating-point numbers as text, in the form that Flink's sinks write: ``1.0``, ``1.0E10``, ``NaN``."""

from __future__ import annotations

import math
import struct
from decimal import Decimal


def double_text(value: float) -> str:
    """Return a 64-bit float as text.

    :param value: the number
    :returns: the shortest text that reads as the same number
    """
    return _format_number(value, repr(value))


def float_text(value: float) -> str:
    """Return a 32-bit float as text.

    :param value: the number, rounded to 32 bits
    :returns: the shortest text that reads as the same number of 32 bits
    """
    if not math.isfinite(value):
        return _format_number(value, "")
    shortest = next(
        (text for text in (f"{value:.{digits}g}" for digits in range(1, 9)) if _as_float(text) == value), f"{value:.9g}"
    )
    return _format_number(value, shortest)


def _as_float(text: str) -> float | None:
    try:
        return float(struct.unpack("<f", struct.pack("<f", float(text)))[0])
    except OverflowError:
        return None


def _format_number(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1, value) < 0 else ""
    digits = "".join(map(str, Decimal(shortest).as_tuple().digits)).rstrip("0") or "0"
    exponent = Decimal(shortest).adjusted() if value else 0
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits.ljust(exponent + 1, "0")
    return f"{sign}{whole[: exponent + 1]}.{whole[exponent + 1 :] or '0'}"
