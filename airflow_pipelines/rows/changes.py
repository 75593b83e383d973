"""Changes of tables as inputs produce them, before they are normalised to deltas."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

OP = "__op"
"""The name of the column with the operation of each row of a change (an :class:`Op` as int8)."""
GIVEN = "__given"
"""The name of the optional list<string> column with the columns that an UPDATE row sets."""


class Op(IntEnum):
    """The effect of a row on its table."""

    DELETE = -1
    INSERT = 1
    UPDATE = 2


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table in arrival order.

    With a primary key an INSERT is an upsert, a DELETE needs the key columns only and an UPDATE sets the columns in ``__given``.
    Without one, rows form a multiset and UPDATE is not allowed.

    :param table: the table's name
    :param rows: the table's columns, in the Arrow types of its schema, and :data:`OP`; optionally :data:`GIVEN`
    :param truncates: True if the table is emptied first
    """

    table: str
    rows: pa.Table
    truncates: bool = False
