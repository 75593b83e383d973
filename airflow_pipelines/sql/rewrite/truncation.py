"""The rewrite of the rounding of dates and times to a unit: FLOOR and CEIL, TIMESTAMP_TRUNC, DATE_TRUNC and TIME_TRUNC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit

_YEARS: Mapping[str, tuple[int, int]] = {"decade": (10, 0), "century": (100, 1), "millennium": (1000, 1)}
"""The units of several years that Spark lacks: their length, and the last digit of the first year. 2001 begins a century."""
_UNITS: Mapping[str, str] = {
    "isoweek": "WEEK",
    **{
        unit: unit.upper()
        for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    },
}
"""Spark's name of each other unit."""
_SPARKS_OTHER_NAMES = frozenset({"yyyy", "yy", "mm", "mon", "dd"})
"""Other names of units that Spark accepts in quotes."""
_PARTS_OF_DAY: Mapping[str, int] = {
    "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1_000, "microsecond": 1,
}  # fmt: skip
"""The units of a TIME, in microseconds."""
_DAY = 86_400_000_000
_DIFFERENCES = frozenset({"date_diff", "datediff", "timestampdiff"})
_Rewrite = Callable[[TokenWalker, CallTokens, Sequence[str]], str | None]


def _is_unit(word: str) -> bool:
    return word in _UNITS or word in _YEARS


def _is_unit_first(arguments: Sequence[str]) -> bool:
    """Return True if a call has its unit first, in quotes, as in Spark. A column behind it may have the name of a unit."""
    text = arguments[0].lower()
    unit = text[1:-1]
    return text.startswith("'") and text.endswith("'") and (_is_unit(unit) or unit in _SPARKS_OTHER_NAMES)


def _first(value: str, unit: str) -> str:
    """Return Spark SQL for the first moment of the unit that contains a date or time, in the type that Spark gives it."""
    if unit in _UNITS:
        return f"DATE_TRUNC('{_UNITS[unit]}', {value})"
    count, first = _YEARS[unit]
    return f"MAKE_DATE(CAST(FLOOR((YEAR({value}) - {first}) / {count}) * {count} + {first} AS INT), 1, 1)"


def _floor(value: str, unit: str) -> str:
    return f"CAST({_first(value, unit)} AS TIMESTAMP_NTZ)"


def _ceil(value: str, unit: str) -> str:
    first, count, step = _first(value, unit), _YEARS.get(unit, (1, 0))[0], _UNITS.get(unit, "YEAR")
    return f"CAST(CASE WHEN {first} = {value} THEN {first} ELSE TIMESTAMPADD({step}, {count}, {first}) END AS TIMESTAMP_NTZ)"


def _round(walker: TokenWalker, call: CallTokens, arguments: Sequence[str]) -> str | None:
    """Rewrite ``FLOOR(x TO unit)`` and ``CEIL(x TO unit)``."""
    unit = walker.word(call.close - 1)
    if len(arguments) != 1 or walker.word(call.close - 2) != "to" or not _is_unit(unit) or call.close < call.at + 5:
        return None
    value = walker.piece(walker.start(call.at + 2), walker.end(call.close - 3))
    return _floor(value, unit) if call.name == "floor" else _ceil(value, unit)


def _timestamp_trunc(_walker: TokenWalker, _call: CallTokens, arguments: Sequence[str]) -> str | None:
    if len(arguments) != 2 or not _is_unit(arguments[1].lower()) or _is_unit_first(arguments):
        return None
    return _floor(arguments[0], arguments[1].lower())


def _date_trunc(_walker: TokenWalker, _call: CallTokens, arguments: Sequence[str]) -> str | None:
    if len(arguments) != 2 or not _is_unit(arguments[1].lower()) or _is_unit_first(arguments):
        return None
    return f"CAST({_first(arguments[0], arguments[1].lower())} AS DATE)"


def _time_trunc(_walker: TokenWalker, _call: CallTokens, arguments: Sequence[str]) -> str | None:
    if len(arguments) != 2 or arguments[1].lower() not in _UNITS or _is_unit_first(arguments):
        return None
    return f"TIME_TRUNC('{_UNITS[arguments[1].lower()]}', {arguments[0]})"


def of_times(text: str, start: int, end: int) -> Edit | str | None:
    """Round a TIME, or take the difference of two, where Spark has another function for this than for dates.

    :param text: Spark SQL
    :param start: the offset of the call, or of a part of it, that Spark refuses because of a TIME
    :param end: the offset behind it
    :returns: the edit, or a sentence that explains why there is none; None if it is no such call
    """
    walker = TokenWalker(text)
    around = [call for call in walker.calls() if call.start <= start and end <= call.end]
    for call in reversed(around):
        arguments = [walker.piece(*argument) for argument in call.arguments]
        if call.name.lower() == "date_trunc" and len(arguments) == 2:
            unit, value = arguments[0].strip("'").lower(), arguments[1]
            for written, rounded in ((_floor, _time_floor), (_ceil, _time_ceil)):
                rounding = next((outer for outer in around if text[outer.start : outer.end] == written(value, unit)), None)
                if rounding is not None:
                    is_known = unit in _PARTS_OF_DAY
                    return Edit(rounding.start, rounding.end, rounded(value, unit)) if is_known else _no_part("is rounded to", unit)
            return "DATE_TRUNC is of dates: write TIME_TRUNC(time, unit) for a TIME"
        if call.name.lower() in _DIFFERENCES and len(arguments) == 3:
            unit = arguments[0].lower()
            if unit not in _PARTS_OF_DAY:
                return _no_part("differs from another one by", unit)
            return Edit(call.start, call.end, f"TIME_DIFF('{unit.upper()}', {arguments[1]}, {arguments[2]})")
    return None


def _no_part(what: str, unit: str) -> str:
    *most, last = map(str.upper, _PARTS_OF_DAY)
    return f"A TIME {what} {', '.join(most)} or {last}, and not {unit.upper()}"


def _time_floor(value: str, unit: str) -> str:
    return f"TIME_TRUNC('{_UNITS[unit]}', {value})"


def _time_ceil(value: str, unit: str) -> str:
    """Return Spark SQL that rounds a TIME up to a unit; behind the last one of the day it is midnight."""
    length = _PARTS_OF_DAY[unit]
    return f"TIME_FROM_MICROS((TIME_TO_MICROS({value}) + {length - 1}) DIV {length} * {length} % {_DAY})"


TRUNCATIONS: Mapping[str, _Rewrite] = {
    "ceil": _round,
    "ceiling": _round,
    "date_trunc": _date_trunc,
    "floor": _round,
    "time_trunc": _time_trunc,
    "timestamp_trunc": _timestamp_trunc,
}
"""For each function a rewrite that returns Spark SQL for a call, or None if Spark has the call itself."""
