"""What a source reads of a database."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo
from airflow_pipelines.datastream.connectors.jdbc import JdbcConnectionOptions


@dataclass(frozen=True)
class JdbcRelation:
    """A table or a query, and how it is read.

    :param connection: how the database is reached
    :param type_info: names and types of the columns
    :param order_columns: in whose order rows are read
    :param table: its name, None for a query
    :param query: its text, None for a table
    :param poll_interval: seconds between two looks for new rows; None to read what is there and end
    :param fetch_size: how many rows are fetched at a time
    """

    connection: JdbcConnectionOptions
    type_info: RowTypeInfo
    order_columns: tuple[str, ...]
    table: str | None
    query: str | None
    poll_interval: float | None
    fetch_size: int
