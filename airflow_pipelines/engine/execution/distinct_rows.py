"""The search for the distinct rows among many whose columns have few distinct values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_pipelines.rows.arrow import ArrowColumn

_SAMPLE: Final = 4_000
_DISTINCT: Final = 0.85
"""The share of distinct values in a sample above which most rows are assumed to be distinct."""
Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DistinctRows:
    """The distinct rows of a table, and for each of its rows the place of the distinct row that equals it."""

    rows: pa.Table
    places: Places


def distinct_rows(rows: pa.Table) -> DistinctRows | None:
    """Return the distinct rows, or None if nearly all rows are distinct, or equal values may differ in their bits."""
    if (
        not rows.num_columns
        or not rows.num_rows
        or not all(has_one_form(column.type) for column in rows.columns)
        or _is_diverse(rows)
    ):
        return None
    columns, codes, size = [], np.zeros(rows.num_rows, np.int64), 1
    for column in rows.columns:
        encoded = _encoded(column)
        values = len(encoded.dictionary)
        if 2 * values > rows.num_rows or size * values >= 1 << 62:
            return None
        columns.append(encoded.dictionary)
        codes, size = codes * values + encoded.indices.to_numpy(), size * values
    if len(columns) == 1:
        return DistinctRows(pa.table(columns, names=rows.column_names), codes)
    combined = pa.array(codes).dictionary_encode()
    if 2 * len(combined.dictionary) > rows.num_rows:
        return None
    left, taken = combined.dictionary.to_numpy(), []
    for values in reversed(columns):
        taken.append(values.take(pa.array(left % len(values))))
        left = left // len(values)
    return DistinctRows(pa.table(taken[::-1], names=rows.column_names), combined.indices.to_numpy().astype(np.int64))


def has_one_form(kind: pa.DataType) -> bool:
    """Return True if values of a type that are equal for Arrow always have the same bits."""
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind) or pa.types.is_dictionary(kind))


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """The distinct values of a column.

    :param values: the values
    :param places: for each row the index of its value
    """

    values: pa.Array
    places: pa.Array


def distinct_values(column: ArrowColumn) -> DistinctValues | None:
    """Return the distinct values of a column.

    :param column: any values
    :returns: the values; None if the column has nearly as many values as rows, or equal values may differ in their bits
    """
    if not has_one_form(column.type):
        return None
    encoded = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) and column.num_chunks > 1 else column
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    encoded = encoded.dictionary_encode(null_encoding="encode")
    if 2 * len(encoded.dictionary) > len(encoded):
        return None
    return DistinctValues(encoded.dictionary, encoded.indices)


def _is_diverse(rows: pa.Table) -> bool:
    """Return True if most rows seem to differ from all others, judged by a sample of distant rows and one of neighbours."""
    spread = rows.take(pa.array(np.linspace(0, rows.num_rows - 1, _SAMPLE).astype(np.int64)))
    return all(_share_of_distinct(sample) > _DISTINCT for sample in (spread, rows.slice(rows.num_rows // 2, _SAMPLE)))


def _share_of_distinct(rows: pa.Table) -> float:
    most: int = max(len(_encoded(column).dictionary) for column in rows.columns)
    return most / max(1, int(rows.num_rows))


def _encoded(column: ArrowColumn) -> pa.DictionaryArray:
    return pa.concat_arrays(column.chunks).dictionary_encode(null_encoding="encode")
