"""Changes of the tables while they are in use: new, deleted and corrected orders with their lineitems, or the like of parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_pipelines.rows.changes import OP, Op, TableChanges
from benchmarks.tpch.draws import Numbers
from benchmarks.tpch.generator import Generator

_NEW, _DELETED = 0.4, 0.4
"""Shares of the changed rows; the rest are corrected ones."""
_LINES_OF_AN_ORDER = 4
_SUPPLIERS_OF_A_PART = 4


def table_changes(table: str, rows: Any, operation: Op) -> TableChanges:
    """Rows of a table that all do the same."""
    return TableChanges(table, rows.append_column(OP, pa.repeat(pa.scalar(int(operation), pa.int8()), rows.num_rows)))


@dataclass
class Refresh:
    """An endless stream of changes to the ``tables`` that are given, spread over the whole range of keys.

    Where orders or lineitems are among the tables, orders come, go and are corrected, with their lineitems; otherwise parts with
    their suppliers. No row is deleted twice or corrected after it was deleted.
    """

    generator: Generator
    tables: frozenset[str]
    _taken: int = 0
    _version: int = 0

    def changes(self, rows: int) -> list[TableChanges]:
        """Return changes of about ``rows`` rows; each call returns others.

        :raises ValueError: if none of the tables has changes
        """
        made = self._orders if self.tables & {"orders", "lineitem"} else self._parts
        if not self.tables & {"orders", "lineitem", "part", "partsupp"}:
            raise ValueError("none of the tables has changes")
        self._version += 1
        return [
            table_changes(table, data, operation)
            for operation, tables in made(rows)
            for table, data in tables.items()
            if table in self.tables and data.num_rows
        ]

    def _orders(self, rows: int) -> Iterator[tuple[Op, Mapping[str, Any]]]:
        each = ("orders" in self.tables) + _LINES_OF_AN_ORDER * ("lineitem" in self.tables)
        count = self.generator.scale.orders
        new, deleted, corrected = self._numbers(count, max(3, rows // each))
        yield Op.INSERT, self.generator.orders_with_lines(new)
        yield Op.DELETE, self.generator.orders_with_lines(deleted)
        yield Op.INSERT, self.generator.orders_with_lines(corrected, self._version)

    def _parts(self, rows: int) -> Iterator[tuple[Op, Mapping[str, Any]]]:
        each = ("part" in self.tables) + _SUPPLIERS_OF_A_PART * ("partsupp" in self.tables)
        new, deleted, corrected = self._numbers(self.generator.scale.parts, max(3, rows // each))
        sold = (corrected[:, np.newaxis] * _SUPPLIERS_OF_A_PART + np.arange(_SUPPLIERS_OF_A_PART)).ravel()
        yield Op.INSERT, self.generator.parts_with_suppliers(new)
        yield Op.DELETE, self.generator.parts_with_suppliers(deleted)
        yield Op.INSERT, {"partsupp": self.generator.partsupp(sold, self._version)}

    def _numbers(self, count: int, changed: int) -> tuple[Numbers, Numbers, Numbers]:
        """Numbers of new, deleted and corrected rows out of ``count``: pieces of one walk that visits each number once."""
        first = max(1, round(changed * _NEW))
        second = max(1, round(changed * _DELETED))
        walk = (self._taken + np.arange(changed)) * _stride(count) % count
        self._taken += changed
        return walk[:first] + count, walk[first : first + second], walk[first + second :]


def _stride(count: int) -> int:
    """Return a step with which a walk around ``count`` places visits all of them and is spread evenly from the start."""
    stride = max(1, round(count * 0.618))
    while math.gcd(stride, count) != 1:
        stride += 1
    return stride
