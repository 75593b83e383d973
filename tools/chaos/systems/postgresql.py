"""A PostgreSQL server: orders in a table that is followed, views in tables."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Final

import psycopg

from tools.chaos.systems.base import GoneError, Order, Orders, Sums
from tools.postgres_server import PostgresServer

_INSERT: Final = "INSERT INTO orders VALUES (%s, %s, %s)"


class PostgresSystem:
    """Tables of a database.

    :param server: a running server
    :param database: an empty database of it
    :param views: the views with a table
    """

    name = "postgres"

    def __init__(self, server: PostgresServer, database: str, views: Iterable[str]) -> None:
        self._server = server
        self._url = server.url(database)
        self._orders = Orders()
        with psycopg.connect(self._url, autocommit=True) as connection:
            # Without a key, so that a row that is read twice is not recognised.
            connection.execute("CREATE TABLE orders (id bigint, customer text, amount numeric(10, 2))")
            connection.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
            connection.execute("CREATE PUBLICATION pairs FOR TABLE orders")
            for view in views:
                connection.execute(f"CREATE TABLE {view} (customer text PRIMARY KEY, n bigint, total numeric)".encode())

    def source(self) -> dict[str, Any]:
        """Return the declaration of the connector that reads the orders."""
        config = {"uri": self._url, "publication": "pairs", "source_table": "orders"}
        return {"transport": {"name": "postgres_cdc_input", "config": config}}

    def target(self, view: str) -> dict[str, Any]:
        """Return the declaration of the connector that writes a view."""
        return {"transport": {"name": "postgres_output", "config": {"uri": self._url, "table": view}}}

    def change(self, dice: random.Random) -> None:
        """Insert, update and delete some orders in a transaction.

        :raises GoneError: when the server is away
        """
        gone, come, changed = self._orders.some(dice), self._orders.new(dice), self._orders.some(dice, 3)
        try:
            with psycopg.connect(self._url) as connection:
                for order in come:
                    connection.execute(_INSERT, [order.id, order.customer, order.amount])
                for order in changed:
                    connection.execute("UPDATE orders SET amount = amount + 1 WHERE id = %s", [order.id])
                for order in gone:
                    connection.execute("DELETE FROM orders WHERE id = %s", [order.id])
        except psycopg.OperationalError as error:
            raise GoneError(str(error)) from error
        self._orders.replace(gone, come)

    def orders(self) -> list[Order]:
        """Return the rows of the table."""
        rows = self._rows("SELECT id, customer, amount FROM orders")
        return [Order(*row) for row in rows]

    def sums(self, view: str) -> Sums:
        """Return the rows of a view's table."""
        return {customer: (n, total) for customer, n, total in self._rows(f"SELECT customer, n, total FROM {view}")}

    def stop(self) -> None:
        """Stop the server like a crash."""
        self._server.stop("immediate")

    def start(self) -> None:
        """Start the server."""
        self._server.start()

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        try:
            with psycopg.connect(self._url, autocommit=True) as connection:
                return connection.execute(query.encode()).fetchall()
        except psycopg.OperationalError as error:
            raise GoneError(str(error)) from error
