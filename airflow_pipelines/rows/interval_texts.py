"""ISO 8601 texts of intervals, such as ``P1DT2H`` and ``-P1Y3M``, and the lengths of their units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

UNITS: Final[Mapping[str, int]] = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
"""Units of a fixed length, in microseconds."""


def months_text(months: int) -> str:
    """Return the ISO 8601 text of a year-month interval."""
    return f"{'-' if months < 0 else ''}P{_years_and_months(abs(months)) or '0M'}"


def microseconds_text(length: int) -> str:
    """Return the ISO 8601 text of a day-time interval."""
    days, rest = divmod(abs(length), UNITS["DAY"])
    text = (f"{days}D" if days else "") + _time(rest)
    return f"{'-' if length < 0 else ''}P{text or 'T0S'}"


def calendar_text(value: tuple[int, int, int]) -> str:
    """Return the ISO 8601 text of an interval of months, days and nanoseconds, each with its own sign."""
    months, days, nanoseconds = value
    signs = ["-" if number < 0 else "" for number in value]
    text = _years_and_months(abs(months), signs[0]) + (f"{days}D" if days else "") + _time(abs(nanoseconds) // 1_000, signs[2])
    return f"P{text or 'T0S'}"


def _years_and_months(months: int, sign: str = "") -> str:
    years, rest = divmod(months, 12)
    return "".join(f"{sign}{number}{unit}" for number, unit in ((years, "Y"), (rest, "M")) if number)


def _time(microseconds: int, sign: str = "") -> str:
    hours, rest = divmod(microseconds, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    shown = f"{seconds}.{fraction:06}".rstrip("0").rstrip(".") if fraction else str(seconds)
    text = "".join(f"{sign}{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    return f"T{text}{f'{sign}{shown}S' if rest else ''}" if microseconds else ""
