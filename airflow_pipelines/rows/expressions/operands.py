"""Operands of expressions, and the types in which Arrow gives Spark's answers."""

from __future__ import annotations

from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.arrow import ArrowColumn

Operand: TypeAlias = ArrowColumn | pa.Scalar
"""The values of an expression: one for each row, or one for all."""
TRUTH: Final = pa.bool_()
TEXT: Final = pa.string()


class LeftToSpark(Exception):
    """An expression, a type or a value for which only Spark's own evaluation gives Spark's answer."""


def is_null_constant(operand: Operand) -> bool:
    """Return True if an operand is the constant NULL without a type."""
    kind: bool = pa.types.is_null(operand.type)
    return kind


def is_time(kind: pa.DataType) -> bool:
    """Return True if a type is DATE, TIMESTAMP or TIMESTAMP_NTZ."""
    return bool(kind == pa.date32() or (pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz in {None, "UTC"}))


def require_text(operand: Operand) -> Operand:
    """Return an operand whose values are text in UTF-8.

    :param operand: any operand; the constant NULL becomes a NULL of text
    :raises LeftToSpark: if it has another type, or bytes that are no UTF-8, of which Spark counts the characters in its own way
    """
    if is_null_constant(operand):
        return pa.scalar(None, TEXT)
    if operand.type != TEXT:
        raise LeftToSpark(f"{operand.type} is no text")
    if not is_ascii(operand):
        try:
            (pa.array([operand.as_py()], TEXT) if isinstance(operand, pa.Scalar) else operand).validate(full=True)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise LeftToSpark("a text is not UTF-8") from error
    return operand


def is_ascii(operand: Operand) -> bool:
    """Return True if all texts of an operand are ASCII."""
    answer = pc.string_is_ascii(operand)
    return answer.as_py() is not False if isinstance(answer, pa.Scalar) else pc.all(answer).as_py() is not False


def unify(operands: list[Operand]) -> list[Operand]:
    """Cast the operands of a CASE, COALESCE or the like to their common type.

    :param operands: at least one
    :returns: the operands in one type; integers become the widest of their types, NULL becomes any
    :raises LeftToSpark: if Spark would find their common type in another way
    """
    kinds = {operand.type for operand in operands if not is_null_constant(operand)}
    if len(kinds) > 1 and all(map(pa.types.is_signed_integer, kinds)):
        kinds = {max(kinds, key=lambda kind: kind.bit_width)}
    if len(kinds) > 1:
        raise LeftToSpark(f"values of types {', '.join(map(str, kinds))}")
    kind = next(iter(kinds), pa.null())
    return [cast_to(operand, kind) for operand in operands]


def cast_to(operand: Operand, kind: pa.DataType) -> Operand:
    """Cast an operand to a type that has all its values.

    :raises pa.ArrowInvalid: if it has not
    """
    return operand if operand.type == kind else operand.cast(kind)
