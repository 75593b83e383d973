"""What to measure, and how much of it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Options:
    """The choices of one run.

    ``rows``: lineitems for TPC-H; each size is measured, the largest is also the state for the cost of a step. ``queries``: which
    ones of a benchmark, all when empty. ``repeats``: how often each figure is taken for its median. ``inserts``: one-row changes
    for the latencies. ``steps``: small steps for the memory. ``events``: of Nexmark; ``runs``: how often each of its queries runs.
    ``pipelines``, ``clients``, ``seconds``: how many clients work on how many pipelines of one host, and for how long.
    ``budget``: seconds after which no further query is begun, or None. ``means_of_chosen``: means over queries are given for those
    that were chosen; otherwise only when all queries were measured, because they replace the ones of a whole run.
    """

    rows: tuple[int, ...] = (1_000_000, 10_000_000)
    queries: tuple[str, ...] = ()
    repeats: int = 5
    inserts: int = 50
    steps: int = 10_000
    events: int = 3_000_000
    runs: int = 3
    pipelines: int = 50
    clients: int = 20
    seconds: float = 300.0
    budget: float | None = None
    means_of_chosen: bool = False
    _started: float = field(default_factory=time.monotonic)

    @property
    def out_of_time(self) -> bool:
        """Whether the budget is used up."""
        return self.budget is not None and time.monotonic() - self._started > self.budget

    def required(self, names: Iterable[str]) -> frozenset[str]:
        """Return the queries without which means over queries are not given.

        :param names: the names of all queries of a benchmark
        """
        return frozenset(name for name in names if not self.means_of_chosen or not self.queries or name in self.queries)
