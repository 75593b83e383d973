"""Whether two systems gave the same answer to a query, whatever types each of them gives a number."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import pyarrow as pa

_RELATIVE, _ABSOLUTE = 1e-6, 2e-6
"""How far two numbers may be apart: a mean of decimals is rounded to six places in one system, and is a float in another."""


def difference(ours: pa.Table, theirs: pa.Table) -> str | None:
    """Describe the difference of two answers, or return None if they are equal as bags of rows.

    Whole numbers, texts and times must be equal; decimals and floats may differ by the rounding of one more operation.

    :param ours: one answer
    :param theirs: the other one, with its columns in the same order; their names do not count
    """
    if (ours.num_columns, ours.num_rows) != (theirs.num_columns, theirs.num_rows):
        return f"{ours.num_rows} rows of {ours.num_columns} columns against {theirs.num_rows} of {theirs.num_columns}"
    numbers = range(ours.num_columns)
    rounded = {at for at in numbers if _may_be_rounded(ours.column(at).type) or _may_be_rounded(theirs.column(at).type)}
    first, second = _in_order(ours, rounded), _in_order(theirs, rounded)
    differing = [
        ours.column_names[at]
        for at in numbers
        if not (_close(first.column(at), second.column(at)) if at in rounded else first.column(at).equals(second.column(at)))
    ]
    return f"other values of {', '.join(differing)}" if differing else None


def _may_be_rounded(kind: Any) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def _in_order(answer: pa.Table, rounded: Set[int]) -> pa.Table:
    """Sort the rows by their exact columns first, because rows whose rounded numbers are nearly equal may change places."""
    columns = [_plain(column, at in rounded) for at, column in enumerate(answer.columns)]
    table = pa.table(columns, names=[str(at) for at in range(len(columns))])
    names = sorted(range(len(columns)), key=lambda at: at in rounded)
    return table.sort_by([(str(at), "ascending") for at in names])


def _plain(column: Any, is_rounded: bool) -> Any:
    """Cast a column to the common type of both systems."""
    kind = column.type
    if is_rounded:
        return column.cast(pa.float64(), safe=False)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us"))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    return column


def _close(ours: Any, theirs: Any) -> bool:
    if not ours.is_null().equals(theirs.is_null()):
        return False
    first, second = (column.fill_null(0.0).to_numpy() for column in (ours, theirs))
    return bool(np.allclose(first, second, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True))
