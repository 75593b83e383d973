"""DEFAULTs that are the time as it is, which is known without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from airflow_pipelines.rows.schema import Column

_MOMENTS: Final = ("now", "current_timestamp", "localtimestamp")
_CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "DATE": (*_MOMENTS, "current_date"),
    "TIME": ("current_time", "localtime"),
    "TIMESTAMP": _MOMENTS,
    "TIMESTAMP_TZ": _MOMENTS,
}
"""By type, the functions of the clock whose value a column of the type may have as it is."""


def is_the_time(column: Column) -> bool:
    """Whether a column's DEFAULT is the time as it is.

    :param column: the column
    """
    name = (column.default or "").strip().lower().removesuffix("()").rstrip()
    return name in _CALLS.get(column.type.name, ())
