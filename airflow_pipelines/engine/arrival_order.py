"""The order in which rows arrive, for operators that depend on it: a column of deltas and of stored rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.operators.context import Context, Mode
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.zsets import SEQUENCE, WEIGHT

ROWS_PER_STEP = 1 << 32
"""The rows of a step are numbered from the step's number times this."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Changes of a table, and the number of their first row in the order in which the rows of all tables arrive."""

    changes: TableChanges
    first: int


def ordered_tables(operators: Iterable[Operator[Any]], tables: Mapping[str, Table]) -> frozenset[str]:
    """The tables whose rows keep the order in which they arrive, because an operator that reads them depends on it.

    :param operators: all operators of a circuit
    :param tables: all tables, by name
    :raises ValueError: when such a relation is something else than a table that only gains rows
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
    """The schema of batches that keep the order: with the sequence column before the weight."""
    return StructType([*schema.fields[:-1], StructField(SEQUENCE, LongType()), schema.fields[-1]])


def without_sequence(batch: Batch) -> Batch:
    """The same rows without the sequence column; files keep it and are read without it."""
    if SEQUENCE not in batch.schema.names:
        return batch
    schema = StructType([column for column in batch.schema.fields if column.name != SEQUENCE])
    table = None if batch.table is None else batch.table.drop_columns([SEQUENCE])
    if batch.store is None:
        return Batch(schema, batch.rows, table, insert_only=batch.insert_only)
    plain = Batch.in_files(schema, batch.rows, batch.files, batch.store, batch.insert_only)
    return plain if table is None else replace(plain, table=table)


def restored(name: str, trace: Trace, ordered: Set[str], context: Context) -> Trace:
    """A stored table with or without the sequence column, as its readers need it now.

    Rows that were stored while nothing depended on their order have no number, which sorts before all others.

    :param name: the table
    :param trace: its stored rows
    :param ordered: the tables whose rows keep their order
    :param context: runs queries
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
