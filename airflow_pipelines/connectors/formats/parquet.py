"""Parquet files, which describe themselves."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from airflow_pipelines.connectors.formats.defaults import Now, wall_clock
from airflow_pipelines.connectors.formats.tables import TableFileParser
from airflow_pipelines.engine.schema import RelationSchema


class ParquetOptions(BaseModel):
    """There are none: a Parquet file describes itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def parquet_parser(schema: RelationSchema, now: Now = wall_clock) -> TableFileParser:
    """What parses Parquet files.

    :param schema: the table
    :param now: the clock that a DEFAULT may read
    """
    return TableFileParser(schema, now, "a Parquet", lambda data: pq.read_table(pa.BufferReader(data)))
