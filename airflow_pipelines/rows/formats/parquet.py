"""Parquet files, which describe themselves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from airflow_pipelines.rows.formats.defaults import Now, wall_clock
from airflow_pipelines.rows.formats.tables import TableFileParser
from airflow_pipelines.rows.schema import RelationSchema


class ParquetOptions(BaseModel):
    """There are none: a Parquet file describes itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def open_parquet(file: Any) -> pq.ParquetFile:
    """Open a Parquet file, and read its end.

    :param file: the file, which can be read anywhere
    :returns: the file, whose timestamps have all the years that a table's have
    :raises pyarrow.ArrowInvalid: when it is none, or is not complete
    """
    # Spark's default, INT96, comes as nanoseconds otherwise, in which years before 1677 and after 2262 turn into others.
    return pq.ParquetFile(file, coerce_int96_timestamp_unit="us")


def parquet_parser(schema: RelationSchema, now: Now = wall_clock) -> TableFileParser:
    """Make a parser of Parquet files.

    :param schema: the table
    :param now: the clock that a DEFAULT may read
    """
    return TableFileParser(schema, now, "a Parquet", lambda data: open_parquet(pa.BufferReader(data)).read())
