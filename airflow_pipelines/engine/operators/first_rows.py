"""The first rows by order within groups, selected in the driver. Keys and order must be plain columns.

Rows are ordered by one column after the other. A row is dropped as soon as enough others are surely before it, and a column is read
only for the rows that are still equal. So texts are compared for few rows, mostly for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.lookup.index import can_look_up
from airflow_pipelines.sql.plan.ir.ranking import OrderColumn, RankFunction, Ranking

_Numbers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_MOST = 2**62
_ALL_BUT_SIGN = np.int64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The rows of a table that are among the first ones of their group.

    :param rows: the numbers of the rows in the table
    :param places: the places of the rows in their groups, from 1
    :param equals: True if some of them are equal in all columns of the order
    """

    rows: _Numbers
    places: _Numbers
    equals: bool


def can_rank(schema: pa.Schema, ranking: Ranking) -> bool:
    """Return True if :func:`first_rows` supports the types of all columns that a ranking reads."""
    names = [*ranking.partition, *(part.name for part in ranking.order)]
    return all(can_look_up(schema.field(name).type) for name in names)


def first_rows(table: pa.Table, ranking: Ranking, most: int) -> FirstRows:
    """Return the rows with a place up to ``most``. Equal rows are ordered by their position in the table.

    :param table: rows in canonical form, of types that :func:`can_rank` accepts
    :param ranking: the ranking that defines the places
    :param most: the last place to include
    """
    groups = group_numbers(table, ranking.partition)
    rows = np.argsort(groups, kind="stable")
    begins = _begins([groups[rows]])
    ordered = _Ordered(rows, begins, begins)
    # The order of rows that are still equal is unknown: each has at least the place of the first of them.
    sure = RankFunction.RANK if ranking.function is RankFunction.ROW_NUMBER else ranking.function
    for part in ranking.order:
        ordered = _first(_refine(ordered, table[part.name], part), sure, most)
        if ordered.distinct.all():
            break
    equals = not bool(ordered.distinct.all())
    if equals:
        ordered = _order_by_position(ordered)
    ordered = _first(ordered, ranking.function, most)
    return FirstRows(ordered.rows, _before(ordered, ranking.function) + 1, equals)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Rows in the order that is known so far.

    :param rows: the numbers of the rows
    :param first: True for the first row of a group
    :param distinct: True for a row that differs from the row before it
    """

    rows: _Numbers
    first: _Flags
    distinct: _Flags


def group_numbers(table: pa.Table, names: Sequence[str]) -> _Numbers:
    """Return a number for each row, the same for rows that agree in the given columns.

    :param table: rows in canonical form
    :param names: the columns, of types that can be looked up
    """
    total, spread = np.zeros(table.num_rows, np.int64), 1
    for name in names:
        column = table[name]
        values = _float_bits(column) if pa.types.is_floating(column.type) else column
        codes = pc.dictionary_encode(values).unify_dictionaries()
        # NULL gets the last number.
        count = len(_dictionary(codes)) + 1
        numbers = _places(codes, null=count - 1)
        if spread * count > _MOST:
            total, spread = np.unique(total, return_inverse=True)[1].astype(np.int64), table.num_rows
        total, spread = total * count + numbers, spread * count
    return total


def _refine(ordered: _Ordered, column: pa.ChunkedArray, part: OrderColumn) -> _Ordered:
    """Order the rows that were equal so far by one more column."""
    at, runs = _find_equal_rows(ordered)
    if not len(at):
        return ordered
    values = _sort_keys(column.take(pa.array(ordered.rows[at])), part)
    order = _sort([runs, *values])
    rows, distinct = ordered.rows.copy(), ordered.distinct.copy()
    rows[at] = ordered.rows[at][order]
    # The runs are in order already.
    distinct[at] |= _begins([runs, *(each[order] for each in values)])
    return _Ordered(rows, ordered.first, distinct)


def _order_by_position(ordered: _Ordered) -> _Ordered:
    """Order the rows that are equal by their numbers."""
    at, runs = _find_equal_rows(ordered)
    rows = ordered.rows.copy()
    rows[at] = rows[at][_sort([runs, rows[at]])]
    return _Ordered(rows, ordered.first, ordered.distinct)


def _find_equal_rows(ordered: _Ordered) -> tuple[_Numbers, _Numbers]:
    """Return the places of rows that are equal to another one, and for each the number of its run of equal rows."""
    # A row is equal to another one when it does not differ from the one before it, or the next one does not differ from it.
    equal = ~ordered.distinct | ~np.append(ordered.distinct[1:], True)
    at = np.flatnonzero(equal)
    return at, np.cumsum(ordered.distinct, dtype=np.int64)[at]


def _sort(columns: Sequence[_Numbers]) -> _Numbers:
    """Return the order that sorts some columns of numbers, the first column first. Equal rows are in any order."""
    total, spread = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        least, most = int(column.min()), int(column.max())
        spread *= most - least + 1
        if spread > _MOST:
            return np.lexsort(columns[::-1])
        total = total * (most - least + 1) + (column - least)
    # One column of numbers is sorted several times as fast as two.
    return np.argsort(total)


def _first(ordered: _Ordered, function: RankFunction, most: int) -> _Ordered:
    """Return the rows with a place up to ``most``."""
    keep = _before(ordered, function) < most
    return ordered if keep.all() else _Ordered(ordered.rows[keep], ordered.first[keep], ordered.distinct[keep])


def _before(ordered: _Ordered, function: RankFunction) -> _Numbers:
    """Return the number of places in each row's group that come before that of the row."""
    at = np.arange(len(ordered.rows))
    begins = np.maximum.accumulate(np.where(ordered.first, at, 0))
    match function:
        case RankFunction.ROW_NUMBER:
            return at - begins
        case RankFunction.RANK:
            return np.maximum.accumulate(np.where(ordered.distinct, at, 0)) - begins
        case RankFunction.DENSE_RANK:
            runs = np.cumsum(ordered.distinct)
            return runs - runs[begins]


