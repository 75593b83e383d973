"""Arithmetic, comparisons and casts whose answers in Arrow are Spark's.

The types of decimal results follow Spark's documentation of arithmetic with decimals (sql-ref-ansi-compliance). Where they would
need more than 38 digits Spark gives up digits, which is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from airflow_pipelines.rows.expressions.operands import TEXT, TRUTH, LeftToSpark, Operand, cast_to, is_null_constant, is_time

_MAX_DIGITS: Final = 38
_MAX_SIGNED_DIGITS: Final = 34
"""The digits to which Spark rounds a decimal whose sign it changes."""
_DIGITS: Final[Mapping[pa.DataType, int]] = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""The digits of the decimal type as which Spark takes an integer type."""
_TYPES: Final[Mapping[exp.DType, pa.DataType]] = {
    exp.DType.BOOLEAN: TRUTH,
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.TEXT: TEXT,
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"(\d*)\.(\d*)")
_DAY: Final = re.compile(r"(?!0000)\d{4}-\d{2}-\d{2}")
_MOMENT: Final = re.compile(rf"{_DAY.pattern} \d{{2}}:\d{{2}}:\d{{2}}(\.\d{{1,6}})?")


def number(text: str) -> pa.Scalar:
    """Return the number of a literal in the type that Spark gives it.

    :param text: digits, with a decimal point perhaps
    :raises LeftToSpark: if it is a floating point number, or too large
    """
    if text.isdecimal() and text.isascii():
        value = int(text)
        kind = next((kind for kind in (pa.int32(), pa.int64()) if value < 2 ** (kind.bit_width - 1)), None)
        if kind is None:
            raise LeftToSpark(text)
        return pa.scalar(value, kind)
    written = _DECIMAL.fullmatch(text)
    if written is None or not written[1] + written[2]:
        raise LeftToSpark(text)
    scale = len(written[2])
    digits = max(len((written[1] + written[2]).lstrip("0")), scale, 1)
    if digits > _MAX_DIGITS:
        raise LeftToSpark(text)
    return pa.scalar(text if written[1] else f"0{text}").cast(pa.decimal128(digits, scale))


