"""Functions of texts and times whose answers in Arrow are Spark's, by their names in SQL."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.expressions.numbers import change_sign
from airflow_pipelines.rows.expressions.operands import LeftToSpark, Operand, is_ascii, is_time, require_text, unify

_FIRST_DAY: Final = -719_162
"""0001-01-01, in days since 1970-01-01."""
_LAST_DAY: Final = 2_932_896
"""9999-12-31."""
_DAY_US: Final = 86_400_000_000


def convert_case(operand: Operand, function: Callable[[Operand], Operand]) -> Operand:
    """Convert ASCII texts to lower or upper case. Other letters Spark converts by the rules of its own Unicode library.

    :raises LeftToSpark: if a text has other characters
    """
    text = require_text(operand)
    if not is_ascii(text):
        raise LeftToSpark("texts that are not ASCII")
    return function(text)


def substring(operand: Operand, start: int, length: int | None) -> Operand:
    """Return parts of texts.

    :param operand: texts
    :param start: the place of the first character, from 1; 0 is 1
    :param length: the number of characters; None for all that follow
    """
    first = max(start, 1) - 1
    result: Operand = pc.utf8_slice_codeunits(require_text(operand), first, None if length is None else first + length)
    return result


def concatenate(*operands: Operand) -> Operand:
    """Concatenate texts; NULL if one of them is."""
    texts = [require_text(operand) for operand in operands]
    if all(isinstance(text, pa.Scalar) for text in texts):
        values = [text.as_py() for text in texts]
        return pa.scalar(None if None in values else "".join(values), pa.string())
    result: Operand = pc.binary_join_element_wise(*texts, "", null_handling="emit_null")
    return result


def match_like(operand: Operand, pattern: str) -> Operand:
    """Return for which texts a pattern of LIKE matches.

    :param pattern: with ``%`` and ``_``, and without an escape
    """
    result: Operand = pc.match_like(require_text(operand), pattern)
    return result


def time_part(operand: Operand, function: Callable[[Operand], Operand]) -> Operand:
    """Return a part of times, such as the year, as an INT.

    :param operand: dates or timestamps of the years 1 to 9999; timestamps are those of UTC
    :param function: Arrow's function
    """
    result: Operand = function(_naive(operand)).cast(pa.int32())
    return result


def truncate_time(operand: Operand, unit: str) -> Operand:
    """Round times down.

    :param operand: see :func:`time_part`
    :param unit: Arrow's name of a unit
    """
    result: Operand = pc.floor_temporal(_naive(operand), 1, unit, week_starts_monday=True).cast(operand.type)
    return result


def _naive(operand: Operand) -> Operand:
    if not is_time(operand.type):
        raise LeftToSpark(f"{operand.type} is no time")
    is_date = operand.type == pa.date32()
    numbers = operand.cast(pa.int32() if is_date else pa.int64())
    first, last = (_FIRST_DAY, _LAST_DAY) if is_date else (_FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1)
    fits = pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last))
    if (fits.as_py() if isinstance(fits, pa.Scalar) else pc.all(fits).as_py()) is False:
        raise LeftToSpark("a time outside the years 1 to 9999")
    return operand if is_date else operand.cast(pa.timestamp("us"))


def _extreme(function: Callable[..., Operand]) -> Callable[..., Operand]:
    def take_extreme(*operands: Operand) -> Operand:
        alike = unify(list(operands))
        if len(alike) < 2 or not (pa.types.is_signed_integer(alike[0].type) or is_time(alike[0].type)):
            raise LeftToSpark(str(alike[0].type))
        return function(*alike, skip_nulls=True)

    return take_extreme


def coalesce(*operands: Operand) -> Operand:
    """Return the first value that is not NULL."""
    alike = unify(list(operands))
    result: Operand = alike[-1]
    for operand in reversed(alike[:-1]):
        result = pc.if_else(pc.is_valid(operand), operand, result)
    return result


def _part_of_time(function: Callable[[Operand], Operand]) -> Callable[[Operand], Operand]:
    return functools.partial(time_part, function=function)


def _time_of_day(function: Callable[[Operand], Operand]) -> Callable[[Operand], Operand]:
    def part_of_timestamp(operand: Operand) -> Operand:
        if not pa.types.is_timestamp(operand.type):
            raise LeftToSpark(f"{operand.type} has no time of day")
        return time_part(operand, function)

    return part_of_timestamp


def _lower(operand: Operand) -> Operand:
    return convert_case(operand, pc.utf8_lower)


def _upper(operand: Operand) -> Operand:
    return convert_case(operand, pc.utf8_upper)


def _length(operand: Operand) -> Operand:
    result: Operand = pc.utf8_length(require_text(operand))
    return result


def trim(operand: Operand) -> Operand:
    """Remove the spaces at both ends of texts, and no other white space."""
    result: Operand = pc.utf8_trim(require_text(operand), " ")
    return result


_DAY_OF_MONTH: Final = _part_of_time(pc.day)
_DAY_OF_WEEK: Final = _part_of_time(lambda times: pc.add(pc.day_of_week(times, week_start=7), 1))
_DAY_OF_YEAR: Final = _part_of_time(pc.day_of_year)
_WEEK: Final = _part_of_time(pc.iso_week)
UNARY: Final[Mapping[str, Callable[[Operand], Operand]]] = {
    "ABS": lambda operand: change_sign(operand, pc.abs_checked),
    "CHARACTER_LENGTH": _length,
    "CHAR_LENGTH": _length,
    "DAY": _DAY_OF_MONTH,
    "DAYOFMONTH": _DAY_OF_MONTH,
    "DAYOFWEEK": _DAY_OF_WEEK,
    "DAYOFYEAR": _DAY_OF_YEAR,
    "HOUR": _time_of_day(pc.hour),
    "LCASE": _lower,
    "LEN": _length,
    "LENGTH": _length,
    "LOWER": _lower,
    "MINUTE": _time_of_day(pc.minute),
    "MONTH": _part_of_time(pc.month),
    "QUARTER": _part_of_time(pc.quarter),
    "SECOND": _time_of_day(pc.second),
    "TRIM": trim,
    "UCASE": _upper,
    "UPPER": _upper,
    "WEEKDAY": _part_of_time(pc.day_of_week),
    "WEEKOFYEAR": _WEEK,
    "YEAR": _part_of_time(pc.year),
}
"""The functions of one argument."""
VARIADIC: Final[Mapping[str, Callable[..., Operand]]] = {
    "COALESCE": coalesce,
    "CONCAT": concatenate,
    "GREATEST": _extreme(pc.max_element_wise),
    "LEAST": _extreme(pc.min_element_wise),
}
"""The functions of any number of arguments."""
BY_VALUE: Final = frozenset({"GET_JSON_OBJECT", "LCASE", "LOWER", "UCASE", "UPPER"})
"""The functions that are left to Spark for some values, which are not rare: texts that are not ASCII, fields that are fractions."""
EXTRACTED: Final[Mapping[str, str]] = {
    **{unit: unit for unit in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "DAYOFWEEK")},
    "DOW": "DAYOFWEEK",
    "DOY": "DAYOFYEAR",
    "WEEK": "WEEKOFYEAR",
}
"""The function of each unit of EXTRACT."""
TIMESTAMP_UNITS: Final = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
"""The units of DATE_TRUNC."""
DATE_UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    "WEEK": "week",
}
"""Arrow's name of each unit of TRUNC."""
