"""The range of values over which a marker has moved. Only rows in it can be inserted or deleted by a temporal filter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.sql.plan.ir.linear import TemporalFilter


def moved_range(temporal_filter: TemporalFilter, marker: str, relations: Mapping[str, RelationVersions]) -> str | None:
    """Return the condition for the rows that ``marker`` passes in this step, or None if there are surely none.

    The condition may hold for more rows than those: their contributions cancel out.

    :param temporal_filter: the comparison with the marker
    :param marker: the marker's relation
    :param relations: the relations' versions in this step
    """
    values = [value for batch in relations[marker].delta for value in batch.to_arrow()[0]]
    known = [value for value in values if value.is_valid]
    if len(values) < 2 or len(known) < len(values):
        # The marker appears or disappears, which may affect any row.
        return "TRUE"
    low = min(known, key=_plain)
    high = max(known, key=_plain)
    if temporal_filter.column is not None:
        relation, column = temporal_filter.column
        if not any(_may_hold(batch, column, low, high) for batch in relations[relation].after.batches):
            return None
    kind = type_text(relations[marker].before.schema.fields[0].dataType)
    return f"({temporal_filter.text}) >= {literal(low, kind)} AND ({temporal_filter.text}) <= {literal(high, kind)}"


def literal(value: pa.Scalar, kind: str) -> str:
    """Return an Arrow scalar as Spark SQL text.

    :param value: the scalar
    :param kind: the type of the text, as Spark DDL
    """
    text = value.cast(pa.string()).as_py()
    return f"CAST('{text}' AS {kind})"


def _plain(value: pa.Scalar) -> Any:
    return value.value if pa.types.is_temporal(value.type) else value.as_py()


def _may_hold(batch: Batch, column: str, low: pa.Scalar, high: pa.Scalar) -> bool:
    """Return True if a batch may have a row with a value from ``low`` to ``high`` in a column."""
    if batch.table is not None:
        values = batch.table[column]
        if values.type != low.type:
            return True
        return bool(pc.any(pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))).as_py())
    if batch.store is None:
        return False
    return any(_group_may_hold(group, low, high) for name in batch.files for group in _ranges(batch.store.open(name), column))


def _group_may_hold(group: tuple[Any, Any] | None, low: pa.Scalar, high: pa.Scalar) -> bool:
    if group is None or pa.scalar(group[0]).type != pa.scalar(low.as_py()).type:
        return True
    return bool(group[0] <= high.as_py() and group[1] >= low.as_py())


@lru_cache(maxsize=4096)
def _ranges(path: Path, column: str) -> tuple[tuple[Any, Any] | None, ...]:
    """Return the least and greatest value of a column in each row group of a file; None if the file does not record them."""
    metadata = pq.read_metadata(path)
    ranges: list[tuple[Any, Any] | None] = []
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        columns = (group.column(position) for position in range(group.num_columns))
        statistics = next((part.statistics for part in columns if part.path_in_schema == column), None)
        ranges.append(None if statistics is None or not statistics.has_min_max else (statistics.min, statistics.max))
    return tuple(ranges)
