"""The changes of a view as inserted rows and deleted rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.rows.zsets import WEIGHT


def come_and_gone(changes: Changes, shaped: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    """Return the inserted rows and the deleted rows, each in their order.

    :param changes: the rows with weights
    :param shaped: a function that turns rows of changes into rows of a table
    :param schema: the schema of that table
    """
    comes, goes = [schema.empty_table()], [schema.empty_table()]
    for rows in changes.tables():
        plain = shaped(rows)
        more = pc.greater(rows.column(WEIGHT), 0)
        comes.append(plain.filter(more))
        goes.append(plain.filter(pc.invert(more)))
    return pa.concat_tables(comes), pa.concat_tables(goes)
