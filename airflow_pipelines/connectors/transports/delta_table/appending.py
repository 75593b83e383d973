"""Appends rows to Delta tables."""

from __future__ import annotations

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake


def append(table: DeltaTable, rows: pa.Table | pa.RecordBatchReader, properties: CommitProperties) -> None:
    """Append rows as one commit. Columns are found by name; those that the rows do not have become NULL.

    :param table: its newest version
    :param rows: their columns are in the table
    :param properties: what goes with the commit; also without rows
    """
    # Columns that are in the table only are an error in the other mode. The table gets none that it does not have.
    write_deltalake(table, rows, mode="append", schema_mode="merge", commit_properties=properties)
