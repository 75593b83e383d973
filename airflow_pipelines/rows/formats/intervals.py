"""The conversion of ISO 8601 text such as ``P1DT2H30M`` and ``-P1Y3M`` to intervals, with the units of a column."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.rows.interval_texts import UNITS
from airflow_pipelines.rows.types import INTERVAL_UNITS, ColumnType

_NUMBER = r"([+-]?\d{1,18})"
_MONTHS = re.compile(rf"([+-])?P(?=.)(?:{_NUMBER}Y)?(?:{_NUMBER}M)?", re.ASCII)
_TIME = re.compile(
    rf"([+-])?P(?=.)(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=.)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:([+-]?)(\d{{1,18}})(?:[.,](\d{{1,9}}))?S)?)?",
    re.ASCII,
)
_SIZES = {"YEAR": 12, "MONTH": 1, **{unit: size for unit, size in UNITS.items() if unit in INTERVAL_UNITS[1]}}


def interval_converter(kind: ColumnType) -> Callable[[Any], int]:
    """Make a converter from ISO 8601 text to the number of months or microseconds that represents a value of ``kind``.

    A length that is no multiple of the type's smallest unit, or too long, is a problem of the record.
    """
    last = kind.name.rsplit("_", 1)[-1]
    of_months = last in INTERVAL_UNITS[0]
    # Only a SECOND has fractions.
    size = 1 if last == "SECOND" else _SIZES[last]
    bound, read = (2**31, _months) if of_months else (2**63, _microseconds)
    example = "P1Y3M" if of_months else "P1DT2H30M"

    def convert(value: Any) -> int:
        length = read(value) if isinstance(value, str) else None
        if length is None:
            raise RecordProblem(
                f"{excerpt(jsontext.dumps_for_message(value), 60)} is not an interval in ISO 8601 form, such as '{example}'"
            )
        if length % size:
            raise RecordProblem(f"{excerpt(str(value), 60)} is not a whole number of {last}S ({kind})")
        if not -bound <= length < bound:
            raise RecordProblem(f"{excerpt(str(value), 60)} is out of range for {kind}")
        return length

    return convert


def _months(text: str) -> int | None:
    match = _MONTHS.fullmatch(text)
    if match is None:
        return None
    sign, years, months = match.groups()
    return (-1 if sign == "-" else 1) * (12 * int(years or 0) + int(months or 0))


def _microseconds(text: str) -> int | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    sign, weeks, days, hours, minutes, sign_of_seconds, seconds, fraction = match.groups()
    total = sum(
        int(number or 0) * UNITS[unit] for number, unit in ((weeks, "WEEK"), (days, "DAY"), (hours, "HOUR"), (minutes, "MINUTE"))
    )
    # Digits after the microsecond are dropped, as those of timestamps are.
    parts = int(Decimal(f"{seconds or 0}.{fraction or 0}") * UNITS["SECOND"])
    total += -parts if sign_of_seconds == "-" else parts
    return -total if sign == "-" else total
