"""Changes of a view as the rows that come and the rows that go."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.rows.zsets import WEIGHT


def come_and_gone(changes: Changes, shaped: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    """The rows that come, and those that go, each in their order.

    :param changes: rows with weights
    :param shaped: makes rows of changes what a table takes
    :param schema: of that
    """
    comes, goes = [schema.empty_table()], [schema.empty_table()]
    for rows in changes.tables():
        plain = shaped(rows)
        more = pc.greater(rows.column(WEIGHT), 0)
        comes.append(plain.filter(more))
        goes.append(plain.filter(pc.invert(more)))
    return pa.concat_tables(comes), pa.concat_tables(goes)
