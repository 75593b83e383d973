"""The appending of rows to Delta tables."""

from __future__ import annotations

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake


def append(table: DeltaTable, rows: pa.Table | pa.RecordBatchReader, properties: CommitProperties) -> None:
    """Append rows as one commit. Columns are found by name; those that the rows do not have become NULL.

    :param table: the table in its newest version
    :param rows: the rows, whose columns are in the table
    :param properties: the properties of the commit, which is made even if there are no rows
    """
    # In the other mode, columns that only the table has are an error. This one adds none, since the table has all columns.
    write_deltalake(table, rows, mode="append", schema_mode="merge", commit_properties=properties)
