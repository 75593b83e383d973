"""Iceberg tables and changes of views, as the tests of their connectors make and read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from airflow_pipelines.connectors.base import InputChunk
from airflow_pipelines.connectors.transports.iceberg.input import IcebergInput
from airflow_pipelines.connectors.transports.iceberg.input_options import IcebergInputOptions
from airflow_pipelines.connectors.transports.iceberg.output import IcebergOutput
from airflow_pipelines.connectors.transports.iceberg.output_options import IcebergOutputOptions
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.contexts import input_context, output_context
from tests.connectors.relations import col, relation
from tests.connectors.transports.delta_table.tables import changes

__all__ = ["PEOPLE", "catalog", "catalog_of", "changes", "output", "read_all", "rows", "seen", "source", "table"]

PEOPLE = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="v")


def catalog_of(folder: Path) -> dict[str, Any]:
    """The options of a connector for a catalog in SQLite."""
    return {"catalog_type": "sql", "sql.uri": f"sqlite:///{folder}/catalog.db", "sql.warehouse": f"file://{folder}/warehouse"}


def catalog(folder: Path) -> Catalog:
    """The catalog itself."""
    return load_catalog("default", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")


def table(folder: Path, name: str = "db.people") -> Table:
    """A table, as it is now."""
    return catalog(folder).load_table(name)


def rows(folder: Path, name: str = "db.people") -> list[tuple[Any, ...]]:
    """The rows of a table, in order."""
    return sorted((tuple(row.values()) for row in table(folder, name).scan().to_arrow().to_pylist()), key=repr)


def output(
    folder: Path,
    *,
    resumed: bool = False,
    key: tuple[str, ...] = (),
    of: RelationSchema = PEOPLE,
    context: dict[str, Any] | None = None,
    **options: Any,
) -> IcebergOutput:
    """An output that is open."""
    given = {**catalog_of(folder), "table_name": "db.people", **options}
    sink = IcebergOutput(IcebergOutputOptions.model_validate(given), output_context(of, key, **(context or {})))
    sink.open(resumed)
    return sink


def source(
    folder: Path, mode: str = "snapshot", *, position: Any = None, of: RelationSchema = PEOPLE, **options: Any
) -> IcebergInput:
    """An input that is open."""
    given = {"mode": mode, **options}
    if "metadata_location" not in options:
        given = {**catalog_of(folder), "table_name": "db.people", **given}

    def no_parser() -> Any:
        raise AssertionError("this input has no format")

    made = IcebergInput(IcebergInputOptions.model_validate(given), input_context(of, None, no_parser))
    made.open(None if position is None else json.loads(json.dumps(position)))
    return made


def read_all(made: IcebergInput, max_records: int = 1_000_000) -> list[InputChunk]:
    """All chunks up to the end, or up to where nothing follows."""
    chunks: list[InputChunk] = []
    while True:
        chunk = made.read(max_records, 0)
        if chunk is None:
            return chunks
        chunks.append(chunk)
        if chunk.end_of_input:
            return chunks


def seen(chunks: Sequence[InputChunk]) -> list[tuple[Any, ...]]:
    """The rows that chunks bring, in order, each with its operation: 1 inserts, -1 deletes."""
    tables = [chunk.changes.rows for chunk in chunks if chunk.changes is not None]
    if not tables:
        return []
    every = pa.concat_tables(tables)
    return [tuple(row.values()) for row in every.to_pylist()]
