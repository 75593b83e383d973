"""The columns of the system view."""

from __future__ import annotations

from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.types import ColumnType

ERROR_VIEW_COLUMNS: tuple[Column, ...] = (
    Column("table_or_view_name", ColumnType("VARCHAR", nullable=False)),
    Column("message", ColumnType("VARCHAR", nullable=False)),
    Column("metadata", ColumnType("VARIANT", nullable=False)),
)
"""The columns of the system view that lists rows that were refused or came too late."""
