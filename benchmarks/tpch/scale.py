"""How large a data set is, and which keys and prices follow from that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.tpch.draws import Draws, Numbers

LINEITEMS_OF_SCALE_1 = 6_000_000
_FIRST_DAY = int(np.datetime64("1992-01-01").astype(int))
_LAST_DAY = int(np.datetime64("1998-12-31").astype(int))
_ASKED_DAYS = ("1993-06-15", "1993-11-01", "1994-06-01", "1995-02-10", "1995-08-15", "1996-01-01")
"""Periods that start here are what the queries' validation parameters ask for."""


@dataclass(frozen=True)
class Scale:
    """A data set with about ``lineitems`` lineitems; ``seed`` tells sets of one size apart.

    ``focus``: the share of rows whose attributes are what the queries' validation parameters ask for, instead of a uniform choice.
    With 0 the distributions are the specification's; small data sets need more, or most queries find nothing.
    """

    lineitems: int
    seed: int = 0
    focus: float = 0.0

    @property
    def factor(self) -> float:
        """The size as the specification counts it."""
        return self.lineitems / LINEITEMS_OF_SCALE_1

    @property
    def orders(self) -> int:
        """Number of orders at the start."""
        return max(1, self.lineitems // 4)

    @property
    def customers(self) -> int:
        """Number of customers."""
        return max(60, self.lineitems // 40)

    @property
    def parts(self) -> int:
        """Number of parts."""
        return max(36, self.lineitems // 30)

    @property
    def suppliers(self) -> int:
        """Number of suppliers; four of them sell each part."""
        return max(36, self.lineitems // 600)

    def draws(self, table: str, rows: Numbers) -> Draws:
        """Random columns of a table."""
        return Draws(f"{self.seed} {table}", rows)

    def order_keys(self, numbers: Numbers) -> Numbers:
        """Keys of orders: eight in a row of every 32; new orders, whose numbers start at :attr:`orders`, use what lies between."""
        at, generation = numbers % self.orders, numbers // self.orders
        # Three generations of new orders fit; the next ones start behind everything that was there.
        return at // 8 * 32 + at % 8 + 1 + 8 * (generation % 4) + generation // 4 * 32 * (self.orders // 8 + 1)

    def order_days(self, numbers: Numbers) -> Numbers:
        """Order dates as days since 1970-01-01."""
        draws = self.draws("orders", numbers)
        days = draws.integers("day", _FIRST_DAY, _LAST_DAY - 151)
        starts = np.array([int(np.datetime64(day).astype(int)) for day in _ASKED_DAYS])
        asked = starts[draws.integers("asked day", 0, len(starts) - 1)] + draws.integers("days on", 0, 45)
        return np.where(draws.chance("asked", self.focus), asked, days)

    def supplier_keys(self, part_keys: Numbers, at: Numbers) -> Numbers:
        """Return the supplier number ``at`` (0 to 3) of parts."""
        suppliers = self.suppliers
        # The specification's formula; with few suppliers the second addend would lead back to the same one, so it stays small.
        apart = suppliers // 4 + (part_keys - 1) // suppliers % max(1, suppliers // 13)
        return (part_keys + at * apart) % suppliers + 1

    def prices(self, part_keys: Numbers) -> Numbers:
        """Retail prices of parts in cents."""
        return 90_000 + part_keys // 10 % 20_001 + 100 * (part_keys % 1_000)
