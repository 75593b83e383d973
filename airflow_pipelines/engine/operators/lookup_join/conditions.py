"""Evaluation of conditions and expressions over joined rows in memory, by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType, LongType, StructField, StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.operators.context import Context, Mode
from airflow_pipelines.engine.operators.row_values import DistinctValues, distinct_values
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.sql.plan.ir.join_graph import SourceColumn

ROW = "__row"
"""The column of Spark's result with the place of the input row."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of sources, joined row by row.

    :param columns: the columns
    :param kinds: the types of the columns
    :param values: the values of the columns, in the same order
    :param count: the number of rows
    """

    columns: Sequence[SourceColumn]
    kinds: Sequence[DataType]
    values: Sequence[pa.ChunkedArray]
    count: int


def evaluated(rows: Rows, conditions: Sequence[str], items: Sequence[str], context: Context) -> pa.Table:
    """Return Spark's values of some expressions over the rows for which some conditions are true.

    :param rows: the rows, with the columns that are read
    :param conditions: Spark SQL over the columns, qualified by their sources
    :param items: the expressions, in the same form
    :param context: the context that runs the query
    :returns: a column ``e0``, ``e1`` ... for each item, and :data:`ROW`, by which the rows are ordered
    """
    distinct = distinct_values(rows.values[0]) if len(rows.columns) == 1 and rows.count else None
    if distinct is None:
        return _evaluate(rows, conditions, items, context)
    values = replace(rows, values=[pa.chunked_array([distinct.values])], count=len(distinct.values))
    return _expand(_evaluate(values, conditions, items, context), distinct)


def _expand(results: pa.Table, distinct: DistinctValues) -> pa.Table:
    """Expand the results for distinct values to the rows with these values."""
    place_of = np.full(len(distinct.values), -1)
    place_of[results[ROW].to_numpy()] = np.arange(results.num_rows)
    places = place_of[distinct.places.to_numpy()]
    rows = np.flatnonzero(places >= 0)
    taken = {name: results[name].take(pa.array(places[rows])) for name in results.column_names if name != ROW}
    return pa.table({**taken, ROW: pa.array(rows)})


def _evaluate(rows: Rows, conditions: Sequence[str], items: Sequence[str], context: Context) -> pa.Table:
    names = [f"c{at}" for at in range(len(rows.columns))]
    fields = [StructField(name, kind) for name, kind in zip(names, rows.kinds, strict=True)]
    schema = StructType([*fields, StructField(ROW, LongType())])
    values = pa.table([*rows.values, pa.array(np.arange(rows.count))], [*names, ROW])
    batch = Batch(schema, rows.count, cast_to_schema(values, arrow_schema(schema)))
    structs = []
    # As fields of structs the columns get the qualified names that the expressions use.
    for source in dict.fromkeys(alias for alias, _ in rows.columns):
        own = [f"{made} AS {quote(name)}" for made, (alias, name) in zip(names, rows.columns, strict=True) if alias == source]
        structs.append(f"STRUCT({', '.join(own)}) AS {quote(source)}, ")
    known = f"SELECT {''.join(structs)}{ROW} FROM {context.batch_views.table(batch)}"
    wanted = "".join(f"{item} AS e{at}, " for at, item in enumerate(items))
    where = f" WHERE {' AND '.join(f'({condition})' for condition in conditions)}" if conditions else ""
    return context.collect(f"SELECT {wanted}{ROW} FROM ({known}){where}", Mode.SMALL).sort_by(ROW)
