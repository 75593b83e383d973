"""Detection of updates among the changes of a view with an index: a removed row and an inserted row with the same key.

Nothing enforces that the key of an index is unique. If more than one row with a key is removed, or more than one is inserted, they
cannot be matched: they stay deletes and inserts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.sort_keys import sort_keys
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.zsets import WEIGHT

_AHEAD: Final = 2
"""The number of rows that must be known after a row to decide whether it begins an update."""


def with_updates(tables: Iterable[pa.Table], key: Sequence[str]) -> Iterator[pa.Table]:
    """Yield changes with updates marked. Both rows of an update are in the same table.

    :param tables: changes in the order of their key, for each key deletes before inserts; a weight of 1 or -1 is the last column
    :param key: the columns of the key
    :returns: the same changes with the column :data:`UPDATE`; tables can have a few rows more
    """
    rows: pa.Table | None = None
    # One row before the pending rows is kept for comparison.
    begin = 0
    for table in tables:
        if rows is None:
            rows = table
            continue
        end = min(rows.num_rows, rows.num_rows + table.num_rows - _AHEAD)
        rows = pa.concat_tables([rows, table])
        starts = _starts(rows, key, begin)
        if end > begin and starts[end - 1]:
            end -= 1
        if end <= begin:
            continue
        yield _mark_updates(rows, starts, begin, end)
        rows, begin = rows.slice(end - 1), 1
    if rows is not None and rows.num_rows > begin:
        yield _mark_updates(rows, _starts(rows, key, begin), begin, rows.num_rows)


def _starts(rows: pa.Table, key: Sequence[str], begin: int) -> Any:
    """Return for each row from ``begin`` on whether it is the old row of an update. Earlier rows are not considered."""
    starts = np.zeros(rows.num_rows, bool)
    if rows.num_rows > 1:
        weights = rows.column(WEIGHT).to_numpy()
        same = equal_neighbours(rows.select(key))
        before, after = np.r_[False, same[:-1]], np.r_[same[1:], False]
        starts[:-1] = same & ~before & ~after & (weights[:-1] < 0) & (weights[1:] > 0)
        starts[:begin] = False
    return starts


def equal_neighbours(keys: pa.Table) -> Any:
    """Return for each row but the last whether the next one has the same key."""
    comparable, _ = sort_keys(keys)
    same = np.ones(keys.num_rows - 1, bool)
    for column in comparable.columns:
        values = column.combine_chunks()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        one, other = values.slice(0, len(values) - 1), values.slice(1)
        both_null = pc.and_(one.is_null(), other.is_null())
        same &= pc.or_(pc.fill_null(pc.equal(one, other), False), both_null).to_numpy(zero_copy_only=False)
    return same


def _mark_updates(rows: pa.Table, starts: Any, begin: int, end: int) -> pa.Table:
    of_update = starts | np.r_[False, starts[:-1]]
    return rows.slice(begin, end - begin).add_column(0, UPDATE, pa.array(of_update[begin:end]))
