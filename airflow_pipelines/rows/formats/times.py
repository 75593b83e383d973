"""Converters of dates, times and timestamps, from texts and from numbers of a unit."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any, Final

from airflow_pipelines.rows.formats.converting import Converter, integer_of, make_mismatch
from airflow_pipelines.rows.formats.flavors import ValueForms
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt

_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?) ?([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_TIMESTAMP_FORM: Final = "a timestamp as 'YYYY-MM-DD HH:MM:SS[.f]'"
_EPOCH: Final = dt.datetime(1970, 1, 1)
_UNIT_NAMES: Final = {1: "microseconds", 1_000: "milliseconds", 86_400_000_000: "days"}


def times_converter(name: str, forms: ValueForms) -> Converter:
    """Make a converter of texts, and of numbers if the flavor writes numbers, to values of a type.

    :param name: the type, one of :data:`~airflow_pipelines.rows.types.TEMPORALS`
    :param forms: the forms, with the units of dates, times and timestamps that are numbers
    """
    match name:
        case "DATE":
            return _converter(_from_text(_date, "a date as 'YYYY-MM-DD'"), forms.date, lambda since: (_EPOCH + since).date())
        case "TIME":
            return _converter(_from_text(_time, "a time as 'HH:MM:SS[.f]'"), forms.time, _time_of_day)
        case "TIMESTAMP":
            return _converter(_from_text(_timestamp, _TIMESTAMP_FORM), forms.timestamp, lambda since: _EPOCH + since)
    zoned = _from_text(_timestamp_tz, _TIMESTAMP_FORM)
    return _converter(zoned, forms.timestamp, lambda since: (_EPOCH + since).replace(tzinfo=dt.UTC))


def _converter(of_text: Converter, unit: int | None, make: Callable[[dt.timedelta], Any]) -> Converter:
    """Make a converter of the values that ``of_text`` accepts and, if there is a unit, of numbers in that unit, in microseconds."""
    if unit is None:
        return of_text

    def convert(value: Any) -> Any:
        number = integer_of(value)
        if number is None:
            return of_text(value)
        try:
            return make(dt.timedelta(microseconds=number * unit))
        except (OverflowError, ValueError) as error:
            raise RecordProblem(f"{excerpt(str(number), 60)} {_UNIT_NAMES[unit]} are out of range") from error

    return convert


def _from_text(read: Callable[[str], Any], what: str) -> Converter:
    def convert(value: Any) -> Any:
        if isinstance(value, str):
            try:
                return read(value.strip())
            except (ValueError, OverflowError):
                pass
        raise make_mismatch(what, value)

    return convert


def _date(text: str) -> dt.date:
    match = _DATE.fullmatch(text)
    if not match:
        raise ValueError(text)
    return dt.date(int(match[1]), int(match[2]), int(match[3]))


def _time(text: str) -> dt.time:
    match = _TIME.fullmatch(text)
    if not match:
        raise ValueError(text)
    return dt.time(int(match[1]), int(match[2]), int(match[3]), int((match[4] or "0").ljust(6, "0")[:6]))


def _timestamp(text: str) -> dt.datetime:
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        raise ValueError(text)
    moment = dt.datetime.combine(_date(match[1]), _time(match[2] or "00:00:00"))
    zone = match[3]
    if zone is None or zone in "Zz":
        return moment
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    offset = dt.timedelta(hours=hours, minutes=minutes)
    return moment - offset if zone[0] == "+" else moment + offset


def _timestamp_tz(text: str) -> dt.datetime:
    return _timestamp(text).replace(tzinfo=dt.UTC)


def _time_of_day(since_midnight: dt.timedelta) -> dt.time:
    if not dt.timedelta(0) <= since_midnight < dt.timedelta(days=1):
        raise ValueError(since_midnight)
    return (_EPOCH + since_midnight).time()
