"""Single values: from JSON or text to what Arrow takes for a column type, with every range and form checked.

A converter never gets None: whether NULL is allowed is the row's business. It raises :class:`RecordProblem` with the reason.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from airflow_pipelines.connectors.formats import jsontext, variant
from airflow_pipelines.connectors.formats.flavors import DEFAULT_FORMS, BinaryForm, ValueForms
from airflow_pipelines.connectors.formats.intervals import interval_converter
from airflow_pipelines.connectors.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.program.column_types import UNSIGNED_MAXIMA, ColumnType

Converter = Callable[[Any], Any]

INTEGER_RANGES = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    **{name: (0, most) for name, most in UNSIGNED_MAXIMA.items()},
}
"""The least and the greatest value of each integer type."""
REAL_OVERFLOW = float.fromhex("0x1.ffffffp+127")
"""From this magnitude on a number rounds to an infinite REAL. The greatest REAL, written in its shortest text, lies just below."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?) ?([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_EPOCH = dt.datetime(1970, 1, 1)
_DIGITS = Context(prec=60)
_UNIT_NAMES = {1: "microseconds", 1_000: "milliseconds", 86_400_000_000: "days"}
_LONGEST_INTEGER = 40
"""Powers of ten beyond this fit no type, and expanding them could take all memory."""


def json_converter(kind: ColumnType, forms: ValueForms = DEFAULT_FORMS) -> Converter:
    """A converter from parsed JSON (floats parsed as Decimal) to values of ``kind``.

    :param kind: the type
    :param forms: how values are written besides the usual way
    :raises RecordProblem: at once, when values of ``kind`` cannot be read
    """
    name = kind.name
    if kind.component is not None:
        return _list_converter(kind.component, forms)
    if kind.key is not None and kind.value is not None:
        return _map_converter(kind.key, kind.value, forms)
    if kind.fields is not None:
        return _struct_converter(kind.fields, forms)
    if name in INTEGER_RANGES:
        return _integer_converter(name)
    if name == "DECIMAL":
        return _decimal_converter(kind)
    if name in {"REAL", "DOUBLE"}:
        return _float_converter(name)
    if name in {"VARCHAR", "CHAR"}:
        return _string_converter(kind)
    if name in {"BINARY", "VARBINARY"}:
        return _binary_converter(kind, forms.binary)
    if kind.is_interval:
        return interval_converter(kind)
    simple: dict[str, Converter] = {
        "BOOLEAN": _boolean,
        "UUID": _uuid,
        "VARIANT": _variant_text if forms.variants_are_texts else variant.encode,
        "DATE": _from_text(_date, "a date as 'YYYY-MM-DD'"),
        "TIME": _from_text(_time, "a time as 'HH:MM:SS[.f]'"),
        "TIMESTAMP": _from_text(_timestamp, "a timestamp as 'YYYY-MM-DD HH:MM:SS[.f]'"),
        "TIMESTAMP_TZ": _from_text(_timestamp_tz, "a timestamp as 'YYYY-MM-DD HH:MM:SS[.f]'"),
    }
    numeric: dict[str, tuple[int | None, Callable[[dt.timedelta], Any]]] = {
        "DATE": (forms.date, lambda since: (_EPOCH + since).date()),
        "TIME": (forms.time, _time_of_day),
        "TIMESTAMP": (forms.timestamp, lambda since: _EPOCH + since),
        "TIMESTAMP_TZ": (forms.timestamp, lambda since: (_EPOCH + since).replace(tzinfo=dt.UTC)),
    }
    unit, make = numeric.get(name, (None, None))
    if unit is not None and make is not None:
        return _or_number(unit, make, simple[name])
    if name in simple:
        return simple[name]
    raise RecordProblem(f"values of type {name} cannot be read from an input")


