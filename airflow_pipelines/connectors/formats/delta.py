"""A delta as text: its changes in a fixed order, each on its own."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.formats.encode import encode_csv, encode_rows, json_texts
from airflow_pipelines.engine.batch import WEIGHT


def ordered_changes(batch: pa.Table) -> pa.Table:
    """A delta with one row per change: deletes first, each part sorted by row, rows repeated by weight."""
    weights = batch.column(WEIGHT)
    if batch.num_rows > 1:
        keys, names = _sort_keys(batch.drop_columns([WEIGHT]))
        table = keys.append_column("_delete_first", pc.sign(weights))
        order = pc.sort_indices(
            table,
            sort_keys=[("_delete_first", "ascending", "at_start"), *((name, "ascending", "at_start") for name in names)],
        )
        batch = batch.take(order)
        weights = batch.column(WEIGHT)
    if batch.num_rows and pc.max(pc.abs(weights)).as_py() == 1:
        return batch
    repeats = pc.abs(weights).to_pylist()
    indices = [number for number, times in enumerate(repeats) for _ in range(times)]
    repeated = batch.take(pa.array(indices, pa.int64()))
    return repeated.set_column(repeated.num_columns - 1, WEIGHT, pc.sign(repeated.column(WEIGHT)))


def json_changes(ordered: pa.Table) -> Iterator[str]:
    """Each change of :func:`ordered_changes` as ``{"insert": row}`` or ``{"delete": row}``."""
    weights = ordered.column(WEIGHT).to_pylist()
    for weight, row in zip(weights, encode_rows(ordered.drop_columns([WEIGHT])), strict=True):
        yield f'{{"{"insert" if weight > 0 else "delete"}":{row}}}'


def csv_changes(ordered: pa.Table, delimiter: str = ",", quote: str = '"') -> Iterator[str]:
    """Each change of :func:`ordered_changes` as a CSV record whose last field is 1 or -1."""
    return encode_csv(ordered, delimiter, quote)


def _sort_keys(rows: pa.Table) -> tuple[pa.Table, list[str]]:
    """Columns that Arrow can sort in place of a relation's, with nested ones as their JSON text, and their names."""
    names = [f"c{number}" for number in range(rows.num_columns)]
    columns = [
        pa.array(json_texts(column), pa.string()) if pa.types.is_nested(column.type) or pa.types.is_null(column.type) else column
        for column in rows.columns
    ]
    return pa.Table.from_arrays(columns, names=names), names
