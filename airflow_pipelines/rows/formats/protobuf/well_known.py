"""Types of messages that represent values of columns: points in time, dates, decimal numbers, single values."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from google.protobuf import json_format

from airflow_pipelines.rows.formats import variant
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.types import BINARIES, FLOATS, INTEGERS, TEXTS, TIMESTAMPS

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_S: Final = -62_135_596_800
"""The first second of the year 1, since the epoch."""
_LAST_S: Final = 253_402_300_799
_MOST_S: Final = 315_576_000_000
"""The longest duration of Protobuf in seconds."""
_NANOS: Final = 1_000_000_000
_DAY_HOURS: Final = 24
_MOST_SCALE: Final = 1_000


@dataclass(frozen=True, slots=True)
class WellKnown:
    """A type whose messages represent values.

    :param kind: the Arrow type of the values
    :param read: the function that returns the value of a message
    :param write: the function that writes a Python value of Arrow into a new message
    :param columns: the names of the types of columns that can be written; empty if none can
    """

    kind: pa.DataType
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]
    columns: Set[str]


def _read_timestamp(message: Any) -> int:
    if not _FIRST_S <= message.seconds <= _LAST_S or not 0 <= message.nanos < _NANOS:
        raise RecordProblem(f"{message.seconds} seconds and {message.nanos} nanoseconds are no google.protobuf.Timestamp")
    return int(message.seconds * 1_000_000 + message.nanos // 1000)


def _write_timestamp(message: Any, value: dt.datetime) -> None:
    since = (value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)) - _EPOCH
    message.seconds = since.days * 86_400 + since.seconds
    message.nanos = since.microseconds * 1000


def _read_duration(message: Any) -> int:
    if abs(message.seconds) > _MOST_S or abs(message.nanos) >= _NANOS or message.seconds * message.nanos < 0:
        raise RecordProblem(f"{message.seconds} seconds and {message.nanos} nanoseconds are no google.protobuf.Duration")
    nanos = message.seconds * _NANOS + message.nanos
    # Digits after the microsecond are truncated towards zero.
    return int(nanos // 1000 if nanos >= 0 else -(-nanos // 1000))


def _read_date(message: Any) -> dt.date:
    try:
        return dt.date(message.year, message.month, message.day)
    except (ValueError, OverflowError):
        raise RecordProblem(
            f"year {message.year}, month {message.month} and day {message.day} are no date, as google.type.Date has to be here"
        ) from None


def _write_date(message: Any, value: dt.date) -> None:
    message.year, message.month, message.day = value.year, value.month, value.day


def _read_time(message: Any) -> dt.time:
    try:
        return dt.time(message.hours, message.minutes, message.seconds, message.nanos // 1000)
    except (ValueError, OverflowError):
        raise RecordProblem(
            f"{message.hours}:{message.minutes}:{message.seconds} and {message.nanos} nanoseconds are no time of day, as "
            "google.type.TimeOfDay has to be here"
        ) from None


def _write_time(message: Any, value: dt.time) -> None:
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond * 1000


def _read_decimal(message: Any) -> str:
    if abs(message.scale) > _MOST_SCALE:
        raise RecordProblem(f"a confluent.type.Decimal with the scale {message.scale} fits into no column")
    number = int.from_bytes(message.value, "big", signed=True)
    return format(Decimal((number < 0, tuple(int(digit) for digit in str(abs(number))), -message.scale)), "f")


def _write_decimal(message: Any, value: Decimal | int) -> None:
    parts = Decimal(value).as_tuple()
    scale = -int(parts.exponent)
    number = int("".join(map(str, parts.digits))) * (-1 if parts.sign else 1)
    message.value = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    message.precision, message.scale = max(len(parts.digits), scale), scale


def _write_decimal_text(message: Any, value: Decimal | int) -> None:
    message.value = format(Decimal(value), "f")


def _read_json(message: Any) -> str:
    try:
        return json.dumps(json_format.MessageToDict(message), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (json_format.SerializeToJsonError, ValueError) as error:
        raise RecordProblem(f"a {message.DESCRIPTOR.full_name} cannot be written as JSON: {error}") from None


def _write_json(message: Any, value: Any) -> None:
    try:
        json_format.Parse(value if isinstance(value, str) else variant.to_json(value), message)
    except json_format.ParseError as error:
        raise ValueError(f"it is no JSON that a {message.DESCRIPTOR.full_name} can be: {error}") from error


def _read_value(message: Any) -> Any:
    return message.value


def _write_value(message: Any, value: Any) -> None:
    message.value = int(value) if isinstance(value, Decimal) else value


_TEXTS: Final = TEXTS | {"UUID"}
_NUMBERS: Final = INTEGERS | {"DECIMAL"}
_JSON: Final = frozenset({"VARIANT", "VARCHAR"})


def _wrapper(kind: pa.DataType, columns: Set[str]) -> WellKnown:
    return WellKnown(kind, _read_value, _write_value, columns)


def _refuse_write(_: Any, value: Any) -> None:
    raise TypeError(f"{value!r} cannot be written")


WELL_KNOWN: Final[Mapping[str, WellKnown]] = {
    "google.protobuf.Timestamp": WellKnown(pa.timestamp("us", "UTC"), _read_timestamp, _write_timestamp, TIMESTAMPS),
    "google.protobuf.Duration": WellKnown(pa.duration("us"), _read_duration, _refuse_write, frozenset()),
    "google.protobuf.Struct": WellKnown(pa.string(), _read_json, _write_json, _JSON),
    "google.protobuf.Value": WellKnown(pa.string(), _read_json, _write_json, _JSON),
    "google.protobuf.ListValue": WellKnown(pa.string(), _read_json, _write_json, _JSON),
    "google.protobuf.BoolValue": _wrapper(pa.bool_(), frozenset({"BOOLEAN"})),
    "google.protobuf.Int32Value": _wrapper(pa.int32(), INTEGERS),
    "google.protobuf.Int64Value": _wrapper(pa.int64(), INTEGERS),
    "google.protobuf.UInt32Value": _wrapper(pa.uint32(), INTEGERS),
    "google.protobuf.UInt64Value": _wrapper(pa.uint64(), INTEGERS),
    "google.protobuf.FloatValue": _wrapper(pa.float32(), FLOATS),
    "google.protobuf.DoubleValue": _wrapper(pa.float64(), FLOATS),
    "google.protobuf.StringValue": _wrapper(pa.string(), _TEXTS),
    "google.protobuf.BytesValue": _wrapper(pa.binary(), BINARIES),
    "google.type.Date": WellKnown(pa.date32(), _read_date, _write_date, frozenset({"DATE"})),
    "google.type.TimeOfDay": WellKnown(pa.time64("us"), _read_time, _write_time, frozenset({"TIME"})),
    "google.type.Decimal": WellKnown(pa.string(), _read_value, _write_decimal_text, _NUMBERS),
    "confluent.type.Decimal": WellKnown(pa.string(), _read_decimal, _write_decimal, _NUMBERS),
}
"""The well-known types by their full names."""
