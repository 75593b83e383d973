"""Delta tables and changes of views, as the tests of their connectors make and read them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.transports.delta_table.output import DeltaTableOutput
from airflow_pipelines.connectors.transports.delta_table.output_options import DeltaOutputOptions
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import col, relation

PEOPLE = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="v")
WRITER = "pipeline-1/v.out"


def changes(*rows: tuple[Any, ...], of: RelationSchema = PEOPLE, key: tuple[str, ...] = ()) -> ChangesInMemory:
    """Changes of a view: values and, last, the weight."""
    schema = of.arrow.append(pa.field("__weight", pa.int64()))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return ChangesInMemory(pa.Table.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in schema])), key)


def output(
    path: Path | str,
    *,
    resumed: bool = False,
    key: tuple[str, ...] = (),
    of: RelationSchema = PEOPLE,
    writer: str = WRITER,
    fence: Any = None,
    left_out: LeftOutRows | None = None,
    **options: Any,
) -> DeltaTableOutput:
    """An output that is open."""
    sink = DeltaTableOutput(DeltaOutputOptions.model_validate({"uri": str(path), **options}), of, key, writer, fence, left_out)
    sink.open(resumed)
    return sink


def merged(path: Path | str, **rest: Any) -> DeltaTableOutput:
    """An output that keeps its table equal to the view."""
    return output(path, write="merged", **rest)


def rows(path: Path | str, **storage: str) -> list[tuple[Any, ...]]:
    """The rows of a table, in order."""
    table = pa.table(DeltaTable(str(path), storage_options=storage or None).scan())
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def counted(path: Path | str) -> Counter[tuple[Any, ...]]:
    """How often each row is in a table."""
    return Counter(rows(path))


def version(path: Path | str) -> int:
    """The newest version of a table."""
    return DeltaTable(str(path)).version()
