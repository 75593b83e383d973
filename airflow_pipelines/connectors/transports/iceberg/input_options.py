"""The options of ``iceberg_input``."""

from __future__ import annotations

from enum import Enum

from pydantic import Field, model_validator

from airflow_pipelines.connectors.transports.iceberg.catalog_options import IcebergOptions
from airflow_pipelines.connectors.transports.lake.moments import Moment


class IcebergMode(Enum):
    """The part of a table that is read."""

    SNAPSHOT = "snapshot"
    """The rows of one snapshot."""
    FOLLOW = "follow"
    """The changes of later snapshots."""
    SNAPSHOT_AND_FOLLOW = "snapshot_and_follow"
    """The rows of one snapshot, and the changes of later ones."""


class IcebergInputOptions(IcebergOptions):
    """The options of the transport.

    :param mode: the part of the table that is read
    :param metadata_location: the metadata file of a table, for one that is read without a catalog
    :param snapshot_id: the snapshot to read, or after which to follow; the current one without it
    :param datetime: the same by time: the snapshot that was current then. RFC 3339; UTC if it has no time zone
    :param snapshot_filter: a condition that rows of the snapshot meet, such as ``amount > 10 and region = 'EU'``
    """

    mode: IcebergMode
    metadata_location: str | None = Field(default=None, min_length=1)
    snapshot_id: int | None = None
    datetime: Moment | None = None
    snapshot_filter: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _fit_together(self) -> IcebergInputOptions:
        if (self.metadata_location is None) == (self.catalog_type is None):
            raise ValueError("a table is found by 'metadata_location', or by 'catalog_type' and 'table_name': give one of the two")
        if (self.catalog_type is None) != (self.table_name is None):
            raise ValueError("'catalog_type' and 'table_name' belong together")
        if self.metadata_location is not None and self.mode is not IcebergMode.SNAPSHOT:
            raise ValueError(f"a metadata file never changes, so that mode {self.mode.value!r} needs a catalog")
        if self.snapshot_id is not None and self.datetime is not None:
            raise ValueError("'snapshot_id' and 'datetime' both say where to begin; give one of them")
        if self.snapshot_filter is not None and self.mode is IcebergMode.FOLLOW:
            raise ValueError("'snapshot_filter' is for the rows of the snapshot, and mode 'follow' reads none")
        return self
