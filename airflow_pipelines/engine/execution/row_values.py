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
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.distinct_rows import distinct_values
from airflow_pipelines.engine.execution.row_queries import ComputedValues, RowQuery, compute_values, table_of
from airflow_pipelines.engine.execution.ways import Budget, Declined, first_accepted
from airflow_pipelines.engine.spark.arrow_frames import evaluable_type
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.expressions.columns import ColumnName, column_name
from airflow_pipelines.rows.expressions.evaluation import evaluate, is_supported
from airflow_pipelines.rows.expressions.time_windows import TimeWindows, has_windows
from airflow_pipelines.sql.plan.ir.expression import Expression, columns_in

_Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowValues:
    """The values of rows.

    :param rows: for each of them the place of its row; None if they are those of all rows in order
    :param columns: the values by their texts
    """

    rows: pa.Array | None
    columns: Mapping[str, ArrowColumn]


def needs_spark(texts: Sequence[Expression], columns: Sequence[str]) -> bool:
    """Return True if one of some texts is more than a column, windows of a time, or an expression that Arrow may evaluate.

    :param texts: SQL over columns
    :param columns: their names
    """
    names = frozenset((column,) for column in columns)
    return not all(_is_supported(text, names) for text in texts)


@functools.lru_cache(maxsize=10_000)
def _is_supported(text: Expression, columns: frozenset[tuple[str, ...]]) -> bool:
    tree = text.tree
    if tree is None:
        return False
    return column_name(tree) in columns or TimeWindows.of(tree) is not None or is_supported(tree, columns)


@functools.lru_cache(maxsize=10_000)
def windows_of(text: Expression) -> TimeWindows | None:
    """Return the windows of time of an expression, or None for an expression that is no call of ``window`` that is computed here.

    :param text: the expression
    """
    return None if text.tree is None else TimeWindows.of(text.tree)


def row_values(rows: pa.Table, schema: StructType, texts: Sequence[Expression], context: Context) -> RowValues:
    """Return the values of some expressions for all rows.

    :param rows: some columns of rows in memory
    :param schema: their Spark types
    :param texts: SQL over the columns
    :param context: the context that runs queries
    :raises Declined: if there are several kinds of windows, or too many values
    """
    windows = [text for text in dict.fromkeys(texts) if _may_have_windows(text)]
    if len(windows) > 1:
        raise Declined("several expressions give several values for a row")
    others = [text for text in dict.fromkeys(texts) if text not in windows]
    if not windows:
        return RowValues(None, _compute_each(rows, schema, others, context))
    (window,) = windows
    places, values = first_accepted(
        lambda: _compute_windows(rows, window, context), lambda: _query_windows(rows, schema, window, context)
    )
    # Nothing else is evaluated for rows without a window, because it may fail for them.
    there = np.bincount(places, minlength=rows.num_rows) > 0
    kept = rows if there.all() else rows.filter(pa.array(there))
    columns = _compute_each(kept, schema, others, context)
    at = pa.array((np.cumsum(there) - 1)[places])
    return RowValues(pa.array(places), {**{text: column.take(at) for text, column in columns.items()}, window: values})


@functools.lru_cache(maxsize=10_000)
def _may_have_windows(text: Expression) -> bool:
    """Return True if an expression may give none, one or several values for each row."""
    return text.tree is None or has_windows(text.tree)


def _compute_windows(rows: pa.Table, text: Expression, context: Context) -> tuple[_Places, ArrowColumn]:
    """Return the windows of a time, and for each the place of its row, by Arrow.

    :raises Declined: if the expression is something else, or there are very many windows
    """
    windows = windows_of(text)
    if windows is None or windows.column not in rows.column_names:
        raise Declined("not windows of a column")
    Budget(context.limits.read_rows).spend(windows.overlapping * rows.num_rows)
    row_windows = windows.of_rows(rows[windows.column])
    if row_windows is None:
        raise Declined("Arrow does not compute windows of such a time")
    return row_windows.rows, row_windows.windows


def _query_windows(rows: pa.Table, schema: StructType, text: Expression, context: Context) -> tuple[_Places, ArrowColumn]:
    """Return the values of an expression that gives none, one or several for each row, and for each the place of its row."""
    result = _query(rows.select(columns_in([text], rows.column_names)), schema, [f"{text} AS v0"], context)
    places = np.arange(rows.num_rows) if result.rows is None else result.rows
    return places, result.columns["v0"].combine_chunks()


def _compute_each(rows: pa.Table, schema: StructType, texts: Sequence[Expression], context: Context) -> dict[str, ArrowColumn]:
    """Return the values of texts that have one value for each row."""
    values = _compute_by_arrow(rows, schema, texts)
    missing = [text for text in texts if text not in values]
    return values | _query_each(rows, schema, missing, context) if missing else values


def _compute_by_arrow(rows: pa.Table, schema: StructType, texts: Sequence[Expression]) -> dict[str, ArrowColumn]:
    """Return the values of the texts that are columns, or that Arrow evaluates as Spark does."""
    if not texts:
        return {}
    kinds = {field.name: field.dataType for field in schema.fields}
    readable = [name for name in rows.column_names if evaluable_type(kinds[name]) is not None]
    columns: dict[ColumnName, ArrowColumn] = {(name,): rows[name] for name in readable}
    every: dict[ColumnName, ArrowColumn] = {(name,): rows[name] for name in rows.column_names}
    results: dict[str, ArrowColumn] = {}
    for text in texts:
        if text.tree is None:
            continue
        name = text.column_name
        values = every[name] if name in every else evaluate(text.tree, columns, rows.num_rows)
        if values is not None:
            results[text] = values
    return results


def _query_each(rows: pa.Table, schema: StructType, texts: Sequence[Expression], context: Context) -> dict[str, ArrowColumn]:
    """Return the values of expressions that each have one value for each row, by one query over distinct values."""
    read = {text: columns_in([text], rows.column_names) for text in texts}
    columns = list(dict.fromkeys(name for names in read.values() for name in names))
    together = {name for names in read.values() if len(names) > 1 for name in names}
    encoded = {name: None if name in together else distinct_values(rows[name]) for name in columns}
    sent = {name: rows[name] if encoding is None else encoding.values for name, encoding in encoded.items()}
    most = max((len(column) for column in sent.values()), default=1)
    # Expressions of different columns are independent, so any value may pad a shorter column.
    filled = {name: column if len(column) == most else column.take(_up_to(most, len(column))) for name, column in sent.items()}
    result = _query(
        table_of(filled, most), schema, [f"{text} AS {quote(f'v{at}')}" for at, text in enumerate(texts)], context
    ).columns
    outputs: dict[str, ArrowColumn] = {}
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


def _query(rows: pa.Table, schema: StructType, items: Sequence[str], context: Context) -> ComputedValues:
    """Return the result of a query for some expressions over rows."""
    columns = ", ".join([*items, WEIGHT])
    query = RowQuery(lambda batch: f"SELECT {columns} FROM {context.batch_views.table(batch)}", schema)
    return compute_values(query, rows, context)
