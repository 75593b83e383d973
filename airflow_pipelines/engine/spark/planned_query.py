"""One prepared query, planned over some batches in memory and run over others."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.collecting import FrameCollector
from airflow_pipelines.engine.spark.driver_plans import DriverPlan
from airflow_pipelines.engine.spark.physical_plans import as_frame, replan, rerunnable, shown_plan
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory, LeafRows, RefillableLeaf
from airflow_pipelines.engine.spark.result_connection import ResultConnection

_SQUARED = 20_000
"""The number of rows whose square means work of some seconds."""
_LONG_S = 2.0
_LONG_RUNS = 2
"""The number of long runs in a row after which the time is not due to Java loading and compiling classes."""
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a query, and Spark's schema of them."""

    rows: pa.Table
    schema: StructType


@dataclass(slots=True)
class PlannedQuery:
    """A query over refillable leaves.

    :param frame: the query, parsed and analysed
    :param leaves: the leaves that the query reads
    :param runs_again: True if a run needs no new plan
    :param may_square: True if its work may grow with the square of the rows that it reads
    :param in_driver: the plan that runs in the driver; None if it only runs as a job
    """

    frame: DataFrame
    leaves: Sequence[RefillableLeaf]
    runs_again: bool
    may_square: bool
    in_driver: DriverPlan | None
    _planned_job: DataFrame | None = None
    _long_runs: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def physical_plan(self) -> str:
        """The physical plan by which Spark runs the query."""
        return shown_plan(self.frame)

    @property
    def bytes(self) -> int:
        """The size of the leaves in the JVM."""
        return sum(leaf.capacity for leaf in self.leaves)

    def result(self, batches: Sequence[LeafRows], most_bytes: int = sys.maxsize) -> Result | None:
        """Run the query, and return its result.

        :param batches: a batch in memory for each leaf
        :param most_bytes: the maximum number of bytes of Arrow data of the result
        :returns: the result; None if a leaf has no room for its batch
        :raises ResultTooLargeError: if the result has more bytes
        """
        with self._lock:
            if not all(leaf.fill(batch) for leaf, batch in zip(self.leaves, batches, strict=True)):
                return None
            return Result(self._rows(sum(batch.rows for batch in batches), most_bytes), self.frame.schema)

    def _rows(self, read: int, most_bytes: int) -> pa.Table:
        """Return the rows over the current rows of the leaves.

        A job makes room for others and ends at once when it is cancelled, so long work is left to jobs.
        """
        if self.in_driver is None or (self.may_square and read > _SQUARED):
            return FrameCollector(ResultConnection(), most_bytes).collected(self._job or replan(self.frame))
        started = time.monotonic()
        rows = self.in_driver.run(read, most_bytes)
        self._long_runs = self._long_runs + 1 if time.monotonic() - started > _LONG_S else 0
        if self._long_runs == _LONG_RUNS:
            self.in_driver = None
        return rows

    @property
    def _job(self) -> DataFrame | None:
        """The query as a DataFrame that runs as a job each time; None if it is planned for each run."""
        if self._planned_job is None and self.runs_again:
            self._planned_job = _as_job(self.frame)
        return self._planned_job


def plan_query(factory: LeafFactory, parts: Sequence[str], order: Sequence[int], batches: Sequence[LeafRows]) -> PlannedQuery:
    """Parse, analyse and plan a query.

    :param factory: the factory of the leaves
    :param parts: the query's text, split at the names of the batches
    :param order: the index of the batch in ``batches`` that is named between each two parts
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
    plan = rerunnable(frame)
    if plan is None:
        return PlannedQuery(frame, leaves, runs_again=False, may_square=False, in_driver=None)
    in_driver = None if plan.needs_executor else DriverPlan(frame, plan)
    return PlannedQuery(frame, leaves, runs_again=True, may_square=plan.may_square, in_driver=in_driver)


def _as_job(frame: DataFrame) -> DataFrame | None:
    """Return a query as a DataFrame that runs as a job each time.

    It gets a plan of its own, because a plan that ran in the driver cannot be sent to executors.
    """
    again = replan(frame)
    plan = rerunnable(again)
    return None if plan is None else as_frame(frame, plan)
