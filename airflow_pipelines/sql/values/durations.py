"""Intervals of a fixed length: a parser, and a printer for the arguments of Spark's window functions."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from airflow_pipelines.rows.interval_texts import UNITS

_SHOWN = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_RANGE = ("DAY", "HOUR", "MINUTE", "SECOND")
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_INTERVAL = re.compile(
    r"(?:INTERVAL\s*)?(?P<sign>-\s*)?(?:'(?P<text>[^']*)'|(?P<number>\d+(?:\.\d+)?))\s*(?P<units>.*)", re.I | re.S
)
_YEARS_AND_MONTHS = re.compile(r"([+-]?)(\d+)-(\d+)")
_PAIRS = re.compile(r"(?:INTERVAL\s+)?((?:[+-]?\d+(?:\.\d+)?\s*[a-z]+\s*)+)", re.I)
_PAIR = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)", re.I)


def microseconds(written: str) -> int:
    """Return the length of an interval such as ``INTERVAL '1' MINUTE``, ``INTERVAL '1:30' MINUTE TO SECOND`` or ``'90 seconds'``.

    :raises ValueError: if it is no constant, or has months or years, whose length differs
    """
    parsed = _INTERVAL.fullmatch(written.strip())
    if parsed is None:
        raise ValueError(f"{written} is not a constant length of time such as INTERVAL '1' MINUTE")
    value, units = parsed["text"] if parsed["text"] is not None else parsed["number"], parsed["units"].upper().split()
    sign = -1 if parsed["sign"] else 1
    if not units:
        return sign * _of_pairs(value, written)
    if len(units) == 3 and units[1] == "TO":
        return sign * _of_range(value, units[0], units[2], written)
    if len(units) != 1:
        raise ValueError(f"{written} is not a constant length of time such as INTERVAL '1' MINUTE")
    return sign * _times(value, units[0], written)


def months(written: str) -> int:
    """Return the number of months of an interval such as ``INTERVAL '2' YEAR`` or ``INTERVAL '1-3' YEAR TO MONTH``.

    :raises ValueError: if it is no such constant
    """
    parsed = _INTERVAL.fullmatch(written.strip())
    failure = ValueError(f"{written} is not a constant number of months such as INTERVAL '1-3' YEAR TO MONTH")
    if parsed is None:
        raise failure
    value, units = parsed["text"] if parsed["text"] is not None else parsed["number"], parsed["units"].upper().split()
    sign = -1 if parsed["sign"] else 1
    pair = _YEARS_AND_MONTHS.fullmatch(value.strip())
    if units == ["YEAR", "TO", "MONTH"] and pair is not None:
        return sign * (-1 if pair[1] == "-" else 1) * (12 * int(pair[2]) + int(pair[3]))
    factor = _MONTHS.get(units[0], _MONTHS.get(units[0].removesuffix("S"))) if len(units) == 1 else None
    if factor is None or not value.strip().lstrip("+-").isdigit():
        raise failure
    return sign * int(value) * factor


def duration(written: str) -> str:
    """Return the text of an interval for Spark's ``window``.

    :raises ValueError: as :func:`microseconds` does
    """
    total = microseconds(written)
    unit = next(unit for unit in _SHOWN if total % UNITS[unit] == 0)
    return f"{total // UNITS[unit]} {unit.lower()}s"


def _times(value: str, unit: str, written: str) -> int:
    factor = UNITS.get(unit) or UNITS.get(unit.removesuffix("S"))
    if factor is None:
        raise ValueError(f"{written} has no fixed length: windows are counted in days, hours, minutes, seconds and parts of them")
    try:
        return int(Decimal(value.strip()) * factor)
    except InvalidOperation as error:
        raise ValueError(f"{written} is not a constant length of time such as INTERVAL '1' MINUTE") from error


def _of_pairs(value: str, written: str) -> int:
    if _PAIRS.fullmatch(value.strip()) is None:
        raise ValueError(f"{written} is not a constant length of time such as INTERVAL '1' MINUTE")
    return sum(_times(number, unit.upper(), written) for number, unit in _PAIR.findall(value))


def _of_range(value: str, first: str, last: str, written: str) -> int:
    """Return the microseconds of ``D H:M:S.f`` from one unit to another."""
    text = value.strip()
    sign = -1 if text.startswith("-") else 1
    parts = re.split(r"[ :]", text.lstrip("+-"))
    if first not in _RANGE or last not in _RANGE:
        raise ValueError(f"{written} has no fixed length: windows are counted in days, hours, minutes, seconds and parts of them")
    units = _RANGE[_RANGE.index(first) : _RANGE.index(last) + 1]
    if len(parts) != len(units):
        raise ValueError(f"{written} does not have a number for each of {', '.join(units)}")
    return sign * sum(_times(part, unit, written) for part, unit in zip(parts, units, strict=True))
