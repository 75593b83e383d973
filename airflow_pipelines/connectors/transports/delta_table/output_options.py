"""Options of ``delta_table_output``."""

from __future__ import annotations

from enum import Enum
from typing import Final

from pydantic import Field

from airflow_pipelines.connectors.option_errors import InvalidOptionError
from airflow_pipelines.connectors.transports.delta_table.columns import ColumnProblem, delta_schema
from airflow_pipelines.connectors.transports.delta_table.storage_options import DeltaOptions
from airflow_pipelines.engine.schema import RelationSchema

_FLAT: Final = "rows are told apart by all of their columns, which needs an index where one is an array, a map or a row"


class Beginning(Enum):
    """What an output that starts for the first time does with a table that is there."""

    APPEND = "append"
    """Its rows stay."""
    TRUNCATE = "truncate"
    """Its rows go, and its columns become those of the view."""
    ERROR_IF_EXISTS = "error_if_exists"
    """The output does not start."""


class Contents(Enum):
    """What the table has."""

    CHANGE_LOG = "change_log"
    """Each change as a row."""
    MERGED = "merged"
    """The rows of the view."""


class DeltaOutputOptions(DeltaOptions):
    """Options of the transport.

    :param mode: what happens at the first start when the table exists
    :param write: the changes of the view, one row each, or the view itself
    :param op_column: the column of a change log that says what a change does: ``i``, ``d`` or ``u``
    :param ts_column: the column of a change log by which changes are in order
    :param partition_by: columns by which a new table is partitioned
    """

    mode: Beginning = Beginning.APPEND
    write: Contents = Contents.CHANGE_LOG
    op_column: str = Field(default="__op", min_length=1)
    ts_column: str = Field(default="__ts", min_length=1)
    partition_by: tuple[str, ...] = ()


def check_output(options: DeltaOutputOptions, schema: RelationSchema, *, has_index: bool) -> None:
    """Find out whether a Delta table can have what the view has.

    :param options: those of the connector
    :param schema: that of the view
    :param has_index: whether the connector names an index
    :raises InvalidOptionError: when it cannot
    """
    try:
        delta_schema(schema.columns)
    except ColumnProblem as problem:
        raise InvalidOptionError(f"delta_table_output: {problem}") from problem
    names = {column.name.lower(): column.name for column in schema.columns}
    unknown = [name for name in options.partition_by if name not in names.values()]
    if unknown:
        known = ", ".join(names.values())
        raise InvalidOptionError(
            f"delta_table_output: 'partition_by' names {unknown[0]!r}, which is no column of the view; its columns: {known}",
            "partition_by",
        )
    if options.write is Contents.MERGED:
        nested = [column.name for column in schema.columns if column.type.depth]
        if nested and not has_index:
            raise InvalidOptionError(
                f"delta_table_output: column {nested[0]!r}: without an index {_FLAT}. Add CREATE INDEX to the program and option "
                "'index' to the connector, or use 'write': 'change_log'",
                "write",
            )
        return
    for option, name in (("op_column", options.op_column), ("ts_column", options.ts_column)):
        if name.lower() in names:
            raise InvalidOptionError(
                f"delta_table_output: the view has a column {names[name.lower()]!r} itself; give {option!r} another name", option
            )
    if options.op_column.lower() == options.ts_column.lower():
        raise InvalidOptionError("delta_table_output: 'op_column' and 'ts_column' must differ", "ts_column")
