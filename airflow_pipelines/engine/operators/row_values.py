"""Values of rows in memory: plain columns, time windows, and expressions, which Spark evaluates once for each distinct value.

Many rows have few distinct times, names and prices, and an expression of one column is a function of its value. So the distinct
values of a column are sent to Spark, all columns side by side, and the results are expanded to the rows.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.operators.context import Context, Mode
from airflow_pipelines.engine.operators.distinct_rows import has_one_form
from airflow_pipelines.engine.spark.arrow_frames import evaluable_type
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.expressions.columns import ColumnName, column_name
from airflow_pipelines.rows.expressions.evaluation import evaluate, is_supported
from airflow_pipelines.rows.expressions.time_windows import TimeWindows, has_windows
from airflow_pipelines.sql.plan.ir.trees import columns_in, tree_of

_ROW = "__row"
_Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowValues:
    """The values of rows.

    :param rows: for each of them the place of its row; None if they are those of all rows in order
    :param columns: the values by their texts
    """

    rows: pa.Array | None
    columns: Mapping[str, ArrowColumn]


def needs_spark(texts: Sequence[str], columns: Sequence[str]) -> bool:
    """Return True if one of some texts is more than a column, windows of a time, or an expression that Arrow may evaluate.

    :param texts: SQL over columns
    :param columns: their names
    """
    names = frozenset((column,) for column in columns)
    return not all(_is_supported(text, names) for text in texts)


@functools.lru_cache(maxsize=10_000)
def _is_supported(text: str, columns: frozenset[tuple[str, ...]]) -> bool:
    tree = tree_of(text)
    if tree is None:
        return False
    return column_name(tree) in columns or TimeWindows.of(tree) is not None or is_supported(tree, columns)


@functools.lru_cache(maxsize=10_000)
def windows_of(text: str) -> TimeWindows | None:
    """Return the windows of time of an expression, or None for an expression that is no call of ``window`` that is computed here.

    :param text: Spark SQL
    """
    tree = tree_of(text)
    return None if tree is None else TimeWindows.of(tree)


def row_values(rows: pa.Table, schema: StructType, texts: Sequence[str], context: Context) -> RowValues | None:
    """Return the values of some expressions for all rows.

    :param rows: some columns of rows in memory
    :param schema: their Spark types
    :param texts: SQL over the columns
    :param context: the context that runs queries
    :returns: the values; None if they are too many for this
    """
    windows = [text for text in dict.fromkeys(texts) if _may_have_windows(text)]
    if len(windows) > 1:
        return None
    others = [text for text in dict.fromkeys(texts) if text not in windows]
    if not windows:
        columns = _compute_each(rows, schema, others, context)
        return None if columns is None else RowValues(None, columns)
    expanded = _compute_windows(rows, windows[0], context) or _expand(rows, schema, windows[0], context)
    if expanded is None:
        return None
    places, values = expanded
    # Nothing else is evaluated for rows without a window, because it may fail for them.
    there = np.bincount(places, minlength=rows.num_rows) > 0
    kept = rows if there.all() else rows.filter(pa.array(there))
    columns = _compute_each(kept, schema, others, context)
    if columns is None:
        return None
    at = pa.array((np.cumsum(there) - 1)[places])
    return RowValues(pa.array(places), {**{text: column.take(at) for text, column in columns.items()}, windows[0]: values})


@functools.lru_cache(maxsize=10_000)
def _may_have_windows(text: str) -> bool:
    """Return True if an expression may give none, one or several values for each row."""
    tree = tree_of(text)
    return tree is None or has_windows(tree)


def _compute_windows(rows: pa.Table, text: str, context: Context) -> tuple[_Places, ArrowColumn] | None:
    """Return the result of :func:`_expand` for windows that are computed here, or None for others, and for very many."""
    windows = windows_of(text)
    if windows is None or windows.column not in rows.column_names:
        return None
    if windows.overlapping * rows.num_rows > context.limits.added_up_rows:
        return None
    row_windows = windows.of_rows(rows[windows.column])
    return None if row_windows is None else (row_windows.rows, row_windows.windows)


def _compute_each(rows: pa.Table, schema: StructType, texts: Sequence[str], context: Context) -> dict[str, ArrowColumn] | None:
    """Return the values of texts that have one value for each row."""
    values = _compute_by_arrow(rows, schema, texts)
    missing = [text for text in texts if text not in values]
    computed = _compute(rows, schema, missing, context) if missing else {}
    return None if computed is None else values | computed


def _compute_by_arrow(rows: pa.Table, schema: StructType, texts: Sequence[str]) -> dict[str, ArrowColumn]:
    """Return the values of the texts that are columns, or that Arrow evaluates as Spark does."""
    if not texts:
        return {}
    kinds = {field.name: field.dataType for field in schema.fields}
    readable = [name for name in rows.column_names if evaluable_type(kinds[name]) is not None]
    columns: dict[ColumnName, ArrowColumn] = {(name,): rows[name] for name in readable}
    every: dict[ColumnName, ArrowColumn] = {(name,): rows[name] for name in rows.column_names}
    results: dict[str, ArrowColumn] = {}
    for text in texts:
        tree = tree_of(text)
        if tree is None:
            continue
        name = column_name(tree)
        values = every[name] if name in every else evaluate(tree, columns, rows.num_rows)
        if values is not None:
            results[text] = values
    return results


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


def _compute(rows: pa.Table, schema: StructType, texts: Sequence[str], context: Context) -> dict[str, ArrowColumn] | None:
    """Return the values of expressions that each have one value for each row."""
    read = {text: columns_in([text], rows.column_names) for text in texts}
    columns = list(dict.fromkeys(name for names in read.values() for name in names))
    together = {name for names in read.values() if len(names) > 1 for name in names}
    encoded = {name: None if name in together else distinct_values(rows[name]) for name in columns}
    sent = {name: rows[name] if encoding is None else encoding.values for name, encoding in encoded.items()}
    most = max((len(column) for column in sent.values()), default=1)
    # Expressions of different columns are independent, so any value may pad a shorter column.
    filled = {name: column if len(column) == most else column.take(_up_to(most, len(column))) for name, column in sent.items()}
    query = ", ".join(f"{text} AS {quote(f'v{at}')}" for at, text in enumerate(texts))
    result = _evaluate(filled, most, schema, query, context)
    if result is None:
        return None
    outputs = {}
    for at, text in enumerate(texts):
        values = result[f"v{at}"]
        distinct = encoded[read[text][0]] if read[text] else None
        if not read[text]:
            values = values.take(pa.array(np.zeros(rows.num_rows, np.int64)))
        elif distinct is not None:
            values = values.take(distinct.places)
        outputs[text] = values
    return outputs


def _up_to(count: int, most: int) -> pa.Array:
    return pa.array(np.minimum(np.arange(count), most - 1))


def _expand(rows: pa.Table, schema: StructType, text: str, context: Context) -> tuple[_Places, ArrowColumn] | None:
    """Return the values of an expression with none, one or several for each row, and for each value the place of its row."""
    names = columns_in([text], rows.column_names)
    distinct = distinct_values(rows[names[0]]) if len(names) == 1 else None
    sent = {name: rows[name] if distinct is None else distinct.values for name in names}
    count = len(next(iter(sent.values()))) if sent else rows.num_rows
    result = _evaluate(sent, count, schema, f"{_ROW}, {text} AS v0", context)
    if result is None:
        return None
    of_row: _Places = result[_ROW].to_numpy()
    order = np.argsort(of_row, kind="stable")
    counts = np.bincount(of_row, minlength=count)
    first = np.cumsum(counts) - counts
    codes: _Places = np.arange(rows.num_rows) if distinct is None else distinct.places.to_numpy().astype(np.int64)
    each = counts[codes]
    ends = np.cumsum(each)
    places = np.repeat(np.arange(rows.num_rows), each)
    at = np.repeat(first[codes] - (ends - each), each) + np.arange(int(each.sum()))
    return places, result["v0"].combine_chunks().take(pa.array(order[at]))


def _evaluate(columns: Mapping[str, ArrowColumn], rows: int, schema: StructType, items: str, context: Context) -> pa.Table | None:
    """Return the result of a query of one task over columns, in the order of their rows, or None if there are too many rows."""
    if rows > context.limits.small_input:
        return None
    # StructType looks a field up by name in linear time.
    fields = {field.name: field for field in schema.fields if field.name in columns}
    kinds = StructType([*(fields[name] for name in columns), StructField(_ROW, LongType())])
    numbers, ones = pa.array(np.arange(rows)), pa.array(np.ones(rows, np.int64))
    table = pa.table([*columns.values(), numbers, ones], names=[*columns, _ROW, WEIGHT])
    batch = Batch.in_memory(weighted(kinds), table)
    return context.collect(f"SELECT {items} FROM {context.batch_views.table(batch)}", Mode.SMALL)
