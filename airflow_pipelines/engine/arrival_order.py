"""The arrival order of rows, a sequence column of deltas and stored rows, for operators that depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.zsets import SEQUENCE, WEIGHT

ROWS_PER_STEP = 1 << 32
"""The number of sequence numbers per step: the rows of a step are numbered from the step's number times this."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Changes of a table, with the number of their first row in the arrival order of all tables' rows."""

    changes: TableChanges
    first: int


def ordered_tables(operators: Iterable[Operator[Any]], tables: Mapping[str, Table]) -> frozenset[str]:
    """Return the tables whose rows keep their arrival order, because an operator that reads them depends on it.

    :param operators: all operators of a circuit
    :param tables: all tables, by name
    :raises ValueError: if such a relation is not an append-only table without a primary key
    """
    ordered: set[str] = set()
    for operator in operators:
        if operator.depends_on_order:
            for name in sorted(operator.ordered_reads):
                table = tables.get(name)
                if table is None or table.primary_key is not None or not table.append_only:
                    raise ValueError(
                        f"{operator.relation!r} depends on the order of rows, so that it can read append-only tables without a "
                        f"primary key and nothing else: {name!r} is none"
                    )
                ordered.add(name)
    return frozenset(ordered)


def with_sequence(schema: StructType) -> StructType:
    """Return the schema of batches that keep the order: with the sequence column before the weight."""
    return StructType([*schema.fields[:-1], StructField(SEQUENCE, LongType()), schema.fields[-1]])


def without_sequence(batch: Batch) -> Batch:
    """Return the same rows without the sequence column. Files keep it, and are read without it."""
    if SEQUENCE not in batch.schema.names:
        return batch
    schema = StructType([column for column in batch.schema.fields if column.name != SEQUENCE])
    table = None if batch.table is None else batch.table.drop_columns([SEQUENCE])
    if batch.store is None:
        return Batch(schema, batch.rows, table, insert_only=batch.insert_only)
    plain = Batch.in_files(schema, batch.rows, batch.files, batch.store, batch.insert_only)
    return plain if table is None else replace(plain, table=table)


def adjust_sequence(name: str, trace: Trace, ordered: Set[str], context: Context) -> Trace:
    """Return a stored table with or without the sequence column, depending on what its readers need now.

    Rows that were stored while nothing depended on their order have the number NULL, which sorts before all others.

    :param name: the table
    :param trace: its stored rows
    :param ordered: the tables whose rows keep their order
    :param context: the context that runs queries
    """
    if (SEQUENCE in trace.schema.names) == (name in ordered):
        return trace
    if name not in ordered:
        batches = tuple(map(without_sequence, trace.batches))
        schema = StructType([column for column in trace.schema.fields if column.name != SEQUENCE])
        return replace(trace, schema=schema, batches=batches)
    schema = with_sequence(trace.schema)
    if not trace.batches:
        return replace(trace, schema=schema)
    columns = ", ".join(quote(column.name) for column in trace.schema.fields[:-1])
    rows = context.batch_views.rows(trace.batches)
    query = f"SELECT {columns}, CAST(NULL AS BIGINT) AS {SEQUENCE}, {WEIGHT} FROM {rows}"
    return replace(trace, schema=schema, batches=(context.run(query, schema, Mode.LARGE),))
