"""Lineitems of any orders, and what the orders know of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.tpch.draws import Draws, Numbers, dates, hundredths, pick
from benchmarks.tpch.scale import Scale
from benchmarks.tpch.words import INSTRUCTIONS, MODES, text_pool

_TODAY = int(np.datetime64("1995-06-17").astype(int))
"""The specification's current date: what was to arrive later has not."""
_MOST_LINES = 7


@dataclass(frozen=True)
class Lines:
    """The lineitems of the orders with these numbers, in their order.

    ``version``: how many times they were corrected; each correction changes quantities, prices, discounts and days of receipt.
    """

    scale: Scale
    numbers: Numbers
    version: int = 0

    @property
    def table(self) -> Any:
        """The rows of ``lineitem``."""
        draws, shipped, received = self._draws, self._shipped, self._received
        focus = draws.chance("asked", self.scale.focus)
        back = np.where(draws.integers("returned", 0, 1) == 1, 0, 1)
        return pa.table(
            {
                "l_orderkey": np.repeat(self.scale.order_keys(self.numbers), self.counts),
                "l_partkey": self._parts,
                "l_suppkey": self.scale.supplier_keys(self._parts, draws.integers("supplier", 0, 3)),
                "l_linenumber": pa.array((self._at + 1).astype(np.int32)),
                "l_quantity": hundredths(self._quantities * 100),
                "l_extendedprice": hundredths(self._prices),
                "l_discount": hundredths(self._discounts),
                "l_tax": hundredths(self._taxes),
                "l_returnflag": pick(("R", "A", "N"), np.where(received <= _TODAY, back, 2)),
                "l_linestatus": pick(("F", "O"), self._open.astype(np.int64)),
                "l_shipdate": dates(shipped),
                "l_commitdate": dates(self._days + draws.integers("commit", 30, 90)),
                "l_receiptdate": dates(received),
                "l_shipinstruct": pick(INSTRUCTIONS, np.where(focus, 0, draws.integers("instruction", 0, 3))),
                "l_shipmode": pick(MODES, np.where(focus, 1, draws.integers("mode", 0, len(MODES) - 1))),
                "l_comment": draws.text("comment", text_pool(), 10, 43),
            }
        )

    @cached_property
    def counts(self) -> Numbers:
        """How many lines each order has."""
        return np.where(self._bulk, _MOST_LINES, self.scale.draws("orders", self.numbers).integers("lines", 1, _MOST_LINES))

    def order_totals(self) -> Numbers:
        """Compute the cost of each order with tax and discount, in cents."""
        costs = self._prices * (100 + self._taxes) * (100 - self._discounts) // 10_000
        return np.add.reduceat(costs, self._starts)

    def order_status(self) -> Any:
        """F where all lines are fulfilled, O where none is, else P."""
        still_open = np.add.reduceat(self._open.astype(np.int64), self._starts)
        return pick(("F", "O", "P"), np.where(still_open == 0, 0, np.where(still_open == self.counts, 1, 2)))

    @cached_property
    def _bulk(self) -> Any:
        """Orders of large quantities, which are rare unless they are asked for."""
        return self.scale.draws("orders", self.numbers).chance("bulk", self.scale.focus / 5)

    @cached_property
    def _starts(self) -> Numbers:
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def _at(self) -> Numbers:
        return np.arange(int(self.counts.sum())) - np.repeat(self._starts, self.counts)

    @cached_property
    def _draws(self) -> Draws:
        return self.scale.draws("lineitem", np.repeat(self.numbers, self.counts) * 8 + self._at)

    @cached_property
    def _parts(self) -> Numbers:
        return self._draws.integers("part", 1, self.scale.parts)

    @cached_property
    def _quantities(self) -> Numbers:
        usual = self._draws.integers(f"quantity {self.version}", 1, 50)
        return np.where(np.repeat(self._bulk, self.counts), 44 + usual % 7, usual)

    @cached_property
    def _prices(self) -> Numbers:
        return self._quantities * self.scale.prices(self._parts)

    @cached_property
    def _discounts(self) -> Numbers:
        return self._draws.integers(f"discount {self.version}", 0, 10)

    @cached_property
    def _taxes(self) -> Numbers:
        return self._draws.integers("tax", 0, 8)

    @cached_property
    def _days(self) -> Numbers:
        return np.repeat(self.scale.order_days(self.numbers), self.counts)

    @cached_property
    def _shipped(self) -> Numbers:
        return self._days + self._draws.integers("ship", 1, 121)

    @cached_property
    def _received(self) -> Numbers:
        return self._shipped + self._draws.integers(f"receipt {self.version}", 1, 30)

    @cached_property
    def _open(self) -> Any:
        return self._shipped > _TODAY
