"""Random changes of the TPC-H tables, and what the tables hold after them by the simplest possible rules."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_pipelines.rows.changes import Op, TableChanges
from benchmarks.tpch.generator import Generator
from benchmarks.tpch.refresh import table_changes
from benchmarks.tpch.schema import KEYS, TABLES

Key = tuple[Any, ...]


@dataclass
class Contents:
    """The tables' rows by key, changed in random batches: loads, corrections, deletions, and rows that come back."""

    generator: Generator
    random: random.Random
    rows: dict[str, dict[Key, dict[str, Any]]] = field(default_factory=lambda: {table: {} for table in TABLES})
    _schemas: dict[str, Any] = field(default_factory=dict)
    _version: int = 0

    def load(self, share: float) -> list[TableChanges]:
        """Insert regions and nations, and about this share of all other rows (what is there already is replaced by itself)."""
        changes = [self._upsert(name, self.generator.table(name)) for name in TABLES[:2]]
        changes += [self._upsert(name, self._some(self.generator.table(name), share)) for name in TABLES[2:6]]
        return changes + self._upsert_orders(self._order_numbers(share, new=False), version=0)

    def change(self, share: float) -> list[TableChanges]:
        """Correct, delete, bring back and add about this share of the rows, and take a nation away or bring all back."""
        self._version += 1
        changes = [
            self._delete("nation", share / 3) if self._version % 2 else self._upsert("nation", self.generator.table("nation"))
        ]
        for name in TABLES[2:6]:
            changes += [self._delete(name, share / 3), self._upsert(name, self._some(self.generator.table(name), share / 3))]
        changes += [self._delete("lineitem", share / 2), self._delete("orders", share / 3)]
        return changes + self._upsert_orders(self._order_numbers(share, new=True), self._version)

    def table(self, name: str) -> Any:
        """The rows of a table as a pyarrow Table."""
        return pa.Table.from_pylist(list(self.rows[name].values()), schema=self._schemas[name])

    def _order_numbers(self, share: float, *, new: bool) -> Any:
        count = self.generator.scale.orders
        return np.array([number for number in range(2 * count if new else count) if self.random.random() < share])

    def _upsert_orders(self, numbers: Any, version: int) -> list[TableChanges]:
        made = self.generator.orders_with_lines(numbers, version)
        # Orders and lineitems need not arrive together.
        return [
            self._upsert("orders", self._some(made["orders"], 0.9)),
            self._upsert("lineitem", self._some(made["lineitem"], 0.9)),
        ]

    def _some(self, rows: Any, share: float) -> Any:
        return rows.filter(pa.array([self.random.random() < share for _ in range(rows.num_rows)], pa.bool_()))

    def _upsert(self, name: str, rows: Any) -> TableChanges:
        self._schemas[name] = rows.schema
        for row in rows.to_pylist():
            self.rows[name][self._key(name, row)] = row
        return table_changes(name, rows, Op.INSERT)

    def _delete(self, name: str, share: float) -> TableChanges:
        gone = list(self._chosen(name, share))
        data = pa.Table.from_pylist([self.rows[name].pop(key) for key in gone], schema=self._schemas[name])
        return table_changes(name, data, Op.DELETE)

    def _chosen(self, name: str, share: float) -> Iterator[Key]:
        return (key for key in list(self.rows[name]) if self.random.random() < share)

    def _key(self, name: str, row: dict[str, Any]) -> Key:
        return tuple(row[column] for column in KEYS[name])