def _begins(columns: Sequence[_Numbers]) -> _Flags:
    """Return a mask of the rows that differ from the row before them in one of the columns."""
    mask = np.zeros(len(columns[0]), bool)
    mask[:1] = True
    for column in columns:
        mask[1:] |= column[1:] != column[:-1]
    return mask


def _sort_keys(column: pa.ChunkedArray, part: OrderColumn) -> list[_Numbers]:
    """Return columns of numbers that compare as the values of a column do in ``ORDER BY``. The first one decides first."""
    numbers = _numbers(column)
    if part.descending:
        numbers = ~numbers
    if not column.null_count:
        return [numbers]
    present: _Numbers = column.is_valid().to_numpy().astype(np.int64)
    return [present if part.nulls_first else 1 - present, np.where(present, numbers, 0)]


def _numbers(column: pa.ChunkedArray) -> _Numbers:
    """Return numbers in the order of a column's values; any number for NULL."""
    kind = column.type
    if pa.types.is_floating(kind):
        bits: _Numbers = _float_bits(column).fill_null(0).to_numpy()
        # Negative numbers with greater bits are smaller.
        return np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)
    if pa.types.is_decimal(kind) or not _is_fixed(kind):
        codes = pc.dictionary_encode(column).unify_dictionaries()
        dictionary = _dictionary(codes)
        ranks = np.empty(max(1, len(dictionary)), np.int64)
        ranks[pc.sort_indices(dictionary).to_numpy()] = np.arange(len(dictionary))
        return ranks[_places(codes, null=0)]
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    numbers: _Numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers


def _is_fixed(kind: pa.DataType) -> bool:
    """Return True if values have a fixed width."""
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return not any(is_one(kind) for is_one in texts)


def _float_bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the bits of floating-point numbers. Equal numbers have equal bits, and those of NaN are greater than all others."""
    values = column.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return pa.chunked_array([pa.array(bits, mask=column.is_null().to_numpy())])


def _dictionary(codes: pa.ChunkedArray) -> pa.Array:
    """Return the distinct values of an encoded column."""
    return codes.chunk(0).dictionary if codes.num_chunks else pa.array([])


def _places(codes: pa.ChunkedArray, null: int) -> _Numbers:
    """Return the index of each value of an encoded column in its dictionary.

    :param null: the index for NULL
    """
    parts = [chunk.indices.cast(pa.int64()).fill_null(null).to_numpy() for chunk in codes.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