def text_converter(kind: ColumnType) -> Converter:
    """A converter from text, as a CSV field or a map's key holds it, to values of ``kind``.

    Arrays, maps, structs, binary and variant values are written as JSON. Blanks around anything but a string are ignored.

    :raises RecordProblem: at once, when values of ``kind`` cannot be read
    """
    name = kind.name
    convert = json_converter(kind)
    if name in {"VARCHAR", "CHAR"}:
        return convert
    if name in INTEGER_RANGES or name in {"DECIMAL", "REAL", "DOUBLE"}:
        return lambda text: convert(_number(text.strip(" \t")))
    if name == "BOOLEAN":
        return _boolean_text
    if name in {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_TZ", "UUID"} or kind.is_interval:
        return lambda text: convert(text.strip(" \t"))

    def from_json(text: str) -> Any:
        try:
            value = jsontext.loads(text)
        except jsontext.MALFORMED as error:
            raise RecordProblem(f"{excerpt(text)!r} is not JSON, which {name} values are written as: {error}") from error
        return None if value is None and name != "VARIANT" else convert(value)

    return from_json


def is_null_text(text: str) -> bool:
    """Whether a CSV field stands for NULL in a column that is not a string."""
    return text.strip(" \t") in {"", "NULL", "null"}


def _wanted(what: str, value: Any) -> RecordProblem:
    return RecordProblem(f"{excerpt(jsontext.shown(value), 60)} is not {what}")


def _number(text: str) -> Any:
    if not _NUMBER.fullmatch(text):
        raise RecordProblem(f"{excerpt(text, 60)!r} is not a number")
    return Decimal(text)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _wanted("true or false", value)


def _boolean_text(text: str) -> bool:
    word = text.strip(" \t").lower()
    if word in {"true", "false"}:
        return word == "true"
    raise RecordProblem(f"{excerpt(text, 60)!r} is not true or false")


def _integer_converter(name: str) -> Converter:
    least, most = INTEGER_RANGES[name]
    written = str(ColumnType(name))

    def convert(value: Any) -> int:
        number = value
        if type(number) is Decimal and number.adjusted() < _LONGEST_INTEGER:
            # Writers without integers of their own put 5.0; anything with a fraction is a mistake.
            number = int(number) if number == number.to_integral_value(context=_DIGITS) else None
        if type(number) is not int:
            raise _wanted(f"an integer ({written})", value)
        if not least <= number <= most:
            raise RecordProblem(f"{excerpt(str(number), 60)} is out of range for {written}")
        return number

    return convert


def _decimal_converter(kind: ColumnType) -> Converter:
    precision, scale = kind.precision or 38, kind.scale or 0
    quantum = Decimal(1).scaleb(-scale)
    bound = Decimal(10) ** (precision - scale)

    def convert(value: Any) -> Decimal:
        if type(value) is int:
            number = Decimal(value)
        elif type(value) is Decimal:
            number = value
        elif isinstance(value, str):
            number = _number(value.strip(" \t"))
        else:
            raise _wanted(f"a number (DECIMAL({precision},{scale}))", value)
        if number.adjusted() < _LONGEST_INTEGER:
            try:
                number = number.quantize(quantum, ROUND_HALF_UP, _DIGITS)
            except InvalidOperation:
                number = bound
        # Not abs(), which would round and may overflow.
        if number.copy_abs() >= bound:
            raise RecordProblem(f"{excerpt(str(value), 60)} is out of range for DECIMAL({precision},{scale})")
        return number

    return convert


def _float_converter(name: str) -> Converter:
    overflow = REAL_OVERFLOW if name == "REAL" else math.inf

    def convert(value: Any) -> float:
        if type(value) is not int and type(value) is not Decimal:
            raise _wanted(f"a number ({name})", value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if abs(number) >= overflow:
            raise RecordProblem(f"{excerpt(str(value), 60)} is out of range for {name}")
        return number

    return convert


def _string_converter(kind: ColumnType) -> Converter:
    length = kind.precision
    pads = kind.name == "CHAR"

    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise _wanted("a string", value)
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise RecordProblem(f"{excerpt(value, 60)!r} is not valid UTF-8 text") from error
        if length is not None and len(value) > length:
            raise RecordProblem(f"{excerpt(value, 60)!r} is longer than {kind.name}({length})")
        return value.ljust(length) if pads and length is not None else value

    return convert


def _binary_converter(kind: ColumnType, form: BinaryForm) -> Converter:
    length = kind.precision

    def convert(value: Any) -> bytes:
        data = _bytes(value, form)
        if length is not None and len(data) > length:
            raise RecordProblem(f"{len(data)} bytes are more than {kind.name}({length}) holds")
        return data.ljust(length, b"\0") if kind.name == "BINARY" and length is not None else data

    return convert


def _bytes(value: Any, form: BinaryForm) -> bytes:
    if isinstance(value, list) and all(type(byte) is int and 0 <= byte <= 255 for byte in value):
        return bytes(value)
    if isinstance(value, str) and form is not BinaryForm.NUMBERS:
        try:
            return form.read(value)
        except ValueError:
            pass
    raise _wanted(form.value, value)


def _variant_text(value: Any) -> Any:
    """JSON within a text; what is no text is taken as it is."""
    if not isinstance(value, str):
        return variant.encode(value)
    try:
        return variant.encode(jsontext.loads(value))
    except jsontext.MALFORMED as error:
        raise RecordProblem(f"{excerpt(value)!r} is not JSON: {error}") from error


def _uuid(value: Any) -> str:
    if isinstance(value, str):
        try:
            # Only the usual form: Python's class would also take braces, URNs and odd hyphens.
            if len(value) == 36 and str(UUID(value)) == value.lower():
                return value.lower()
        except ValueError:
            pass
    raise _wanted("a UUID", value)


def _from_text(read: Callable[[str], Any], what: str) -> Converter:
    def convert(value: Any) -> Any:
        if isinstance(value, str):
            try:
                return read(value.strip())
            except (ValueError, OverflowError):
                pass
        raise _wanted(what, value)

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


def _or_number(unit: int, make: Callable[[dt.timedelta], Any], otherwise: Converter) -> Converter:
    """A converter of numbers, of which one is ``unit`` microseconds, and of what ``otherwise`` takes."""

    def convert(value: Any) -> Any:
        if type(value) is Decimal and value.adjusted() < _LONGEST_INTEGER and value == value.to_integral_value(context=_DIGITS):
            value = int(value)
        if type(value) is not int:
            return otherwise(value)
        try:
            return make(dt.timedelta(microseconds=value * unit))
        except (OverflowError, ValueError) as error:
            raise RecordProblem(f"{excerpt(str(value), 60)} {_UNIT_NAMES[unit]} are out of range") from error

    return convert


def _time_of_day(since_midnight: dt.timedelta) -> dt.time:
    if not dt.timedelta(0) <= since_midnight < dt.timedelta(days=1):
        raise ValueError(since_midnight)
    return (_EPOCH + since_midnight).time()


def _list_converter(component: ColumnType, forms: ValueForms) -> Converter:
    element = nullable_converter(json_converter(component, forms), component, "an element")

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _wanted("an array", value)
        return [element(item) for item in value]

    return convert


def _map_converter(key_kind: ColumnType, value_kind: ColumnType, forms: ValueForms) -> Converter:
    key = text_converter(key_kind)
    item = nullable_converter(json_converter(value_kind, forms), value_kind, "a map's value")

    def convert(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, dict):
            raise _wanted("a map, written as a JSON object", value)
        pairs = [(key(name), item(content)) for name, content in value.items()]
        if any(name is None for name, _ in pairs):
            raise RecordProblem("a map's key must not be NULL")
        if len({_comparable(name) for name, _ in pairs}) < len(pairs):
            raise RecordProblem(f"the map {excerpt(jsontext.shown(value), 60)} has a key twice")
        return pairs

    return convert


def _comparable(value: Any) -> Any:
    """A converted value in a form that can be hashed and is the same for values that are stored as one."""
    if isinstance(value, float):
        # The two zeros are stored as one.
        return value + 0.0
    if isinstance(value, dict):
        return tuple(_comparable(part) for part in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(_comparable(part) for part in value)
    return value


def _struct_converter(fields: tuple[tuple[str, ColumnType], ...], forms: ValueForms) -> Converter:
    readers = [(name, nullable_converter(json_converter(kind, forms), kind, f"field {name!r}")) for name, kind in fields]

    def convert(value: Any) -> dict[str, Any]:
        if isinstance(value, list) and len(value) == len(readers):
            return {name: read(item) for (name, read), item in zip(readers, value, strict=True)}
        if not isinstance(value, dict):
            raise _wanted("a struct, written as a JSON object", value)
        folded = {name.lower(): item for name, item in value.items()}
        return {name: read(value[name] if name in value else folded.get(name.lower())) for name, read in readers}

    return convert


def nullable_converter(convert: Converter, kind: ColumnType, what: str) -> Converter:
    """A converter that also takes None.

    :param convert: converts values that are not None
    :param kind: the type; None stays None where it is nullable, and is a malformed record elsewhere
    :param what: what the value is, as the beginning of a sentence
    """
    nullable = kind.nullable

    def converted(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if nullable:
            return None
        raise RecordProblem(f"{what} must not be NULL")

    return converted
