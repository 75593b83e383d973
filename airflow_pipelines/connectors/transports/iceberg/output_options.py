"""Options of ``iceberg_output``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from pydantic import Field, model_validator

from airflow_pipelines.connectors.option_errors import InvalidOptionError
from airflow_pipelines.connectors.transports.delta_table.columns import ColumnProblem
from airflow_pipelines.connectors.transports.iceberg.catalog_options import IcebergOptions
from airflow_pipelines.connectors.transports.iceberg.columns import iceberg_schema
from airflow_pipelines.engine.schema import RelationSchema


class Beginning(Enum):
    """What an output that starts for the first time does with a table that is there."""

    APPEND = "append"
    """Its rows stay."""
    TRUNCATE = "truncate"
    """Its rows go."""
    ERROR_IF_EXISTS = "error_if_exists"
    """The output does not start."""


class Contents(Enum):
    """What the table has."""

    CHANGE_LOG = "change_log"
    """Each change as a row."""
    MERGED = "merged"
    """The rows of the view."""


class IcebergOutputOptions(IcebergOptions):
    """Options of the transport.

    :param mode: what happens at the first start when the table exists
    :param write: the changes of the view, one row each, or the view itself
    :param op_column: the column of a change log that says what a change does: ``i``, ``d`` or ``u``
    :param ts_column: the column of a change log by which changes are in order
    """

    mode: Beginning = Beginning.APPEND
    write: Contents = Contents.CHANGE_LOG
    op_column: str = Field(default="__op", min_length=1)
    ts_column: str = Field(default="__ts", min_length=1)

    @model_validator(mode="after")
    def _names_a_table(self) -> IcebergOutputOptions:
        if self.catalog_type is None or self.table_name is None:
            raise ValueError("'catalog_type' and 'table_name' say which table to write")
        return self


def check_output(options: IcebergOutputOptions, schema: RelationSchema, index: str | None) -> None:
    """Find out whether a table can have what the view has.

    :param options: those of the connector
    :param schema: that of the view
    :param index: the name of the connector's index
    :raises InvalidOptionError: when it cannot
    """
    try:
        iceberg_schema(schema.columns)
    except ColumnProblem as problem:
        raise InvalidOptionError(f"iceberg_output: {problem}") from problem
    if options.write is Contents.MERGED:
        if index is None:
            raise InvalidOptionError(
                "iceberg_output: 'write': 'merged' tells rows apart by an index. Add CREATE INDEX to the program and option "
                "'index' to the connector, or use 'write': 'change_log'",
                "write",
            )
        return
    names = {column.name.lower() for column in schema.columns}
    for option, name in (("op_column", options.op_column), ("ts_column", options.ts_column)):
        if name.lower() in names:
            raise InvalidOptionError(f"iceberg_output: the view has a column {name!r} itself; give {option!r} another name", option)
    if options.op_column.lower() == options.ts_column.lower():
        raise InvalidOptionError("iceberg_output: 'op_column' and 'ts_column' must differ", "ts_column")


def check_key(schema: RelationSchema, key: Sequence[str]) -> None:
    """Find out whether rows can be told apart by an index.

    :param schema: that of the view
    :param key: the columns of the index
    :raises InvalidOptionError: when they cannot
    """
    nested = [column.name for column in schema.columns if column.name in key and column.type.depth]
    if nested:
        raise InvalidOptionError(
            f"iceberg_output: column {nested[0]!r} of the index is an array, a map or a row, by which rows of a table cannot be "
            "found"
        )
