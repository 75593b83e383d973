"""Inputs over a test's database."""

from __future__ import annotations

import json
from typing import Any

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import InputChunk, InputTransport
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.schema import RelationSchema

PIPELINE = PipelineReference("0190-1", "p")


def opened(schema: RelationSchema, transport: str, position: Any = None, **config: Any) -> InputTransport:
    declared = Connector(schema.name, "c", ConnectorDirection.INPUT, transport, config)
    source = open_input(declared, schema, NO_REFERENCES, PIPELINE)
    source.open(None if position is None else json.loads(json.dumps(position)))
    return source


def read_all(source: InputTransport, max_records: int = 1_000_000) -> list[InputChunk]:
    """All chunks of an input that ends."""
    chunks: list[InputChunk] = []
    try:
        while not chunks or not chunks[-1].end_of_input:
            chunk = source.read(max_records, 1)
            assert chunk is not None
            assert chunk.records <= max_records
            chunks.append(chunk)
    finally:
        source.close()
    return chunks


def rows(*chunks: InputChunk) -> list[dict[str, Any]]:
    """The rows of chunks, operations included."""
    return [row for chunk in chunks if chunk.changes is not None for row in chunk.changes.rows.to_pylist()]


def errors(*chunks: InputChunk) -> list[str]:
    return [error.message for chunk in chunks for error in chunk.parse_errors]
