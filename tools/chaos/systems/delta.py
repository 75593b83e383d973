"""Delta tables: orders in a table that is followed, views in tables that are merged. One of the views is in an object store."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from tools.chaos.systems.base import GoneError, Order, Orders, Sums
from tools.chaos.systems.objects import BUFFERED, Bucket

_SCHEMA: Final = pa.schema([("id", pa.int64()), ("customer", pa.string()), ("amount", pa.decimal128(10, 2))])


class DeltaSystem:
    """Tables in a folder and in a bucket. The folder has no server, so only the bucket can be away.

    :param folder: the folder of the tables
    :param bucket: the bucket for one view
    :param remote: the name of that view
    """

    name = "delta"

    def __init__(self, folder: Path, bucket: Bucket, remote: str) -> None:
        self._folder = folder
        self._bucket = bucket
        self._remote = remote
        self._orders = Orders()
        self._commits = 0
        self._source = str(folder / "orders")
        write_deltalake(self._source, _SCHEMA.empty_table())

    def source(self) -> dict[str, Any]:
        """Return the declaration of the connector that reads the orders."""
        config = {"uri": self._source, "mode": "snapshot_and_follow"}
        return {"transport": {"name": "delta_table_input", "config": config}}

    def target(self, view: str) -> dict[str, Any]:
        """Return the declaration of the connector that writes a view."""
        uri, storage = self._place(view)
        # Only the first start finds no table.
        config = {"uri": uri, "write": "merged", "mode": "error_if_exists", **storage}
        declared = {"transport": {"name": "delta_table_output", "config": config}}
        return {**declared, **BUFFERED} if view == self._remote else declared

    def change(self, dice: random.Random) -> None:
        """Commit new orders, or delete or update some, and now and then compact the files."""
        with suppress(CommitFailedError):
            table = DeltaTable(self._source)
            self._commits += 1
            some = self._orders.some(dice)
            listed = ", ".join(str(order.id) for order in some)
            if self._commits % 20 == 0:
                table.optimize.compact()
            elif some and dice.random() < 0.2:
                table.delete(f"id IN ({listed})")
                self._orders.replace(some, [])
            elif some and dice.random() < 0.2:
                table.update(updates={"amount": "amount + 1"}, predicate=f"id IN ({listed})")
            else:
                come = self._orders.new(dice)
                columns = [[order.id for order in come], [order.customer for order in come], [order.amount for order in come]]
                arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
                write_deltalake(table, pa.table(arrays, _SCHEMA), mode="append")
                self._orders.replace([], come)

    def orders(self) -> list[Order]:
        """Return the rows of the table."""
        return [Order.of(row) for row in DeltaTable(self._source).to_pyarrow_table().to_pylist()]

    def sums(self, view: str) -> Sums:
        """Return the rows of a view's table."""
        uri, storage = self._place(view)
        try:
            rows = DeltaTable(uri, storage_options=storage or None).to_pyarrow_table().to_pylist()
        except TableNotFoundError:
            return {}
        except (DeltaError, OSError) as error:
            raise GoneError(str(error)) from error
        return {row["customer"]: (row["n"], row["total"]) for row in rows}

    def stop(self) -> None:
        """Stop the object store."""
        self._bucket.store.stop()

    def start(self) -> None:
        """Start the object store."""
        self._bucket.store.start()

    def _place(self, view: str) -> tuple[str, dict[str, str]]:
        if view != self._remote:
            return str(self._folder / view), {}
        return f"{self._bucket.url}/delta/{view}", self._bucket.delta_options()
