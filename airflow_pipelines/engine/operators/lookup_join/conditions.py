"""Conditions and items of a join block that Spark evaluates over rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import DataType, StructField, StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.row_queries import ComputedValues, RowQuery, compute_values, table_of
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.sql.plan.ir.join_graph import SourceColumn


@dataclass(frozen=True, slots=True)
class JoinedColumns:
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


def compute_items(rows: JoinedColumns, conditions: Sequence[str], items: Sequence[str], context: Context) -> ComputedValues:
    """Return Spark's values of some expressions over the rows for which some conditions are true.

    :param rows: the rows, with the columns that are read
    :param conditions: Spark SQL over the columns, qualified by their sources
    :param items: the expressions, in the same form
    :param context: the context that runs the query
    :returns: a column ``e0``, ``e1`` ... for each item
    :raises Declined: if there are too many rows or values
    """
    names = [f"c{at}" for at in range(len(rows.columns))]
    schema = StructType([StructField(name, kind) for name, kind in zip(names, rows.kinds, strict=True)])
    structs = []
    # As fields of structs the columns get the qualified names that the expressions use.
    for source in dict.fromkeys(alias for alias, _ in rows.columns):
        own = [f"{stored} AS {quote(name)}" for stored, (alias, name) in zip(names, rows.columns, strict=True) if alias == source]
        structs.append(f"STRUCT({', '.join(own)}) AS {quote(source)}, ")
    wanted = "".join(f"{item} AS e{at}, " for at, item in enumerate(items))
    where = f" WHERE {' AND '.join(f'({condition})' for condition in conditions)}" if conditions else ""

    def query(batch: Batch) -> str:
        known = f"SELECT {''.join(structs)}{WEIGHT} FROM {context.batch_views.table(batch)}"
        return f"SELECT {wanted}{WEIGHT} FROM ({known}){where}"

    values = table_of(dict(zip(names, rows.values, strict=True)), rows.count)
    return compute_values(RowQuery(query, schema), cast_to_schema(values, arrow_schema(schema)) if names else values, context)
