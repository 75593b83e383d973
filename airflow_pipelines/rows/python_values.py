"""Python objects from Arrow columns.

``to_pylist`` of Arrow makes an object of Arrow for each value first. NumPy makes the same Python objects of a whole buffer, more
than ten times as fast for most types.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from airflow_pipelines.rows.arrow import ArrowColumn

MapsAsDicts: TypeAlias = Literal["strict"] | None
_NONE = type(None)
_FEW = 8
"""Of so many values it takes longer to choose and to call a conversion than ``to_pylist`` takes."""


def python_values(column: ArrowColumn, maps_as_pydicts: MapsAsDicts = None) -> list[Any]:
    """Return the values of a column as Python objects, as ``to_pylist`` does.

    >>> python_values(pa.array([1, None, 3]))
    [1, None, 3]
    >>> python_values(pa.array([{"tags": ["a"]}, None]))
    [{'tags': ['a']}, None]

    :param column: a column of any type
    :param maps_as_pydicts: ``"strict"`` for maps as dicts, None for maps as lists of pairs
    :returns: its values, None for NULL; the objects are the caller's
    :raises OverflowError: if a time has no Python object, such as a date in the year 10000
    :raises UnicodeDecodeError: if a text is not UTF-8
    :raises KeyError: if a key occurs twice in a map that becomes a dict
    """
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in python_values(chunk, maps_as_pydicts)]
    kind = column.type
    if len(column) > _FEW:
        for matches, convert in _CONVERTERS:
            if matches(kind):
                return convert(column)
        if pat.is_list(kind) or pat.is_large_list(kind):
            return _convert_lists(column, maps_as_pydicts)
        if pat.is_struct(kind):
            return _convert_structs(column, maps_as_pydicts)
    return _convert_each(column, maps_as_pydicts)


def python_rows(rows: pa.Table | pa.RecordBatch, maps_as_pydicts: MapsAsDicts = None) -> list[tuple[Any, ...]]:
    """Return rows as tuples of Python objects.

    >>> python_rows(pa.table({"n": [1, 2], "fruit": ["pear", None]}))
    [(1, 'pear'), (2, None)]

    :param rows: the rows
    :param maps_as_pydicts: as for :func:`python_values`
    :returns: a tuple for each
    """
    if not rows.num_columns:
        return [()] * rows.num_rows
    return list(zip(*(python_values(column, maps_as_pydicts) for column in rows.columns), strict=True))


def _convert_each(array: pa.Array, maps_as_pydicts: MapsAsDicts = None) -> list[Any]:
    values: list[Any] = array.to_pylist(maps_as_pydicts=maps_as_pydicts)
    return values


def _convert_numbers(array: pa.Array) -> list[Any]:
    # With NULLs among them Arrow gives NumPy floating-point numbers instead of integers.
    present = array.fill_null(False if pat.is_boolean(array.type) else 0) if array.null_count else array
    values: list[Any] = present.to_numpy(zero_copy_only=False).tolist()
    if array.null_count:
        for at in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[at] = None
    return values


def _convert_objects(array: pa.Array) -> list[Any]:
    try:
        values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    except pa.ArrowException:  # a text that is not UTF-8, of which the error of the other conversion says more
        return _convert_each(array)
    return values


def _convert_dates(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_numpy(zero_copy_only=False).astype("datetime64[D]").tolist()
    # NumPy gives numbers for what Python's types cannot express.
    return values if set(map(type, values)) <= {dt.date, _NONE} else _convert_each(array)


def _convert_timestamps(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    # NumPy takes the least number for NULL.
    is_exact = set(map(type, values)) <= {dt.datetime, _NONE} and values.count(None) == array.null_count
    return values if is_exact else _convert_each(array)


def _convert_times(array: pa.Array) -> list[Any]:
    moments = _convert_timestamps(array.cast(pa.int64()).cast(pa.timestamp("us")))
    return [None if moment is None else moment.time() for moment in moments]


def _convert_decimals(array: pa.Array) -> list[Any]:
    return [None if text is None else Decimal(text) for text in _convert_objects(array.cast(pa.string()))]


def _convert_lists(array: pa.Array, maps_as_pydicts: MapsAsDicts) -> list[Any]:
    lengths = _convert_numbers(pc.list_value_length(array))
    items = python_values(array.flatten(), maps_as_pydicts)
    ends = accumulate((length or 0 for length in lengths), initial=0)
    return [None if length is None else items[start:end] for length, (start, end) in zip(lengths, pairwise(ends), strict=True)]


def _convert_structs(array: pa.Array, maps_as_pydicts: MapsAsDicts) -> list[Any]:
    names = [field.name for field in array.type]
    if not names or len(set(names)) != len(names):
        return _convert_each(array, maps_as_pydicts)
    # ``flatten`` takes a slice's offset and the parent's NULLs into account; ``field`` does not.
    rows = zip(*(python_values(part, maps_as_pydicts) for part in array.flatten()), strict=True)
    if not array.null_count:
        return [dict(zip(names, row, strict=True)) for row in rows]
    present = _convert_numbers(array.is_valid())
    return [dict(zip(names, row, strict=True)) if valid else None for row, valid in zip(rows, present, strict=True)]


_CONVERTERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[Any]]], ...] = (
    (lambda kind: pat.is_integer(kind) or pat.is_boolean(kind) or pat.is_float32(kind) or pat.is_float64(kind), _convert_numbers),
    (
        lambda kind: pat.is_string(kind) or pat.is_large_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind),
        _convert_objects,
    ),
    (pat.is_date32, _convert_dates),
    (lambda kind: pat.is_timestamp(kind) and kind.tz is None and kind.unit != "ns", _convert_timestamps),
    (lambda kind: kind == pa.time64("us"), _convert_times),
    (pat.is_decimal128, _convert_decimals),
)
"""The functions that convert values that are not nested, each with a predicate on types; the first that matches is used."""
