"""The common parts of the converters of single values.

A converter turns a parsed value into one that Arrow accepts for a column type, with every range and form checked. It never gets
None, because the row decides whether NULL is allowed. It raises :class:`RecordProblem` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias

from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.rows.types import ColumnType

Converter: TypeAlias = Callable[[Any], Any]

LONGEST_INTEGER: Final = 40
"""The greatest power of ten of an integer. Greater ones fit no type, and expanding them could exhaust the memory."""
DIGITS: Final = Context(prec=60)
"""The context that computes with all digits that a value of any type can have."""


def make_mismatch(what: str, value: Any) -> RecordProblem:
    """Return the error for a value that does not have the type of its column.

    :param what: a description of the expected value
    :param value: the actual value
    """
    return RecordProblem(f"{excerpt(jsontext.dumps_for_message(value), 60)} is not {what}")


def integer_of(value: Any) -> int | None:
    """Return the integer that was read, also if it was written as 5.0, or None for anything else.

    :param value: the parsed value
    """
    if type(value) is int:
        return value
    if type(value) is Decimal and value.adjusted() < LONGEST_INTEGER and value == value.to_integral_value(context=DIGITS):
        return int(value)
    return None


def nullable_converter(convert: Converter, kind: ColumnType, what: str) -> Converter:
    """Make a converter that also takes None.

    :param convert: the converter of values that are not None
    :param kind: the type; None stays None if it is nullable, and is a malformed record otherwise
    :param what: a description of the value, as the beginning of a sentence
    """
    nullable = kind.nullable

    def convert_required(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if nullable:
            return None
        raise RecordProblem(f"{what} must not be NULL")

    return convert_required