def comparable(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Cast two operands to a type in which Arrow compares their values as Spark does.

    :raises LeftToSpark: if there is no such type: floating point numbers have a NaN, which Spark puts above all others
    """
    kinds = {left.type, right.type}
    if kinds <= _DIGITS.keys():
        return left.cast(pa.int64()), right.cast(pa.int64())
    if all(map(_is_exact, kinds)):
        kind = _union(_decimal_of(left.type), _decimal_of(right.type))
        return left.cast(kind), right.cast(kind)
    if len(kinds) == 1 and (left.type in {TEXT, TRUTH} or is_time(left.type)):
        return left, right
    raise LeftToSpark(f"{left.type} is compared with {right.type}")


def _is_exact(kind: pa.DataType) -> bool:
    return kind in _DIGITS or pa.types.is_decimal128(kind)


def _decimal_of(kind: pa.DataType) -> pa.Decimal128Type:
    return pa.decimal128(_DIGITS[kind], 0) if kind in _DIGITS else kind


def _union(one: pa.Decimal128Type, other: pa.Decimal128Type) -> pa.Decimal128Type:
    scale = max(one.scale, other.scale)
    return _decimal_type(max(one.precision - one.scale, other.precision - other.scale) + scale, scale)


def _decimal_type(digits: int, scale: int) -> pa.Decimal128Type:
    if digits > _MAX_DIGITS:
        raise LeftToSpark(f"{digits} digits")
    return pa.decimal128(digits, scale)


def calculate(function: str, left: Operand, right: Operand) -> Operand:
    """Add, subtract or multiply integers and decimals.

    :param function: ``add``, ``subtract`` or ``multiply``
    :param left: a number; an integer literal beside a decimal has the type of a decimal with its digits
    :param right: see ``left``
    :raises LeftToSpark: if one is another type
    :raises pa.ArrowInvalid: if a result does not fit its type
    """
    kinds = {left.type, right.type}
    if kinds <= _DIGITS.keys():
        kind = max(kinds, key=lambda each: each.bit_width)
        result: Operand = pc.call_function(f"{function}_checked", [cast_to(left, kind), cast_to(right, kind)])
        return result
    if not all(map(_is_exact, kinds)):
        raise LeftToSpark(f"{function} of {left.type} and {right.type}")
    one, other = _decimal_of(left.type), _decimal_of(right.type)
    if function == "multiply":
        _decimal_type(one.precision + other.precision + 1, one.scale + other.scale)
    else:
        one = other = _union(one, other)
        _decimal_type(one.precision + 1, one.scale)
    exact: Operand = pc.call_function(function, [cast_to(left, one), cast_to(right, other)])
    return exact


def literal_decimal(literal: pa.Scalar) -> pa.Scalar:
    """Return an integer literal as Spark takes it beside a decimal.

    :param literal: an integer
    """
    value = literal.as_py()
    return pa.scalar(Decimal(value), pa.decimal128(len(str(abs(value))), 0))


def change_sign(operand: Operand, function: Callable[[Operand], Operand]) -> Operand:
    """Negate numbers, or take their absolute values.

    :param operand: integers or decimals
    :param function: Arrow's function, which fails for the least integer
    """
    kind = operand.type
    if not _is_exact(kind) or (pa.types.is_decimal(kind) and kind.precision > _MAX_SIGNED_DIGITS):
        raise LeftToSpark(f"the sign of {kind}")
    return function(operand)


def arrow_type(kind: exp.DataType) -> pa.DataType:
    """Return the Arrow type of a type in SQL.

    :raises LeftToSpark: for types that are not among those of :mod:`airflow_pipelines.rows.expressions`
    """
    if kind.args.get("collate"):
        raise LeftToSpark(kind.sql())
    if kind.this is exp.DType.DECIMAL:
        digits, scale = [*(int(part.this.name) for part in kind.expressions), *(10, 0)[len(kind.expressions) :]]
        return _decimal_type(digits, scale)
    if kind.this not in _TYPES or kind.expressions:
        raise LeftToSpark(kind.sql())
    return _TYPES[kind.this]


def literal_time(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return the time that a text stands for.

    :param text: such as ``2026-01-31`` or ``2026-01-31 10:11:12.5``
    :param kind: DATE, TIMESTAMP or TIMESTAMP_NTZ
    :raises LeftToSpark: if it is written in another way
    """
    pattern = _DAY if kind == pa.date32() else _MOMENT
    if not text.isascii() or pattern.fullmatch(text) is None:
        raise LeftToSpark(text)
    return pa.scalar(text).cast(pa.date32()) if pattern is _DAY else pa.scalar(text).cast(pa.timestamp("us")).cast(kind)


def cast(operand: Operand, kind: pa.DataType) -> Operand:
    """Cast numbers, and numbers and dates to text.

    :param operand: values
    :param kind: the type that is wanted
    :raises LeftToSpark: if Spark has rules of its own for these types
    :raises pa.ArrowInvalid: if a value does not fit the type, or would lose digits
    """
    given = operand.type
    if given == kind or is_null_constant(operand):
        return cast_to(operand, kind)
    is_number = _is_exact(given) and _is_exact(kind)
    is_text = kind == TEXT and (given in _DIGITS or given in {TRUTH, pa.date32()})
    if not is_number and not is_text and not (given == TRUTH and kind in _DIGITS):
        raise LeftToSpark(f"{given} as {kind}")
    if given in _DIGITS and pa.types.is_decimal128(kind):
        # Arrow wants room for all values of the integer type, also where there are none.
        operand = operand.cast(pa.decimal128(_MAX_DIGITS, kind.scale))
    return operand.cast(kind)
