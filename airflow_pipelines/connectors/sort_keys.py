"""Columns that Arrow can sort and compare in place of the columns of a relation."""

from __future__ import annotations

import pyarrow as pa

from airflow_pipelines.rows.formats.encode import json_texts


def sort_keys(rows: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return the columns, with nested ones as their JSON text, and their names.

    :param rows: columns of a relation
    """
    names = [f"c{number}" for number in range(rows.num_columns)]
    columns = [
        pa.array(json_texts(column), pa.string()) if pa.types.is_nested(column.type) or pa.types.is_null(column.type) else column
        for column in rows.columns
    ]
    return pa.Table.from_arrays(columns, names=names), names
