"""Prepared queries: queries over batches in memory that are planned once and then run over other batches.

Each step runs the same queries as the step before, over other rows. Planning them takes several times as long as running them.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.spark.failures import is_of_query
from airflow_pipelines.engine.spark.planned_query import PlannedQuery, Result, plan_query
from airflow_pipelines.engine.spark.refillable_leaf import LeafFactory
from airflow_pipelines.engine.spark.rerun_probe import can_rerun

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query of a step and how Spark carries it out.

    :param query: SQL, in which batches are named by their places
    :param physical_plan: Spark's plan, node by node
    """

    query: str
    physical_plan: str


class PreparedQueries:
    """The prepared queries of one session. A query that cannot be prepared, or fails when it is run so, is planned for each run."""

    def __init__(self, session: SparkSession, limits: Limits) -> None:
        """Start without queries. The first time for an application, this tests whether its plans can be run again."""
        self._limits = limits
        self._factory = LeafFactory(session) if limits.prepared_queries and can_rerun(session) else None
        # None: a query that is planned for each run.
        self._known: OrderedDict[_Key, PlannedQuery | None] = OrderedDict()
        self._lock = threading.Lock()
        self._logged = False

    def result(self, parts: Sequence[str], batches: Sequence[Batch], planned_anew: Callable[[], Result]) -> Result:
        """The result of a query.

        :param parts: the query's text, split at the names of the batches
        :param batches: the batches in memory that are named between each two parts; one may be named several times
        :param planned_anew: gives the result without a prepared query
        """
        distinct = list({batch.number: batch for batch in batches}.values())
        if self._factory is None or sum(batch.memory_bytes for batch in distinct) > self._limits.leaf_bytes:
            return planned_anew()
        places = {batch.number: place for place, batch in enumerate(distinct)}
        order = tuple(places[batch.number] for batch in batches)
        key = (tuple(parts), order, tuple(_signature(batch) for batch in distinct))
        with self._lock:
            known = key in self._known
            query = self._known.get(key)
            if known:
                self._known.move_to_end(key)
        if known and query is None:
            return planned_anew()
        try:
            return self._result(query or self._planned(key, self._factory, distinct), key, self._factory, distinct)
        except _NotPreparedError as failure:
            cause = failure
        # If this raises as well, the error is the query's own and says nothing about its plan.
        result = planned_anew()
        self._give_up(key, cause)
        return result

    def plans(self) -> list[QueryPlan]:
        """The queries that are planned, in the order in which they were last run."""
        with self._lock:
            planned = [(parts, order, query) for (parts, order, _), query in self._known.items() if query is not None]
        return [QueryPlan(_text(parts, order), query.physical_plan) for parts, order, query in planned]

    def close(self) -> None:
        """Forget all queries."""
        with self._lock:
            self._known.clear()

    def _result(self, query: PlannedQuery, key: _Key, factory: LeafFactory, batches: Sequence[Batch]) -> Result:
        """The result of a planned query. It is planned again with larger leaves when the batches do not fit into the old ones."""
        while True:
            try:
                found = query.result(batches)
            except Exception as error:
                if is_of_query(error):
                    raise
                raise _NotPreparedError("run") from error
            if found is not None:
                return found
            query = self._planned(key, factory, batches)

    def _planned(self, key: _Key, factory: LeafFactory, batches: Sequence[Batch]) -> PlannedQuery:
        parts, order, _ = key
        try:
            query = plan_query(factory, parts, order, batches)
        except Exception as error:
            raise _NotPreparedError("planned") from error
        self._remember(key, query)
        return query

    def _give_up(self, key: _Key, failure: _NotPreparedError) -> None:
        self._remember(key, None)
        with self._lock:
            first, self._logged = not self._logged, True
        log.log(
            logging.WARNING if first else logging.DEBUG,
            "A query could not be %s as a prepared one and is planned for each run: %s",
            failure,
            " ... ".join(key[0]),
            exc_info=failure.__cause__,
        )

    def _remember(self, key: _Key, query: PlannedQuery | None) -> None:
        with self._lock:
            self._known[key] = query
            self._known.move_to_end(key)
            size = sum(known.bytes for known in self._known.values() if known is not None)
            while len(self._known) > self._limits.prepared_queries or (size > self._limits.prepared_bytes and len(self._known) > 1):
                _, forgotten = self._known.popitem(last=False)
                size -= 0 if forgotten is None else forgotten.bytes


_Signature = tuple[tuple[str, DataType], ...]
_Key = tuple[tuple[str, ...], tuple[int, ...], tuple[_Signature, ...]]
"""A query's parts, which batch is named between each two, and the columns of the batches."""


class _NotPreparedError(Exception):
    """A query could not be planned or run as a prepared one, for a reason that may have nothing to do with the query."""


def _text(parts: Sequence[str], order: Sequence[int]) -> str:
    return parts[0] + "".join(f"batch_{place}{part}" for place, part in zip(order, parts[1:], strict=True))


def _signature(batch: Batch) -> _Signature:
    """The columns of a batch as Spark sees them."""
    return tuple((column.name, column.dataType) for column in batch.schema.fields)
