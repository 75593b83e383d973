"""Readers of files, and what they read."""

from __future__ import annotations

import json
import lzma
import zlib
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import InputChunk, InputTransport, Lagging
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import GRADES

TWO_ROWS = pa.table({"student_id": [1, 2]})


def file_input(
    path: Path | str,
    format_name: str = "csv",
    *,
    follow: bool = False,
    position: Any = None,
    schema: RelationSchema = GRADES,
    **config: Any,
) -> InputTransport:
    own = {name: config.pop(name) for name in ("buffer_size_bytes", "compression") if name in config}
    transport = {"path": str(path), "follow": follow, **own}
    source = open_input(
        Connector(schema.name, "c", ConnectorDirection.INPUT, "file_input", transport, format_name, config),
        schema,
        NO_REFERENCES,
        PipelineReference("0190-1", "p"),
    )
    source.open(None if position is None else json.loads(json.dumps(position)))
    return source


def read_all(source: InputTransport, max_records: int = 1_000_000) -> list[InputChunk]:
    chunks = []
    while not chunks or not chunks[-1].end_of_input:
        chunk = source.read(max_records, 1)
        assert chunk is not None
        assert chunk.records <= max_records
        chunks.append(chunk)
    source.close()
    return chunks


def ids(*chunks: InputChunk | None) -> list[int]:
    return [row["student_id"] for chunk in chunks if chunk and chunk.changes for row in chunk.changes.rows.to_pylist()]


def chunks_of(source: InputTransport) -> list[InputChunk]:
    chunks: list[InputChunk] = []
    while not chunks or not chunks[-1].end_of_input:
        chunk = source.read(100, 1)
        assert chunk is not None
        chunks.append(chunk)
    return chunks


def without_marks(position: Any) -> Any:
    """A position as releases wrote it that did not mark what they had read."""
    if isinstance(position, dict):
        return {name: without_marks(value) for name, value in position.items() if name != "mark"}
    return [without_marks(value) for value in position] if isinstance(position, list | tuple) else position


def packed(codec: str, text: str) -> bytes:
    if codec in {"xz", "deflate"}:
        return (lzma if codec == "xz" else zlib).compress(text.encode())
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(text.encode())
    return bytes(sink.getvalue())


def write_avro(path: Path, rows: list[dict[str, Any]]) -> None:
    fields = [{"name": "student_id", "type": "long"}, {"name": "class", "type": ["null", "string"]}]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "grade", "fields": fields}, rows, codec="deflate", sync_interval=60)


def left(source: InputTransport) -> int | None:
    assert isinstance(source, Lagging)
    lag = source.lag()
    assert lag is not None
    assert lag.records is lag.seconds is None
    return lag.bytes
