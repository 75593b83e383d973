"""The table or query that a source reads from a database."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo
from airflow_pipelines.datastream.connectors.jdbc import JdbcConnectionOptions


@dataclass(frozen=True)
class JdbcRelation:
    """A table or a query, and the settings for reading it.

    :param connection: the options of the connection
    :param type_info: names and types of the columns
    :param order_columns: the columns by which rows are ordered
    :param table: the name of the table, None for a query
    :param query: the text of the query, None for a table
    :param poll_interval: seconds between two polls for new rows; None to read the rows that are there and end
    :param fetch_size: the number of rows to fetch at a time
    """

    connection: JdbcConnectionOptions
    type_info: RowTypeInfo
    order_columns: tuple[str, ...]
    table: str | None
    query: str | None
    poll_interval: float | None
    fetch_size: int
