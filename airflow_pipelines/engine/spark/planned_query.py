"""One query over batches in memory, planned once and run over other batches."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.physical_plans import replanned, rerunnable
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory, RefillableLeaf

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Result:
    """What a query gave: its rows as a pyarrow Table, and Spark's schema of them."""

    rows: Any
    schema: StructType


@dataclass(slots=True)
class PlannedQuery:
    """A planned query. ``again``: the same as a frame that can be run many times, or None when it has to be planned for each."""

    frame: DataFrame
    again: DataFrame | None
    leaves: Sequence[RefillableLeaf]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bytes(self) -> int:
        """The size of the leaves."""
        return sum(leaf.capacity for leaf in self.leaves)

    def result(self, batches: Sequence[Batch]) -> Result | None:
        """The query's result over other batches in memory, one for each leaf; None when a leaf has no room for one."""
        with self._lock:
            if not all(leaf.fill(batch) for leaf, batch in zip(self.leaves, batches, strict=True)):
                return None
            return Result(collected(self.again or replanned(self.frame)), self.frame.schema)


def plan_query(maker: LeafFactory, parts: Sequence[str], order: Sequence[int], batches: Sequence[Batch]) -> PlannedQuery:
    """Parse, analyse and plan a query.

    :param parts: the query's text without the names of the batches
    :param order: which of the ``batches`` stands between each two parts
    :param batches: batches in memory, each once
    """
    leaves = [maker.leaf(batch) for batch in batches]
    # Names of this query alone: others of the same session may be planned at the same time.
    names = [f"airflow_pipelines_leaf_{next(_numbers)}" for _ in leaves]
    try:
        for name, leaf in zip(names, leaves, strict=True):
            leaf.frame.createTempView(name)
        text = parts[0] + "".join(f"{names[place]}{part}" for place, part in zip(order, parts[1:], strict=True))
        frame = maker.session.sql(text)
    finally:
        # The names matter only until the query is analysed.
        for name in names:
            maker.session.catalog.dropTempView(name)
    return PlannedQuery(frame, rerunnable(frame), leaves)
