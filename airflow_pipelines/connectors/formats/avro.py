"""Avro: files that hold their schema."""

from __future__ import annotations

import io
from typing import Final

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from airflow_pipelines.connectors.formats.avro_rows import AvroRows
from airflow_pipelines.connectors.formats.definition import FormatDefinition
from airflow_pipelines.connectors.formats.tables import TableFileParser


class AvroOptions(BaseModel):
    """There are none: an Avro file has its schema."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _read(data: bytes) -> pa.Table:
    try:
        from fastavro import reader
    except ImportError as error:
        raise ValueError("reading them needs fastavro: pip install 'airflow-pipelines[avro]'") from error
    try:
        records = reader(io.BytesIO(data))
        return AvroRows(records.writer_schema).table(list(records))
    except Exception as error:
        # fastavro has no common class for what is wrong with a file.
        raise ValueError(str(error)) from error


AVRO: Final = FormatDefinition(
    name="avro", options=AvroOptions, new_parser=lambda schema, _, now: TableFileParser(schema, now, "an Avro", _read)
)
