"""Converters of integers, decimals and floating-point numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final

from airflow_pipelines.rows.formats.converting import DIGITS, LONGEST_INTEGER, Converter, integer_of, make_mismatch
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.rows.types import ColumnType

REAL_OVERFLOW: Final = float.fromhex("0x1.ffffffp+127")
"""The magnitude from which a number rounds to an infinite REAL. The greatest REAL, in its shortest text, lies just below."""
NAMED_FLOATS: Final[Mapping[str, float]] = {
    "NaN": math.nan,
    **dict.fromkeys(("Infinity", "+Infinity", "INF", "+INF"), math.inf),
    **dict.fromkeys(("-Infinity", "-INF"), -math.inf),
}
"""The floating-point numbers without digits, by their texts in JSON and CSV: those that Spark reads."""
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def integer_converter(kind: ColumnType) -> Converter:
    """Make a converter of integers.

    :param kind: an integer type
    """
    least, most = kind.bounds
    written = str(kind)

    def convert(value: Any) -> int:
        # Writers without an integer type write 5.0; any other fraction is a mistake.
        number = integer_of(value)
        if number is None:
            raise make_mismatch(f"an integer ({written})", value)
        if not least <= number <= most:
            raise RecordProblem(f"{excerpt(str(number), 60)} is out of range for {written}")
        return number

    return convert


def decimal_converter(kind: ColumnType) -> Converter:
    """Make a converter of decimals, which may be written as texts; digits beyond the scale are rounded half up.

    :param kind: the type
    """
    precision, scale = kind.precision or 38, kind.scale or 0
    quantum = Decimal(1).scaleb(-scale)
    bound = Decimal(10) ** (precision - scale)

    def convert(value: Any) -> Decimal:
        if type(value) is int:
            number = Decimal(value)
        elif type(value) is Decimal:
            number = value
        elif isinstance(value, str):
            number = number_of_text(value.strip(" \t"))
        else:
            raise make_mismatch(f"a number (DECIMAL({precision},{scale}))", value)
        if number.adjusted() < LONGEST_INTEGER:
            try:
                number = number.quantize(quantum, ROUND_HALF_UP, DIGITS)
            except InvalidOperation:
                number = bound
        # Not abs(), which would round and may overflow.
        if number.copy_abs() >= bound:
            raise RecordProblem(f"{excerpt(str(value), 60)} is out of range for DECIMAL({precision},{scale})")
        return number

    return convert


def float_converter(kind: ColumnType) -> Converter:
    """Make a converter of floating-point numbers. Those that JSON cannot write are texts: ``"NaN"``, ``"-Infinity"``.

    :param kind: REAL or DOUBLE
    """
    overflow = REAL_OVERFLOW if kind.is_single_precision else math.inf

    def convert(value: Any) -> float:
        if isinstance(value, str) and (named := NAMED_FLOATS.get(value)) is not None:
            return named
        if type(value) is not int and type(value) is not Decimal:
            raise make_mismatch(f"a number ({kind.name})", value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if abs(number) >= overflow:
            raise RecordProblem(f"{excerpt(str(value), 60)} is out of range for {kind.name}")
        return number

    return convert


def number_of_text(text: str) -> Decimal:
    """Parse a number.

    :param text: the text, without blanks around it
    :raises RecordProblem: when it is no number
    """
    if not _NUMBER.fullmatch(text):
        raise RecordProblem(f"{excerpt(text, 60)!r} is not a number")
    return Decimal(text)
