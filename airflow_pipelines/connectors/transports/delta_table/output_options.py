"""The options of ``delta_table_output``."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from pydantic import Field, field_validator

from airflow_pipelines.connectors.transports.delta_table.storage_options import DeltaOptions
from airflow_pipelines.connectors.transports.lake.columns import ColumnProblem, table_schema
from airflow_pipelines.connectors.transports.lake.output_options import TableContents, TableOutputOptions, check_log_columns
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema

OP_COLUMN: Final = "__feldera_op"
TS_COLUMN: Final = "__feldera_ts"
"""The name, like that of :data:`OP_COLUMN`, that programs which merge change logs expect."""
FORMER_OP_COLUMN: Final = "__op"
FORMER_TS_COLUMN: Final = "__ts"
_INTERVAL: Final = re.compile(r"interval \d+ (nanosecond|microsecond|millisecond|second|minute|hour|day|week)s?")
_NEVER: Final = 2**31 - 1
"""The interval that stands for no checkpoints, since readers of Delta tables take no interval of 0."""
_FLAT: Final = "rows are told apart by all of their columns, which needs an index where one is an array, a map or a row"


class DeltaOutputOptions(DeltaOptions, TableOutputOptions):
    """The options of the transport.

    :param op_column: see :class:`TableOutputOptions`
    :param ts_column: see there
    :param partition_by: the columns by which a new table is partitioned
    :param checkpoint_interval: the number of commits after which a new table has a checkpoint of its log; 0 for none
    :param log_retention_duration: the time for which a new table keeps its log
    :param enable_expired_log_cleanup: True if a new table removes the expired part of its log
    """

    op_column: str = Field(default=OP_COLUMN, min_length=1)
    ts_column: str = Field(default=TS_COLUMN, min_length=1)
    partition_by: tuple[str, ...] = ()
    checkpoint_interval: int | None = Field(default=None, ge=0, lt=_NEVER)
    log_retention_duration: str | None = None
    enable_expired_log_cleanup: bool | None = None

    @field_validator("log_retention_duration")
    @classmethod
    def _interval(cls, value: str | None) -> str | None:
        if value is not None and not _INTERVAL.fullmatch(value):
            raise ValueError("a duration is a text such as 'interval 30 days' or 'interval 6 hours'")
        return value

    def properties(self) -> dict[str, str]:
        """Return the properties that the options set on a new table."""
        given = {
            "delta.checkpointInterval": None if self.checkpoint_interval is None else str(self.checkpoint_interval or _NEVER),
            "delta.logRetentionDuration": self.log_retention_duration,
            "delta.enableExpiredLogCleanup": (
                None if self.enable_expired_log_cleanup is None else str(self.enable_expired_log_cleanup).lower()
            ),
        }
        return {name: value for name, value in given.items() if value is not None}

    def log_columns(self, there: Collection[str]) -> tuple[str, str]:
        """Return the two columns of a change log: those of earlier releases if the options name none and the table has them.

        :param there: the columns of the existing table; empty when there is none
        """
        is_told = bool(self.model_fields_set & {"op_column", "ts_column"})
        if is_told or OP_COLUMN in there or not {FORMER_OP_COLUMN, FORMER_TS_COLUMN} <= set(there):
            return self.op_column, self.ts_column
        return FORMER_OP_COLUMN, FORMER_TS_COLUMN


def check_output(options: DeltaOutputOptions, schema: RelationSchema, *, has_index: bool) -> None:
    """Check that a Delta table can have what the view has.

    :param options: the options of the connector
    :param schema: the schema of the view
    :param has_index: True if the connector names an index
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
    if options.write is TableContents.MERGED:
        nested = [column.name for column in schema.columns if column.type.depth]
        if nested and not has_index:
            raise InvalidOptionError(
                f"delta_table_output: column {nested[0]!r}: without an index {_FLAT}. Add CREATE INDEX to the program and option "
                "'index' to the connector, or use 'write': 'change_log'",
                "write",
            )
        return
    check_log_columns(options, schema.columns, "delta_table_output")
