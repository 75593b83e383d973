"""One prepared query: planned over some batches in memory, and run over others."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.physical_plans import replanned, rerunnable, shown_plan
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory, RefillableLeaf

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Result:
    """The rows that a query gave, and Spark's schema of them."""

    rows: pa.Table
    schema: StructType


@dataclass(slots=True)
class PlannedQuery:
    """A query over refillable leaves.

    :param frame: the query, parsed and analysed
    :param again: the same as a DataFrame that can be run many times; None when the query is planned for each run
    :param leaves: what the query reads
    """

    frame: DataFrame
    again: DataFrame | None
    leaves: Sequence[RefillableLeaf]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def physical_plan(self) -> str:
        """How Spark carries the query out."""
        return shown_plan(self.frame)

    @property
    def bytes(self) -> int:
        """The size of the leaves in the JVM."""
        return sum(leaf.capacity for leaf in self.leaves)

    def result(self, batches: Sequence[Batch]) -> Result | None:
        """Run the query.

        :param batches: a batch in memory for each leaf
        :returns: None when a leaf has no room for its batch
        """
        with self._lock:
            if not all(leaf.fill(batch) for leaf, batch in zip(self.leaves, batches, strict=True)):
                return None
            return Result(collected(self.again or replanned(self.frame)), self.frame.schema)


def plan_query(factory: LeafFactory, parts: Sequence[str], order: Sequence[int], batches: Sequence[Batch]) -> PlannedQuery:
    """Parse, analyse and plan a query.

    :param factory: makes the leaves
    :param parts: the query's text, split at the names of the batches
    :param order: which of the ``batches`` is named between each two parts
    :param batches: batches in memory, each once
    """
    leaves = [factory.leaf(batch) for batch in batches]
    # Names of this query alone: others of the same session may be planned at the same time.
    names = [f"airflow_pipelines_leaf_{next(_numbers)}" for _ in leaves]
    try:
        for name, leaf in zip(names, leaves, strict=True):
            leaf.frame.createTempView(name)
        text = parts[0] + "".join(f"{names[place]}{part}" for place, part in zip(order, parts[1:], strict=True))
        frame = factory.session.sql(text)
    finally:
        # Once the query is analysed it no longer needs the names.
        for name in names:
            factory.session.catalog.dropTempView(name)
    return PlannedQuery(frame, rerunnable(frame), leaves)
