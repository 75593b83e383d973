"""The delta of a relation as plain columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.sql.plan.ir.passed_rows import PassedRows

_ROWS_AT_A_TIME = 200_000


def passed_delta(passed: PassedRows, columns: Sequence[str], context: Context) -> Iterator[pa.Table]:
    """Yield some columns of the rows that a step inserts into and deletes from a relation, with weights, some rows at a time.

    :param passed: the relation, and its columns by their output names
    :param columns: the output names to yield
    :param context: the context with the rows
    """
    names = [*(passed.columns[name] for name in columns), WEIGHT]
    for batch in context.relations[passed.relation].delta:
        if batch.table is not None:
            yield batch.table.select(names).rename_columns([*columns, WEIGHT])
        elif batch.store is not None:
            types = arrow_schema(batch.schema)
            kept = pa.schema([types.field(name) for name in dict.fromkeys(names)])
            for part in batch.store.read_in_parts(batch.files, _ROWS_AT_A_TIME, kept.names):
                yield cast_to_schema(part, kept).select(names).rename_columns([*columns, WEIGHT])
