"""Deterministic data for the eight tables, of any size, any rows at a time.

Sizes are given as a number of lineitems; everything else is in the specification's proportion to it. Comments are
pieces of a pool of sentences; prices, dates and flags follow the specification's formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.tpch.draws import Draws, Numbers, dates, hundredths, pick
from benchmarks.tpch.lines import Lines
from benchmarks.tpch.scale import Scale
from benchmarks.tpch.words import (
    BRANDS,
    COLOURS,
    CONTAINERS,
    NATIONS,
    PRIORITIES,
    REGIONS,
    SEGMENTS,
    TYPES,
    text_pool,
)

ORDER_CHUNK = 250_000
"""Orders are generated so many at a time: a million lineitems."""
# What the queries' validation parameters ask for; see Scale.focus.
_ASKED_NATIONS = ("FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "INDIA")
_ASKED_PARTS = (
    ("forest green", "Brand#12", "SM CASE", "ECONOMY ANODIZED STEEL", 15),
    ("forest snow", "Brand#23", "MED BOX", "LARGE PLATED BRASS", 15),
    ("plum green", "Brand#23", "MED BAG", "PROMO POLISHED BRASS", 9),
    ("forest plum", "Brand#34", "LG CASE", "STANDARD BRUSHED BRASS", 14),
)
"""The first words of the name, brand, container, type and size."""


@dataclass(frozen=True)
class Generator:
    """Makes the rows of a data set."""

    scale: Scale

    def table(self, name: str) -> Any:
        """All rows of a table other than ``orders`` and ``lineitem``."""
        makers: dict[str, tuple[Callable[[Numbers], Any], int]] = {
            "region": (self._region, len(REGIONS)),
            "nation": (self._nation, len(NATIONS)),
            "part": (self._part, self.scale.parts),
            "supplier": (self._supplier, self.scale.suppliers),
            "partsupp": (self.partsupp, 4 * self.scale.parts),
            "customer": (self._customer, self.scale.customers),
        }
        make, rows = makers[name]
        return make(np.arange(rows))

    def chunks(self) -> Iterator[dict[str, Any]]:
        """Yield the orders with their lineitems, a chunk at a time: ``{"orders": ..., "lineitem": ...}``."""
        for start in range(0, self.scale.orders, ORDER_CHUNK):
            yield self.orders_with_lines(np.arange(start, min(start + ORDER_CHUNK, self.scale.orders)))

    def orders_with_lines(self, numbers: Numbers, version: int = 0) -> dict[str, Any]:
        """Return the orders of these numbers and their lineitems.

        :param numbers: the numbers, which are distinct; those from ``scale.orders`` on are new orders
        :param version: the number of corrections of the lineitems; the orders' totals follow
        """
        lines = Lines(self.scale, numbers, version)
        return {"orders": self._orders(numbers, lines), "lineitem": lines.table}

    def parts_with_suppliers(self, numbers: Numbers) -> dict[str, Any]:
        """Return the parts of these numbers and their suppliers; numbers from ``scale.parts`` on are new parts."""
        sold = (numbers[:, np.newaxis] * 4 + np.arange(4)).ravel()
        return {"part": self._part(numbers), "partsupp": self.partsupp(sold)}

    def partsupp(self, numbers: Numbers, version: int = 0) -> Any:
        """Rows of ``partsupp`` by number, four for each part; another ``version`` has other quantities and costs."""
        draws = self.scale.draws("partsupp", numbers)
        return pa.table(
            {
                "ps_partkey": numbers // 4 + 1,
                "ps_suppkey": self.scale.supplier_keys(numbers // 4 + 1, numbers % 4),
                "ps_availqty": pa.array(draws.integers(f"quantity {version}", 1, 9_999).astype(np.int32)),
                "ps_supplycost": hundredths(draws.integers(f"cost {version}", 100, 100_000)),
                "ps_comment": draws.text("comment", text_pool(), 49, 198),
            }
        )

    def _nations_of(self, draws: Draws) -> Numbers:
        names = [name for name, _ in NATIONS]
        asked = np.array([names.index(name) for name in _ASKED_NATIONS])
        found = asked[draws.integers("asked nation", 0, len(asked) - 1)]
        return np.where(draws.chance("asked", self.scale.focus), found, draws.integers("nation", 0, len(NATIONS) - 1))

    def _region(self, numbers: Numbers) -> Any:
        comments = self.scale.draws("region", numbers).text("comment", text_pool(), 31, 115)
        return pa.table({"r_regionkey": numbers, "r_name": list(REGIONS), "r_comment": comments})

    def _nation(self, numbers: Numbers) -> Any:
        return pa.table(
            {
                "n_nationkey": numbers,
                "n_name": [name for name, _ in NATIONS],
                "n_regionkey": pa.array([region for _, region in NATIONS], pa.int64()),
                "n_comment": self.scale.draws("nation", numbers).text("comment", text_pool(), 31, 114),
            }
        )

    def _part(self, numbers: Numbers) -> Any:
        draws = self.scale.draws("part", numbers)
        asked = np.where(draws.chance("asked", self.scale.focus), draws.integers("which", 0, len(_ASKED_PARTS) - 1), -1)
        words = [draws.words(f"name {at}", COLOURS).to_pylist() for at in range(5)]
        brands = draws.integers("brand", 0, 24)
        columns = [
            [" ".join(name) for name in zip(*words, strict=True)],
            pick(BRANDS, brands).to_pylist(),
            draws.words("container", CONTAINERS).to_pylist(),
            draws.words("type", TYPES).to_pylist(),
            draws.integers("size", 1, 50).tolist(),
        ]
        for row in np.flatnonzero(asked >= 0):
            name, *others = _ASKED_PARTS[asked[row]]
            columns[0][row] = f"{name} {columns[0][row]}"
            for column, value in zip(columns[1:], others, strict=True):
                column[row] = value
        names, brand, container, kind, size = columns
        return pa.table(
            {
                "p_partkey": numbers + 1,
                "p_name": names,
                "p_mfgr": [f"Manufacturer#{name[6]}" for name in brand],
                "p_brand": brand,
                "p_type": kind,
                "p_size": pa.array(size, pa.int32()),
                "p_container": container,
                "p_retailprice": hundredths(self.scale.prices(numbers + 1)),
                "p_comment": draws.text("comment", text_pool(), 5, 22),
            }
        )

    def _supplier(self, numbers: Numbers) -> Any:
        draws = self.scale.draws("supplier", numbers)
        nations = self._nations_of(draws)
        comments = draws.text("comment", text_pool(), 25, 100).to_pylist()
        # Five of 10,000 are complained about and five recommended; small data sets have a few of each.
        every = 2_000 if self.scale.focus == 0 else 5
        for row in range(0, len(comments), every):
            comments[row] = f"{comments[row][:10]}Customer {comments[row][:5]} Complaints"
            if row + 1 < len(comments):
                comments[row + 1] = f"{comments[row + 1][:10]}Customer {comments[row + 1][:5]} Recommends"
        return pa.table(
            {
                "s_suppkey": numbers + 1,
                "s_name": [f"Supplier#{key:09d}" for key in numbers + 1],
                "s_address": draws.text("address", text_pool(), 10, 40),
                "s_nationkey": nations,
                "s_phone": _phones(draws, nations),
                "s_acctbal": hundredths(draws.integers("balance", -99_999, 999_999)),
                "s_comment": comments,
            }
        )

    def _customer(self, numbers: Numbers) -> Any:
        draws = self.scale.draws("customer", numbers)
        nations = self._nations_of(draws)
        return pa.table(
            {
                "c_custkey": numbers + 1,
                "c_name": [f"Customer#{key:09d}" for key in numbers + 1],
                "c_address": draws.text("address", text_pool(), 10, 40),
                "c_nationkey": nations,
                "c_phone": _phones(draws, nations),
                "c_acctbal": hundredths(draws.integers("balance", -99_999, 999_999)),
                "c_mktsegment": draws.words("segment", SEGMENTS),
                "c_comment": draws.text("comment", text_pool(), 29, 116),
            }
        )

    def _orders(self, numbers: Numbers, lines: Lines) -> Any:
        draws = self.scale.draws("orders", numbers)
        # Keys that three divides have no orders: a third of the customers never buys.
        customers = draws.integers("customer", 0, (2 * self.scale.customers) // 3 - 1)
        clerks = [f"Clerk#{clerk:09d}" for clerk in range(1, max(1, round(self.scale.factor * 1_000)) + 1)]
        return pa.table(
            {
                "o_orderkey": self.scale.order_keys(numbers),
                "o_custkey": customers // 2 * 3 + customers % 2 + 1,
                "o_orderstatus": lines.order_status(),
                "o_totalprice": hundredths(lines.order_totals()),
                "o_orderdate": dates(self.scale.order_days(numbers)),
                "o_orderpriority": draws.words("priority", PRIORITIES),
                "o_clerk": draws.words("clerk", clerks),
                "o_shippriority": pa.array(np.zeros(len(numbers), np.int32)),
                "o_comment": draws.text("comment", text_pool(), 19, 78),
            }
        )


def _phones(draws: Draws, nations: Numbers) -> list[str]:
    """Telephone numbers that start with the nation's code."""
    groups = [draws.integers(f"phone {at}", 100, 999) for at in range(2)] + [draws.integers("phone 2", 1_000, 9_999)]
    return [f"{nation + 10}-{a}-{b}-{c}" for nation, a, b, c in zip(nations, *groups, strict=True)]
