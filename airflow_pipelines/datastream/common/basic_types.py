"""Types of single values: numbers, text, dates and times, and anything that can be pickled."""

from __future__ import annotations

import datetime
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from airflow_pipelines.datastream.common.number_text import double_text, float_text
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.datastream.common.type_information import Converter, TypeInformation, misfit


class BasicType(Enum):
    """The basic types, each named after its method of ``Types``."""

    STRING = "STRING"
    BYTE = "BYTE"
    BOOLEAN = "BOOLEAN"
    SHORT = "SHORT"
    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    CHAR = "CHAR"
    BIG_INT = "BIG_INT"
    BIG_DEC = "BIG_DEC"
    SQL_DATE = "SQL_DATE"
    SQL_TIME = "SQL_TIME"
    SQL_TIMESTAMP = "SQL_TIMESTAMP"
    INSTANT = "INSTANT"


@dataclass(frozen=True, repr=False)
class BasicTypeInfo(TypeInformation):
    """A type of single values.

    :param basic_type: the basic type
    """

    basic_type: BasicType

    def converter(self) -> Converter:
        """See :meth:`TypeInformation.converter`."""
        return _CONVERTERS[self.basic_type]

    def _text(self, value: Any) -> str:
        return _TEXTS.get(self.basic_type, str)(value)

    def __repr__(self) -> str:
        return f"Types.{self.basic_type.name}()"


@dataclass(frozen=True, repr=False)
class PickledBytesTypeInfo(TypeInformation):
    """The type of values without a declared type: any value that can be pickled, unchanged."""

    def converter(self) -> Converter:
        """See :meth:`TypeInformation.converter`."""
        return _unchanged

    def to_text(self, value: Any) -> str:
        """Return the ``str`` of a value.

        :param value: the value, or None
        :returns: the text
        """
        return str(value)

    def _text(self, value: Any) -> str:
        return str(value)

    def __repr__(self) -> str:
        return "Types.PICKLED_BYTE_ARRAY()"


def _unchanged(value: Any) -> Any:
    return value


def _wrapping(type_: BasicType, bits: int) -> Converter:
    low, high, span = -(1 << bits - 1), (1 << bits - 1) - 1, 1 << bits

    def convert(value: Any) -> Any:
        if type(value) is not int:
            if value is None:
                return None
            value = _int_of(value, type_)
        return value if low <= value <= high else (value - low) % span + low

    return convert


def _int_of(value: Any, type_: BasicType) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise misfit(
            value, f"Types.{type_.name}()", "it takes an int; use int(...) in the function, or declare another type"
        ) from None


def _long(value: Any) -> Any:
    if value is None:
        return None
    if type(value) is not int:
        value = _int_of(value, BasicType.LONG)
    if -(1 << 63) <= value < 1 << 63:
        return value
    raise misfit(value, "Types.LONG()", "it takes ints of 64 bits; declare Types.BIG_INT()")


def _big_int(value: Any) -> Any:
    return value if value is None or type(value) is int else _int_of(value, BasicType.BIG_INT)


def _boolean(value: Any) -> Any:
    if value is None or value is True or value is False:
        return value
    try:
        return operator.index(value) != 0
    except TypeError:
        raise misfit(value, "Types.BOOLEAN()", "it takes True or False; use bool(...) in the function") from None


def _string(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    raise misfit(value, "Types.STRING()", "it takes a str; use str(...) in the function, or declare another type")


def _char(value: Any) -> Any:
    if value is None or (isinstance(value, str) and len(value) == 1):
        return value
    raise misfit(value, "Types.CHAR()", "it takes a str of one character; declare Types.STRING() for longer ones")


def _double(value: Any) -> Any:
    return value if value is None or type(value) is float else _float_of(value, BasicType.DOUBLE)


def _float(value: Any) -> Any:
    if value is None:
        return None
    number = value if type(value) is float else _float_of(value, BasicType.FLOAT)
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        raise misfit(value, "Types.FLOAT()", "it takes floats of 32 bits; declare Types.DOUBLE()") from None


def _float_of(value: Any, type_: BasicType) -> float:
    if not isinstance(value, str):
        try:
            return float(value)
        except OverflowError:
            raise misfit(value, f"Types.{type_.name}()", "it is too large for a float; declare Types.BIG_DEC()") from None
        except (TypeError, ValueError):
            pass
    raise misfit(
        value, f"Types.{type_.name}()", "it takes a float or an int; use float(...) in the function, or declare another type"
    )


def _big_dec(value: Any) -> Any:
    if value is None or isinstance(value, Decimal):
        return value
    if isinstance(value, int):
        return Decimal(value)
    raise misfit(value, "Types.BIG_DEC()", "it takes a Decimal or an int; use Decimal(str(...)) in the function")


def _date(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.date()
    if value is None or isinstance(value, datetime.date):
        return value
    raise misfit(value, "Types.SQL_DATE()", "it takes a datetime.date; use date.fromisoformat(...) for text")


def _time(value: Any) -> Any:
    if value is None or isinstance(value, datetime.time):
        return value
    raise misfit(value, "Types.SQL_TIME()", "it takes a datetime.time; use time.fromisoformat(...) for text")


def _timestamp(value: Any) -> Any:
    if value is None or (isinstance(value, datetime.datetime) and value.tzinfo is None):
        return value
    takes = "it takes a datetime.datetime without a time zone"
    if isinstance(value, datetime.datetime):
        raise misfit(
            value, "Types.SQL_TIMESTAMP()", f"{takes}; use value.astimezone(UTC).replace(tzinfo=None), or declare Types.INSTANT()"
        )
    raise misfit(value, "Types.SQL_TIMESTAMP()", f"{takes}; use datetime.fromisoformat(...) for text")


def _instant(value: Any) -> Any:
    if value is None or isinstance(value, Instant):
        return value
    if isinstance(value, datetime.datetime):
        return Instant.of_datetime(value)
    raise misfit(value, "Types.INSTANT()", "it takes an Instant or a datetime; use Instant.of_epoch_milli(...) for milliseconds")


def _timestamp_text(value: datetime.datetime) -> str:
    seconds, _, fraction = value.isoformat(sep=" ", timespec="microseconds").partition(".")
    return f"{seconds}.{fraction.rstrip('0') or '0'}"


_CONVERTERS: dict[BasicType, Converter] = {
    BasicType.STRING: _string,
    BasicType.BYTE: _wrapping(BasicType.BYTE, 8),
    BasicType.BOOLEAN: _boolean,
    BasicType.SHORT: _wrapping(BasicType.SHORT, 16),
    BasicType.INT: _wrapping(BasicType.INT, 32),
    BasicType.LONG: _long,
    BasicType.FLOAT: _float,
    BasicType.DOUBLE: _double,
    BasicType.CHAR: _char,
    BasicType.BIG_INT: _big_int,
    BasicType.BIG_DEC: _big_dec,
    BasicType.SQL_DATE: _date,
    BasicType.SQL_TIME: _time,
    BasicType.SQL_TIMESTAMP: _timestamp,
    BasicType.INSTANT: _instant,
}
_TEXTS: dict[BasicType, Callable[[Any], str]] = {
    BasicType.BOOLEAN: lambda value: "true" if value else "false",
    BasicType.FLOAT: float_text,
    BasicType.DOUBLE: double_text,
    BasicType.SQL_TIME: lambda value: value.isoformat(timespec="seconds"),
    BasicType.SQL_TIMESTAMP: _timestamp_text,
}
