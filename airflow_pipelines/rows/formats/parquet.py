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
    """Options of the Parquet format. There are none, because a Parquet file describes itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def open_parquet(file: Any) -> pq.ParquetFile:
    """Open a Parquet file, and read its footer.

    :param file: the file, which is seekable
    :returns: the file, whose timestamps cover all the years of a table's
    :raises pyarrow.ArrowInvalid: when it is no Parquet file, or is not complete
    """
    # Otherwise Spark's default, INT96, is read as nanoseconds, in which years before 1677 and after 2262 overflow.
    return pq.ParquetFile(file, coerce_int96_timestamp_unit="us")


def parquet_parser(schema: RelationSchema, now: Now = wall_clock) -> TableFileParser:
    """Make a parser of Parquet files.

    :param schema: the table
    :param now: the clock that a DEFAULT may read
    """
    return TableFileParser(schema, now, "a Parquet", lambda data: open_parquet(pa.BufferReader(data)).read())
