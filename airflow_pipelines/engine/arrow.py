"""Small Z-set arithmetic in the driver, on pyarrow Tables."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.batch import WEIGHT


def can_group(schema: Any) -> bool:
    """Whether pyarrow can group by all columns of a schema (nested ones it cannot)."""
    return not any(pa.types.is_nested(column.type) or pa.types.is_null(column.type) for column in schema)


def consolidate(table: Any, sums: Sequence[str] = (WEIGHT,)) -> Any:
    """Add up the ``sums`` columns of equal rows and drop rows all sums of which are 0.

    A row of weight 0 with another sum stays: it changes an accumulator of a row that is in another batch. The columns outside
    ``sums`` must pass :func:`can_group`. Floating-point numbers are equal only bit by bit here.
    """
    keys = [name for name in table.column_names if name not in sums]
    grouped = table.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in sums])
    columns = [grouped[name] if name in keys else grouped[f"{name}_sum"] for name in table.column_names]
    result = pa.table(columns, names=table.column_names).cast(table.schema)
    changes = [pc.not_equal(result[name], pa.scalar(0, pa.int64()).cast(result[name].type)) for name in sums]
    return result.filter(functools.reduce(pc.or_, changes))
