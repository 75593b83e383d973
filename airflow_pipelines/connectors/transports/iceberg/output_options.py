"""The options of ``iceberg_output``."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import model_validator

from airflow_pipelines.connectors.transports.iceberg.catalog_options import IcebergOptions
from airflow_pipelines.connectors.transports.iceberg.columns import iceberg_schema
from airflow_pipelines.connectors.transports.lake.columns import ColumnProblem
from airflow_pipelines.connectors.transports.lake.output_options import TableContents, TableOutputOptions, check_log_columns
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema


class IcebergOutputOptions(IcebergOptions, TableOutputOptions):
    """The options of the transport."""

    @model_validator(mode="after")
    def _names_a_table(self) -> IcebergOutputOptions:
        if self.catalog_type is None or self.table_name is None:
            raise ValueError("'catalog_type' and 'table_name' say which table to write")
        return self


def check_output(options: IcebergOutputOptions, schema: RelationSchema, index: str | None) -> None:
    """Check that a table can have what the view has.

    :param options: the options of the connector
    :param schema: the schema of the view
    :param index: the name of the connector's index
    :raises InvalidOptionError: when it cannot
    """
    try:
        iceberg_schema(schema.columns)
    except ColumnProblem as problem:
        raise InvalidOptionError(f"iceberg_output: {problem}") from problem
    if options.write is TableContents.MERGED:
        if index is None:
            raise InvalidOptionError(
                "iceberg_output: 'write': 'merged' tells rows apart by an index. Add CREATE INDEX to the program and option "
                "'index' to the connector, or use 'write': 'change_log'",
                "write",
            )
        return
    check_log_columns(options, schema.columns, "iceberg_output")


def check_key(schema: RelationSchema, key: Sequence[str]) -> None:
    """Check that rows can be identified by an index.

    :param schema: the schema of the view
    :param key: the columns of the index
    :raises InvalidOptionError: when they cannot
    """
    nested = [column.name for column in schema.columns if column.name in key and column.type.depth]
    if nested:
        raise InvalidOptionError(
            f"iceberg_output: column {nested[0]!r} of the index is an array, a map or a row, by which rows of a table cannot be "
            "found"
        )
