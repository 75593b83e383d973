"""The contents of a small relation as rows without weights, expanded in the process.

Spark would group the stored rows and repeat each as often as its weight says, which takes a job. Over the expanded rows, most small
queries need no job.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.arrow_frames import arrow_frame, arrow_schema, relaxed
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.zsets import WEIGHT, can_group, consolidate_groupable

MOST_BYTES: Final = 256 << 10
"""The maximum number of bytes of contents that are expanded here. Larger contents go to Spark once for all queries."""


def plain_contents(trace: Trace, session: SparkSession) -> DataFrame | None:
    """Return the contents of a relation: each row as often as its weight says, without the weight.

    :param trace: the trace of the relation
    :param session: the session of the frame
    :returns: the DataFrame; None when the rows are not in memory, are many, or have columns that only Spark can compare
    """
    if not trace.batches or not trace.in_memory or sum(batch.memory_bytes for batch in trace.batches) > MOST_BYTES:
        return None
    keys = arrow_schema(StructType([field for field in trace.schema.fields if field.name != WEIGHT]))
    if not trace.adds_up_weights_only or not trace.columns or not can_group(keys):
        return None
    table = pa.concat_tables([batch.table for batch in trace.batches])
    if not trace.insert_only:
        consolidated = _repeat_rows(consolidate_groupable(table))
        if consolidated is None:
            return None
        table = consolidated
    fields = [field for field in trace.schema.fields if field.name in trace.columns]
    return arrow_frame(session, table.select(list(trace.columns)), relaxed(StructType(fields)))


def _repeat_rows(table: pa.Table) -> pa.Table | None:
    """Return each row as often as its weight says, or None if the result would be much larger."""
    weights = np.maximum(table[WEIGHT].to_numpy(), 0)
    times = float(weights.sum(dtype=np.float64))
    if times > max(len(weights), MOST_BYTES * len(weights) / max(1, table.nbytes)):
        return None
    return table.take(pa.array(np.repeat(np.arange(len(weights)), weights)))
