"""Conditions that only compare columns with constants or with each other, evaluated in the driver for types that Arrow compares as
Spark does: whole numbers, decimals, times and texts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, DecimalType

from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.sql.plan.ir.join_graph import Comparison, Conjunct, Operator, SourceColumn

WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_MOST = 2**63 - 1
_DIGITS = 38
"""A decimal has so many digits at most."""
_WHOLE_DIGITS = 20
"""So many digits Spark may give to a whole number that it compares with a decimal."""
COMPARE: Mapping[Operator, Callable[..., pa.ChunkedArray]] = {
    Operator.EQUAL: pc.equal,
    Operator.LESS: pc.less,
    Operator.LESS_OR_EQUAL: pc.less_equal,
    Operator.GREATER: pc.greater,
    Operator.GREATER_OR_EQUAL: pc.greater_equal,
}
"""Arrow's functions; each gives NULL for NULL."""


def can_compare(conjunct: Conjunct, kinds: Mapping[SourceColumn, DataType]) -> bool:
    """Whether Arrow compares as Spark does all that a condition compares.

    :param conjunct: the condition
    :param kinds: the types of all columns
    """
    return bool(conjunct.comparisons) and all(_is_comparable(comparison, kinds) for comparison in conjunct.comparisons)


def _is_comparable(comparison: Comparison, kinds: Mapping[SourceColumn, DataType]) -> bool:
    left, wanted = type_text(kinds[comparison.left]), comparison.right
    if isinstance(wanted, tuple):
        right = type_text(kinds[wanted])
        return {left, right} <= WHOLE_NUMBERS or (left == right and left in _TIMES)
    if isinstance(wanted, date):
        return left == "date"
    if isinstance(kind := kinds[comparison.left], DecimalType):
        return isinstance(wanted, int | Decimal) and _is_exact(kind, Decimal(wanted))
    values = wanted if isinstance(wanted, frozenset) else {wanted}
    if all(isinstance(value, str) for value in values):
        # A type with a collation has its name, too.
        return left == "string"
    return left in WHOLE_NUMBERS and all(isinstance(value, int) and value <= _MOST for value in values)


def _is_exact(kind: DecimalType, number: Decimal) -> bool:
    """Whether a decimal type has a number, and Spark's type for both has all digits of each.

    Spark compares decimals in a type with as many digits on each side of the point as either has, cut where these are too many.
    """
    _, digits, exponent = number.as_tuple()
    scale = -int(exponent)
    whole = len(digits) - scale if scale else max(len(digits), _WHOLE_DIGITS)
    if max(kind.precision - kind.scale, whole) + max(kind.scale, scale) > _DIGITS:
        return False
    shift = kind.scale - scale
    unscaled, rest = divmod(int("".join(map(str, digits))) * 10 ** max(shift, 0), 10 ** max(-shift, 0))
    return not rest and unscaled < 10**kind.precision


def holds(conjuncts: Sequence[Conjunct], values: Mapping[SourceColumn, pa.ChunkedArray]) -> npt.NDArray[np.bool_]:
    """For which rows all of some conditions that :func:`can_compare` are true.

    :param conjuncts: the conditions, at least one
    :param values: the columns that they read
    """
    found = [_compared(comparison, values) for conjunct in conjuncts for comparison in conjunct.comparisons]
    mask: npt.NDArray[np.bool_] = functools.reduce(pc.and_, found).to_numpy()
    return mask


def _compared(comparison: Comparison, values: Mapping[SourceColumn, pa.ChunkedArray]) -> pa.ChunkedArray:
    left = values[comparison.left]
    if pa.types.is_integer(left.type):
        left = left.cast(pa.int64())
    if isinstance(comparison.right, frozenset):
        return pc.is_in(left, pa.array(list(comparison.right), left.type))
    right = (
        values[comparison.right].cast(left.type) if isinstance(comparison.right, tuple) else pa.scalar(comparison.right, left.type)
    )
    # NULL is not true.
    return pc.fill_null(COMPARE[comparison.operator](left, right), False)
