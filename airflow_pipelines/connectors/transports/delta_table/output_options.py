"""Options of ``delta_table_output``."""

from __future__ import annotations

from typing import Final

from airflow_pipelines.connectors.option_errors import InvalidOptionError
from airflow_pipelines.connectors.transports.delta_table.storage_options import DeltaOptions
from airflow_pipelines.connectors.transports.lake.columns import ColumnProblem, table_schema
from airflow_pipelines.connectors.transports.lake.output_options import Contents, TableOutputOptions, check_log_columns
from airflow_pipelines.engine.schema import RelationSchema

_FLAT: Final = "rows are told apart by all of their columns, which needs an index where one is an array, a map or a row"


class DeltaOutputOptions(DeltaOptions, TableOutputOptions):
    """Options of the transport.

    :param partition_by: columns by which a new table is partitioned
    """

    partition_by: tuple[str, ...] = ()


def check_output(options: DeltaOutputOptions, schema: RelationSchema, *, has_index: bool) -> None:
    """Find out whether a Delta table can have what the view has.

    :param options: those of the connector
    :param schema: that of the view
    :param has_index: whether the connector names an index
    :raises InvalidOptionError: when it cannot
    """
    try:
        table_schema(schema.columns)
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
    check_log_columns(options, schema.columns, "delta_table_output")
