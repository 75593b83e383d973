"""The interface of a system in the rounds: it has orders, which change, and stores the output of views."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

Sums = dict[str, tuple[int, Decimal]]
"""The content of a view: the number of orders of each customer, and the sum of their amounts."""


@dataclass(frozen=True, slots=True)
class Order:
    """A row of a source. Its number is unique, so that a row that is read twice changes a sum for good."""

    id: int
    customer: str
    amount: Decimal

    def to_json(self) -> dict[str, Any]:
        """Return the row in the form of documents."""
        return {"id": self.id, "customer": self.customer, "amount": str(self.amount)}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Order:
        """Return the order of a document from :meth:`to_json`, or of a row of a database."""
        return cls(int(row["id"]), str(row["customer"]), Decimal(str(row["amount"])))


class GoneError(Exception):
    """The error for a system that is away; it may have done a part of the work."""


class WrongTargetError(AssertionError):
    """The error for a target with content that no sequence of kills may leave there."""


class System(Protocol):
    """A source and a target. One thread changes the orders while another one reads the targets."""

    name: str

    def source(self) -> dict[str, Any]:
        """Return the declaration of the connector that reads the orders."""

    def target(self, view: str) -> dict[str, Any]:
        """Return the declaration of the connector that writes a view."""

    def change(self, dice: random.Random) -> None:
        """Change some orders, in one transaction if the system has transactions.

        :raises GoneError: when the system is away
        """

    def orders(self) -> Iterable[Order]:
        """Return the orders in the source."""

    def sums(self, view: str) -> Sums:
        """Return the content of a view's target for readers of committed rows.

        :raises WrongTargetError: when a change in it does not follow from those before
        """

    def stop(self) -> None:
        """Stop the server."""

    def start(self) -> None:
        """Start the server that was stopped."""


class Orders:
    """The orders of a source: it makes new ones, and chooses those that change. The thread that changes the source uses it."""

    def __init__(self) -> None:
        self._next = 0
        self.live: dict[int, Order] = {}
        """The orders in the source, as far as known."""

    def new(self, dice: random.Random, most: int = 20) -> list[Order]:
        """Return some new orders."""
        made = []
        for _ in range(dice.randint(1, most)):
            self._next += 1
            made.append(Order(self._next, f"c{dice.randrange(12)}", Decimal(dice.randrange(10_000)) / 100))
        return made

    def some(self, dice: random.Random, most: int = 5) -> list[Order]:
        """Return some existing orders."""
        found = list(self.live.values())
        return dice.sample(found, min(len(found), dice.randint(0, most)))

    def replace(self, gone: Iterable[Order], come: Iterable[Order]) -> None:
        """Record a change of the source."""
        for order in gone:
            self.live.pop(order.id, None)
        for order in come:
            self.live[order.id] = order

    def reset(self, orders: Iterable[Order]) -> None:
        """Replace the known orders by those of the source."""
        self.live = {order.id: order for order in orders}
        self._next = max(self._next, *self.live, 0)


def total(orders: Iterable[Order]) -> Sums:
    """Compute the view of orders from scratch."""
    sums: Sums = {}
    for order in orders:
        count, amount = sums.get(order.customer, (0, Decimal(0)))
        sums[order.customer] = count + 1, amount + order.amount
    return sums


class ChangedSums:
    """The sums over a log of changes, each of which must follow from those before it: none twice, none left out.

    :param where: the place, for messages
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self.sums: Sums = {}

    def change(self, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        """Apply one change of the view.

        :raises WrongTargetError: when its old row is not the one in the target
        """
        row = before or after or {}
        customer = str(row["customer"])
        had, expected = self.sums.get(customer), _values(before)
        if had != expected:
            raise WrongTargetError(f"{self._where}: a change of {customer} from {expected} to {_values(after)}, which was {had}")
        self.sums.pop(customer, None)
        found = _values(after)
        if found is not None:
            self.sums[customer] = found


def _values(row: Mapping[str, Any] | None) -> tuple[int, Decimal] | None:
    return None if row is None else (int(row["n"]), Decimal(str(row["total"])))
