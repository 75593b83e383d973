"""The options of ``delta_table_input``."""

from __future__ import annotations

from enum import Enum

from pydantic import Field, model_validator

from airflow_pipelines.connectors.transports.delta_table.row_condition import check_syntax
from airflow_pipelines.connectors.transports.delta_table.storage_options import DeltaOptions
from airflow_pipelines.connectors.transports.lake.moments import Moment
from airflow_pipelines.rows.expressions.pushdown import ConditionProblem, read_order
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema

_CONDITIONS = ("filter", "snapshot_filter", "cdc_delete_filter")


class DeltaMode(Enum):
    """The part of a table that is read."""

    SNAPSHOT = "snapshot"
    """The rows of one version."""
    FOLLOW = "follow"
    """The changes of later versions."""
    SNAPSHOT_AND_FOLLOW = "snapshot_and_follow"
    """The rows of one version, and the changes of later ones."""
    CDC = "cdc"
    """The rows that later versions append, which are changes themselves."""


class TransactionMode(Enum):
    """The extent of a transaction."""

    NONE = "none"
    """No transactions."""
    SNAPSHOT = "snapshot"
    """The rows of the snapshot."""
    CATCHUP = "catchup"
    """The rows of the snapshot, and the changes up to the version that was the newest when the connector started."""
    ALWAYS = "always"
    """The rows of the snapshot, and then the changes of each version."""


class DeltaInputOptions(DeltaOptions):
    """The options of the transport.

    :param mode: the part of the table that is read
    :param version: the version to read, or after which to follow; the newest one without it
    :param datetime: the same by time: the version that was the newest then. RFC 3339; UTC if it has no time zone
    :param end_version: the version after which following ends
    :param timestamp_column: the column in whose order the rows of the snapshot come
    :param filter: a condition that all rows meet
    :param snapshot_filter: a condition that rows of the snapshot meet as well
    :param transaction_mode: the extent of a transaction
    :param cdc_delete_filter: a condition that is met by changes that are deletes
    :param cdc_order_by: the columns by which the changes of one version are ordered
    :param num_parsers: the number of threads that parse rows
    """

    mode: DeltaMode
    version: int | None = Field(default=None, ge=0)
    datetime: Moment | None = None
    end_version: int | None = Field(default=None, ge=0)
    timestamp_column: str | None = Field(default=None, min_length=1)
    filter: str | None = Field(default=None, min_length=1)
    snapshot_filter: str | None = Field(default=None, min_length=1)
    transaction_mode: TransactionMode = TransactionMode.NONE
    cdc_delete_filter: str | None = Field(default=None, min_length=1)
    cdc_order_by: str | None = Field(default=None, min_length=1)
    num_parsers: int = Field(default=4, ge=1, le=64)

    @model_validator(mode="after")
    def _fit_together(self) -> DeltaInputOptions:
        if self.version is not None and self.datetime is not None:
            raise ValueError("'version' and 'datetime' both say where to begin; give one of them")
        if self.end_version is not None and self.mode is DeltaMode.SNAPSHOT:
            raise ValueError("'end_version' says where following ends, and mode 'snapshot' does not follow; use 'version'")
        if self.end_version is not None and self.version is not None and self.end_version < self.version:
            raise ValueError(f"'end_version' {self.end_version} is before 'version' {self.version}")
        if not self.has_snapshot:
            for name in ("snapshot_filter", "timestamp_column"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name!r} is for the rows of a snapshot, and mode {self.mode.value!r} reads none")
        if self.mode is not DeltaMode.CDC:
            for name in ("cdc_delete_filter", "cdc_order_by"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name!r} is for mode 'cdc', and the mode is {self.mode.value!r}")
        return self

    @property
    def has_snapshot(self) -> bool:
        """True if the rows of a version are read."""
        return self.mode in {DeltaMode.SNAPSHOT, DeltaMode.SNAPSHOT_AND_FOLLOW}


def check_input(options: DeltaInputOptions, schema: RelationSchema) -> None:
    """Check that the conditions can be read.

    :param options: the options of the connector
    :param schema: the schema of the table
    :raises InvalidOptionError: when they cannot
    """
    for name in _CONDITIONS:
        text = getattr(options, name)
        if text is not None:
            try:
                check_syntax(text)
            except ConditionProblem as problem:
                raise InvalidOptionError(f"delta_table_input: {name!r}: {problem}", name) from problem
    if options.cdc_order_by is not None:
        try:
            read_order(options.cdc_order_by)
        except ConditionProblem as problem:
            raise InvalidOptionError(f"delta_table_input: 'cdc_order_by': {problem}", "cdc_order_by") from problem
    column = options.timestamp_column
    if column is not None and column.lower() not in {each.name.lower() for each in schema.columns}:
        known = ", ".join(schema.column_names)
        raise InvalidOptionError(
            f"delta_table_input: 'timestamp_column' names {column!r}, which is no column of the table; its columns: {known}",
            "timestamp_column",
        )
