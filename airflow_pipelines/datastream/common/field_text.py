"""Values of basic types as text: ISO forms of dates and times, base64 for bytes."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo
from airflow_pipelines.datastream.common.number_text import double_text, float_text
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.datastream.common.type_information import TypeConversionError

_TRUTH = {"true": True, "false": False}


def reader(type_: BasicTypeInfo) -> Callable[[str], Any]:
    """Return a function that reads a value from text.

    :param type_: the type of the value
    :returns: a function of the text, which raises :class:`TypeConversionError` if it is not such a value
    """
    parse, form = _PARSERS[type_.basic_type]
    convert = type_.converter()

    def read(text: str) -> Any:
        try:
            value = parse(text)
            converted = convert(value)
        except (ValueError, InvalidOperation, KeyError):
            raise TypeConversionError(f"{text!r:.80} is no {form}, which {type_!r} needs") from None
        if isinstance(value, int) and converted != value:
            raise TypeConversionError(f"{text:.80} is out of the range of {type_!r}")
        return converted

    return read


def writer(type_: BasicTypeInfo) -> Callable[[Any], str]:
    """Return a function that writes a value as text.

    :param type_: the type of the value
    :returns: a function of a value of this type, not None
    """
    return _WRITERS.get(type_.basic_type, str)


def _local_time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(text).replace(tzinfo=None)


def _local_timestamp(text: str) -> datetime.datetime:
    value = datetime.datetime.fromisoformat(text)
    return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def _instant(text: str) -> Instant:
    return Instant.of_datetime(datetime.datetime.fromisoformat(text))


_PARSERS: dict[BasicType, tuple[Callable[[str], Any], str]] = {
    BasicType.STRING: (str, "text"),
    BasicType.CHAR: (str, "character"),
    BasicType.BOOLEAN: (lambda text: _TRUTH[text.strip().lower()], "'true' or 'false'"),
    BasicType.BYTE: (int, "int"),
    BasicType.SHORT: (int, "int"),
    BasicType.INT: (int, "int"),
    BasicType.LONG: (int, "int"),
    BasicType.BIG_INT: (int, "int"),
    BasicType.FLOAT: (float, "number"),
    BasicType.DOUBLE: (float, "number"),
    BasicType.BIG_DEC: (Decimal, "number"),
    BasicType.SQL_DATE: (datetime.date.fromisoformat, "date such as 2021-02-03"),
    BasicType.SQL_TIME: (_local_time, "time such as 04:05:06"),
    BasicType.SQL_TIMESTAMP: (_local_timestamp, "timestamp such as 2021-02-03 04:05:06"),
    BasicType.INSTANT: (_instant, "timestamp such as 2021-02-03T04:05:06Z"),
}
_WRITERS: dict[BasicType, Callable[[Any], str]] = {
    BasicType.BOOLEAN: lambda value: "true" if value else "false",
    BasicType.FLOAT: float_text,
    BasicType.DOUBLE: double_text,
    BasicType.SQL_TIME: lambda value: value.isoformat(),
    BasicType.SQL_TIMESTAMP: lambda value: value.isoformat(sep=" "),
}
