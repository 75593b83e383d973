"""ORC files, which describe themselves."""

from __future__ import annotations

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from airflow_pipelines.rows.formats.defaults import Now, wall_clock
from airflow_pipelines.rows.formats.tables import TableFileParser
from airflow_pipelines.rows.schema import RelationSchema


class OrcOptions(BaseModel):
    """Options of the ORC format. There are none, because an ORC file describes itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def orc_parser(schema: RelationSchema, now: Now = wall_clock) -> TableFileParser:
    """Make a parser of ORC files.

    :param schema: the table
    :param now: the clock that a DEFAULT may read
    """
    return TableFileParser(schema, now, "an ORC", _read)


def _read(data: bytes) -> pa.Table:
    from pyarrow import orc

    return orc.ORCFile(pa.BufferReader(data)).read()
