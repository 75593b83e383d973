"""The parts that all converters of single values have in common.

A converter makes of what a parser has read what Arrow takes for a column type, with every range and form checked. It never gets
None: whether NULL is allowed is the row's business. It raises :class:`RecordProblem` with the reason.
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
"""Powers of ten beyond this fit no type, and expanding them could take all memory."""
DIGITS: Final = Context(prec=60)
"""Computes with all digits that a value of any type can have."""


def wanted(what: str, value: Any) -> RecordProblem:
    """Describe a value that is not of the type of its column.

    :param what: what it takes
    :param value: what there is
    """
    return RecordProblem(f"{excerpt(jsontext.shown(value), 60)} is not {what}")


def integer_of(value: Any) -> int | None:
    """Return the integer that was read, also where it was written as 5.0; None for anything else.

    :param value: what was read
    """
    if type(value) is int:
        return value
    if type(value) is Decimal and value.adjusted() < LONGEST_INTEGER and value == value.to_integral_value(context=DIGITS):
        return int(value)
    return None


def nullable_converter(convert: Converter, kind: ColumnType, what: str) -> Converter:
    """Make a converter that also takes None.

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
