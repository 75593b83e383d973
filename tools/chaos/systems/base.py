"""What a system does in the rounds: it has orders, which change, and keeps what views make of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

Sums = dict[str, tuple[int, Decimal]]
"""A view: how many orders a customer has, and the sum of their amounts."""


@dataclass(frozen=True, slots=True)
class Order:
    """A row of a source. No two have the same number, so that one that came twice changes a sum for good."""

    id: int
    customer: str
    amount: Decimal

    def to_json(self) -> dict[str, Any]:
        """The row as documents have it."""
        return {"id": self.id, "customer": self.customer, "amount": str(self.amount)}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Order:
        """What :meth:`to_json` gave, or a row of a database."""
        return cls(int(row["id"]), str(row["customer"]), Decimal(str(row["amount"])))


class GoneError(Exception):
    """The system is away, and maybe it has a part of what it was to do."""


class WrongTargetError(AssertionError):
    """A target has something that no order of kills may leave there."""


class System(Protocol):
    """A source and a target. A thread changes the orders while another one looks at targets."""

    name: str

    def source(self) -> dict[str, Any]:
        """The declaration of the connector that reads the orders."""

    def target(self, view: str) -> dict[str, Any]:
        """The declaration of the connector that writes a view."""

    def change(self, dice: random.Random) -> None:
        """Change some orders, in one transaction where the system has any.

        :raises GoneError: when the system is away
        """

    def orders(self) -> Iterable[Order]:
        """What the source has."""

    def sums(self, view: str) -> Sums:
        """What the target of a view has, as readers see it that take committed rows only.

        :raises WrongTargetError: when a change in it does not follow from those before
        """

    def stop(self) -> None:
        """Stop the server."""

    def start(self) -> None:
        """Start the server that was stopped."""


class Orders:
    """Makes orders, and chooses those that change. Used by the thread that changes a source."""

    def __init__(self) -> None:
        self._next = 0
        self.live: dict[int, Order] = {}
        """Those that the source has, as far as is known."""

    def new(self, dice: random.Random, most: int = 20) -> list[Order]:
        """Some orders that were never there."""
        made = []
        for _ in range(dice.randint(1, most)):
            self._next += 1
            made.append(Order(self._next, f"c{dice.randrange(12)}", Decimal(dice.randrange(10_000)) / 100))
        return made

    def some(self, dice: random.Random, most: int = 5) -> list[Order]:
        """Some orders that are there."""
        found = list(self.live.values())
        return dice.sample(found, min(len(found), dice.randint(0, most)))

    def replace(self, gone: Iterable[Order], come: Iterable[Order]) -> None:
        """The source has been changed."""
        for order in gone:
            self.live.pop(order.id, None)
        for order in come:
            self.live[order.id] = order

    def reset(self, orders: Iterable[Order]) -> None:
        """Begin with what the source has."""
        self.live = {order.id: order for order in orders}
        self._next = max(self._next, *self.live, 0)


def total(orders: Iterable[Order]) -> Sums:
    """The view of orders, computed anew."""
    sums: Sums = {}
    for order in orders:
        count, amount = sums.get(order.customer, (0, Decimal(0)))
        sums[order.customer] = count + 1, amount + order.amount
    return sums


class ChangedSums:
    """Adds up a log of changes of which each must follow from those before it: none twice, none left out.

    :param where: for messages
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self.sums: Sums = {}

    def change(self, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        """One change of the view.

        :raises WrongTargetError: when the row before it is not what the target had
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
